"""Who calls Argo CD and what they may do: the admin account, project role tokens, and their policies."""

from __future__ import annotations

import fnmatch
import hmac
import time
import uuid
from dataclasses import dataclass
from typing import Any, Final

import jwt
from starlette.requests import Request

from bot.sandbox.argocd.errors import ApiError, Code
from bot.sandbox.argocd.store import Store

_ISSUER: Final = "argocd"
_SESSION_SECONDS: Final = 24 * 3600


@dataclass(frozen=True, slots=True)
class Caller:
    """A verified token: `subject` is `admin:login` or `proj:<project>:<role>`, `issued` its issue time."""

    subject: str
    issued: int

    @property
    def is_admin(self) -> bool:
        """Whether everything is allowed."""
        return self.subject.partition(":")[0] == "admin"

    @property
    def username(self) -> str:
        """The name that an operation is recorded under."""
        return "admin" if self.is_admin else self.subject


class Accounts:
    """Signs and verifies tokens, and enforces the projects' policies."""

    def __init__(self, store: Store, password: str) -> None:
        self._store = store
        self._password = password

    def log_in(self, username: str, password: str) -> str:
        """A session token of the admin account."""
        if username != "admin" or not hmac.compare_digest(password.encode(), self._password.encode()):
            raise ApiError(Code.UNAUTHENTICATED, "Invalid username or password")
        return self._sign("admin:login", _SESSION_SECONDS)

    def issue_role_token(self, project: str, role: str, *, expires_in: int = 0, token_id: str = "") -> str:
        """A token of a project role; 0 seconds never expire."""
        found = self._role(project, role)
        if found is None:
            raise ApiError(Code.NOT_FOUND, f"project '{project}' does not have role '{role}'")
        tokens = found.setdefault("jwtTokens", [])
        identity = token_id or str(uuid.uuid4())
        if any(token["id"] == identity for token in tokens):
            raise ApiError(Code.INVALID_ARGUMENT, f"token id '{identity}' has been used")
        token = self._sign(f"proj:{project}:{role}", expires_in, identity)
        claims = jwt.decode(token, options={"verify_signature": False})
        entry = {"iat": claims["iat"], "id": identity}
        tokens.append(entry | {"exp": claims["exp"]} if "exp" in claims else entry)
        self._store.save_projects()
        return token

    def revoke_role_token(self, project: str, role: str, issued: int, token_id: str = "") -> None:
        """Make a role's token worthless, by its id or by its time of issue."""
        found = self._role(project, role)
        if found is None:
            raise ApiError(Code.NOT_FOUND, f"project '{project}' does not have role '{role}'")
        kept = [
            token
            for token in found.get("jwtTokens", [])
            if (token["id"] != token_id if token_id else token["iat"] != issued)
        ]
        found["jwtTokens"] = kept
        self._store.save_projects()

    def identify(self, request: Request) -> Caller:
        """Who calls; UNAUTHENTICATED without a valid token."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        token = token if kind.lower() == "bearer" else request.cookies.get("argocd.token", "")
        if not token:
            raise ApiError(Code.UNAUTHENTICATED, "no session information")
        try:
            claims = jwt.decode(token, self._store.key, algorithms=["HS256"], issuer=_ISSUER)
        except jwt.InvalidTokenError as error:
            raise ApiError(Code.UNAUTHENTICATED, f"invalid session: {error}") from error
        subject = str(claims.get("sub", ""))
        if subject.startswith("proj:") and not self._is_known(subject, claims):
            raise ApiError(Code.UNAUTHENTICATED, "invalid session: the project's role token was revoked")
        return Caller(subject, int(claims["iat"]))

    def may(self, caller: Caller, resource: str, action: str, target: str) -> bool:
        """Whether the policies allow an action on `project/name`; a deny wins over every allow."""
        if caller.is_admin:
            return True
        _, project, role = [*caller.subject.split(":"), "", ""][:3]
        found = self._role(project, role)
        policies = [] if found is None else found.get("policies", [])
        effects = [
            effect
            for policy in policies
            if (effect := _effect(policy, caller.subject, resource, action, target))
        ]
        return "allow" in effects and "deny" not in effects

    def require(self, caller: Caller, resource: str, action: str, target: str) -> None:
        """PERMISSION_DENIED, naming the missing right, unless the policies allow it."""
        if not self.may(caller, resource, action, target):
            right = f"{resource}, {action}, {target}, sub: {caller.subject}, iat: {caller.issued}"
            raise ApiError(Code.PERMISSION_DENIED, f"permission denied: {right}")

    def _sign(self, subject: str, seconds: int, token_id: str = "") -> str:
        issued = int(time.time())
        claims: dict[str, Any] = {"iss": _ISSUER, "sub": subject, "iat": issued, "nbf": issued}
        claims["jti"] = token_id or str(uuid.uuid4())
        if seconds:
            claims["exp"] = issued + seconds
        return jwt.encode(claims, self._store.key, algorithm="HS256")

    def _is_known(self, subject: str, claims: dict[str, Any]) -> bool:
        _, project, role = [*subject.split(":"), "", ""][:3]
        found = self._role(project, role)
        return found is not None and any(
            token["id"] == claims.get("jti") for token in found.get("jwtTokens", [])
        )

    def _role(self, project: str, role: str) -> dict[str, Any] | None:
        spec = self._store.projects.get(project, {}).get("spec", {})
        roles: list[dict[str, Any]] = spec.get("roles", [])
        return next((found for found in roles if found["name"] == role), None)


def _effect(policy: str, subject: str, resource: str, action: str, target: str) -> str:
    """`allow` or `deny` if a policy line speaks of this, else nothing."""
    parts = [part.strip() for part in policy.split(",")]
    if len(parts) != 6 or parts[0] != "p" or parts[1] != subject:
        return ""
    matches = zip((resource, action, target), parts[2:5], strict=True)
    return parts[5] if all(fnmatch.fnmatchcase(value, pattern) for value, pattern in matches) else ""
