"""Errors as Argo CD's gRPC gateway writes them."""

from __future__ import annotations

from enum import IntEnum
from http import HTTPStatus
from typing import Final

from starlette.responses import JSONResponse


class Code(IntEnum):
    """The gRPC codes that Argo CD answers with."""

    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


_STATUS: Final = {
    Code.UNKNOWN: 500,
    Code.INVALID_ARGUMENT: 400,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.FAILED_PRECONDITION: 400,
    Code.UNIMPLEMENTED: 501,
    Code.UNAVAILABLE: 503,
    Code.UNAUTHENTICATED: 401,
}


class ApiError(Exception):
    """A request that Argo CD refuses, as it will be answered."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def response(self) -> JSONResponse:
        """The answer, with the gateway's body."""
        return _body(_STATUS[self.code], self.code, self.message)

    def stream_response(self) -> JSONResponse:
        """The answer to a request for a stream, whose errors have a shape of their own."""
        status = _STATUS[self.code]
        error = {"grpc_code": int(self.code), "http_code": status, "message": self.message}
        return JSONResponse(
            {"error": {**error, "http_status": HTTPStatus(status).phrase}}, status_code=status
        )


def unavailable(status: int) -> JSONResponse:
    """The answer of an Argo CD that is made to fail with `status`."""
    codes = {status_: code for code, status_ in _STATUS.items()}
    return _body(status, codes.get(status, Code.UNAVAILABLE), "the server does not answer now")


def _body(status: int, code: Code, message: str) -> JSONResponse:
    return JSONResponse({"error": message, "code": int(code), "message": message}, status_code=status)
