"""The refusals of the simulated GitHub, in GitHub's own words and status codes."""

from collections.abc import Mapping
from typing import Any

DOCS = "https://docs.github.com/rest"


class Refused(Exception):
    """A call is refused with an HTTP status and a message; the server turns it into GitHub's JSON body."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        errors: list[Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """The JSON body of the answer."""
        body: dict[str, Any] = {
            "message": self.message,
            "documentation_url": DOCS,
            "status": str(self.status),
        }
        if self.errors is not None:
            body["errors"] = self.errors
        return body


def not_found() -> Refused:
    """What GitHub says of things that are not there or that the caller may not see."""
    return Refused(404, "Not Found")


def forbidden(message: str = "Resource not accessible by integration") -> Refused:
    """What GitHub says to a caller that sees a thing but lacks the permission."""
    return Refused(403, message)


def invalid(resource: str, field: str, *, code: str = "invalid", message: str = "") -> Refused:
    """A `Validation Failed` answer with one error; `code` is one of GitHub's validation codes."""
    error = {"resource": resource, "code": code, "field": field}
    if message:
        error = {**error, "code": "custom", "message": message}
    return Refused(422, "Validation Failed", errors=[error])


def too_long(resource: str, field: str, limit: int) -> Refused:
    """The `Validation Failed` answer for a text over its limit."""
    return invalid(resource, field, message=f"{field} is too long (maximum is {limit} characters)")
