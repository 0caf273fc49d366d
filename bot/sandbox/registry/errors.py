"""The error bodies of the OCI distribution specification."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from starlette.responses import JSONResponse


class Code(StrEnum):
    """Error codes of the specification and of Distribution."""

    BLOB_UNKNOWN = "BLOB_UNKNOWN"
    BLOB_UPLOAD_INVALID = "BLOB_UPLOAD_INVALID"
    BLOB_UPLOAD_UNKNOWN = "BLOB_UPLOAD_UNKNOWN"
    DENIED = "DENIED"
    DIGEST_INVALID = "DIGEST_INVALID"
    MANIFEST_BLOB_UNKNOWN = "MANIFEST_BLOB_UNKNOWN"
    MANIFEST_INVALID = "MANIFEST_INVALID"
    MANIFEST_UNKNOWN = "MANIFEST_UNKNOWN"
    NAME_INVALID = "NAME_INVALID"
    NAME_UNKNOWN = "NAME_UNKNOWN"
    PAGINATION_NUMBER_INVALID = "PAGINATION_NUMBER_INVALID"
    RANGE_INVALID = "RANGE_INVALID"
    SIZE_INVALID = "SIZE_INVALID"
    TAG_INVALID = "TAG_INVALID"
    TOOMANYREQUESTS = "TOOMANYREQUESTS"
    UNAUTHORIZED = "UNAUTHORIZED"
    UNAVAILABLE = "UNAVAILABLE"
    UNSUPPORTED = "UNSUPPORTED"


_STATUS: Final = {
    Code.BLOB_UNKNOWN: 404,
    Code.BLOB_UPLOAD_UNKNOWN: 404,
    Code.DENIED: 403,
    Code.MANIFEST_UNKNOWN: 404,
    Code.NAME_UNKNOWN: 404,
    Code.RANGE_INVALID: 416,
    Code.SIZE_INVALID: 413,
    Code.TOOMANYREQUESTS: 429,
    Code.UNAUTHORIZED: 401,
    Code.UNAVAILABLE: 503,
    Code.UNSUPPORTED: 405,
}
"""Statuses other than 400."""


class RegistryError(Exception):
    """A request that the registry refuses, as it will be answered."""

    def __init__(self, code: Code, message: str, **detail: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail

    def response(self, headers: dict[str, str] | None = None) -> JSONResponse:
        """The answer, with the specification's body."""
        body = {"errors": [{"code": self.code, "message": self.message, "detail": self.detail or None}]}
        return JSONResponse(body, status_code=_STATUS.get(self.code, 400), headers=headers)


def unavailable(status: int) -> JSONResponse:
    """The answer of a registry that is made to fail with `status`."""
    code = {429: Code.TOOMANYREQUESTS, 401: Code.UNAUTHORIZED, 403: Code.DENIED}.get(status, Code.UNAVAILABLE)
    body = {"errors": [{"code": code, "message": "the registry does not answer now", "detail": None}]}
    return JSONResponse(body, status_code=status)
