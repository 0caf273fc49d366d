"""The port `Registering`: GitHub's App manifest flow.

Source: GitHub's documentation, "Registering a GitHub App from a manifest".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from bot.payloads.reading import read_json
from bot.ports import AppCredentials, Http, HttpRequest, TerminalError, TransientError

_TIMEOUT = 15.0
_CODE = re.compile(r"[A-Za-z0-9_-]{1,255}")
_BEGIN_AGAIN = "If an App was made, delete it on GitHub (in its settings, under Advanced), then begin again."


@dataclass(frozen=True, slots=True)
class GitHubManifests:
    """The manifest flow on the GitHub at these addresses, which end in a slash."""

    api_url: str
    web_url: str
    http: Http

    def address(self, organisation: str, state: str) -> str:
        """See `Registering.address`."""
        owner = f"organizations/{quote(organisation, safe='')}/" if organisation else ""
        return f"{self.web_url}{owner}settings/apps/new?{urlencode({'state': state})}"

    async def exchange(self, code: str) -> AppCredentials:
        """See `Registering.exchange`."""
        if _CODE.fullmatch(code) is None:
            raise TerminalError(f"What came back from GitHub is no code. {_BEGIN_AGAIN}")
        request = HttpRequest(
            "POST",
            f"{self.api_url}app-manifests/{code}/conversions",
            headers=(("Accept", "application/vnd.github+json"), ("X-GitHub-Api-Version", "2022-11-28")),
            timeout=_TIMEOUT,
        )
        answer = await self.http.send(request)
        if answer.status >= 500 or answer.status == 429:
            raise TransientError(f"GitHub answered {answer.status} when it was shown the code")
        if answer.status in (404, 422):
            raise TerminalError(
                f"GitHub does not take the code: it was used before, or is older than an hour. {_BEGIN_AGAIN}"
            )
        if answer.status != 201:
            raise TerminalError(f"GitHub answered {answer.status} when it was shown the code. {_BEGIN_AGAIN}")

        def fail(path: str, message: str) -> Exception:
            return TerminalError(f"GitHub's description of the App cannot be read: {path} {message}")

        node = read_json(answer.body, fail)
        return AppCredentials(
            app_id=node.number("id"),
            slug=node.text("slug"),
            name=node.text("name"),
            page=node.text("html_url"),
            client_id=node.text("client_id"),
            client_secret=node.text("client_secret"),
            webhook_secret=node.text("webhook_secret"),
            private_key=node.text("pem"),
        )
