"""How senders of webhooks prove who they are: a signature over the raw bytes, a shared text, or the address alone.

Every comparison takes constant time. Headers are those that the senders document.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping

Headers = Mapping[str, str]
Proof = Callable[[Headers, bytes, str], bool]
"""Whether headers and raw body prove that the sender knows the secret."""


def is_same(given: str, wanted: str) -> bool:
    """Whether a header's value is this text, in constant time; an empty one never is."""
    # Headers are bytes, shown as Latin-1; a secret that is no ASCII is sent in UTF-8.
    return bool(wanted) and hmac.compare_digest(given.encode("latin-1", "replace"), wanted.encode())


def sign(secret: str, body: bytes, digest: str = "sha256") -> str:
    """The HMAC of a body, in lower-case hex."""
    return hmac.new(secret.encode(), body, digest).hexdigest()


def _signed(header: str) -> Proof:
    """`sha256=<hex>`, as GitHub does it."""
    return lambda headers, body, secret: is_same(headers.get(header, ""), f"sha256={sign(secret, body)}")


def _shared(header: str) -> Proof:
    return lambda headers, _body, secret: is_same(headers.get(header, ""), secret)


def _of_gitea(headers: Headers, body: bytes, secret: str) -> bool:
    bare = headers.get("x-gitea-signature", "") or headers.get("x-forgejo-signature", "")
    return _signed("x-hub-signature-256")(headers, body, secret) or is_same(bare, sign(secret, body))


def _of_artifactory(headers: Headers, body: bytes, secret: str) -> bool:
    """An HMAC, or the secret itself where "use secret for payload signing" is off."""
    given = headers.get("x-jfrog-event-auth", "")
    return is_same(given, sign(secret, body)) or is_same(given, secret)


def _bearer(headers: Headers, _body: bytes, secret: str) -> bool:
    return is_same(headers.get("authorization", "").removeprefix("Bearer "), secret)


def _of_ecr(headers: Headers, body: bytes, secret: str) -> bool:
    """The API key of an EventBridge connection, under the name that its owner gave it, or as a bearer token."""
    return is_same(headers.get("x-webhook-secret", ""), secret) or _bearer(headers, body, secret)


def _of_nexus(headers: Headers, body: bytes, secret: str) -> bool:
    """Nexus offers nothing but HMAC-SHA1, which as a MAC is not broken."""
    return is_same(headers.get("x-nexus-webhook-signature", ""), sign(secret, body, "sha1"))


def _by_address(_headers: Headers, _body: bytes, _secret: str) -> bool:
    """These senders can sign nothing: who knows the address, which holds a hash of the secret, is believed."""
    return True


PROOFS: Mapping[str, Proof] = {
    "artifactory": _of_artifactory,
    "azure": _by_address,
    "bitbucket": _signed("x-hub-signature"),
    "dockerhub": _by_address,
    "generic": _by_address,
    "gitea": _of_gitea,
    "github": _signed("x-hub-signature-256"),
    "gitlab": _shared("x-gitlab-token"),
    "harbor": _shared("authorization"),
    "quay": _by_address,
    "ci": _signed("x-signature"),
    "distribution": _bearer,
    "ecr": _of_ecr,
    "nexus": _of_nexus,
}
"""Every kind of receiver that is proven by its secret. Tokens (`ci`, `gar`) are verified by `web.receivers`."""

EVENT_HEADERS: Mapping[str, str] = {
    "azure": "user-agent",
    "bitbucket": "x-event-key",
    "gitea": "x-gitea-event",
    "github": "x-github-event",
    "gitlab": "x-gitlab-event",
    "nexus": "x-nexus-webhook-id",
}
"""The header that says which event it is, where it is not in the body."""

DELIVERY_HEADERS: Mapping[str, tuple[str, ...]] = {
    "bitbucket": ("x-request-uuid", "x-request-id"),
    "gitea": ("x-gitea-delivery",),
    "github": ("x-github-delivery",),
    "gitlab": ("idempotency-key", "x-gitlab-event-uuid"),
    "nexus": ("x-nexus-webhook-delivery",),
}
"""Headers that stay the same when a delivery is repeated."""
