from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.urls import normalize_chart_url, normalize_git_url, normalize_image_url, sanitize_url


@pytest.mark.parametrize(
    ("given_url", "expected"),
    [
        ("https://GitHub.com/Acme/App.git/", "https://github.com/acme/app"),
        ("https://user:secret@host.example:8443/a/b", "https://host.example:8443/a/b"),
        ("git@github.com:acme/app.git", "ssh://git@github.com/acme/app"),
        ("ssh://git@host.example/a.git", "ssh://git@host.example/a"),
        ("https://host.example/a?x=1", "https://host.example/a?x=1"),
        ("https://host.example/a/?", "https://host.example/a?"),
        ("https://host.example/a%2Fb", "https://host.example/a%2fb"),
        ("https://host.example/a%2Fb.git", "https://host.example/a/b"),
        ("https://host.example/a%zz", "https://host.example/a%zz"),
        ("https://host.example:port/a", "https://host.example:port/a"),
        ("https://[::1]:443/a.git", "https://[::1]:443/a"),
        ("/local/path", "/local/path"),
        ("", ""),
    ],
)
def test_git_addresses_have_one_spelling(given_url: str, expected: str) -> None:
    assert normalize_git_url(given_url) == expected


@pytest.mark.parametrize(
    ("given_url", "expected"),
    [
        ("docker.io/library/nginx:1.25", "nginx"),
        ("nginx@sha256:" + "a" * 64, "nginx"),
        ("nginx:1.25@sha256:" + "a" * 64, "nginx"),
        ("localhost:5000/a/b:tag", "localhost:5000/a/b"),
        ("ghcr.io/Acme/App", "ghcr.io/acme/app"),
        ("ghcr.io/acme/app:", "ghcr.io/acme/app:"),
        ("bad name/x", "bad name/x"),
    ],
)
def test_images_have_one_spelling(given_url: str, expected: str) -> None:
    assert normalize_image_url(given_url) == expected


def test_charts_lose_their_scheme() -> None:
    assert normalize_chart_url(" OCI://ghcr.io/Acme/Chart ") == "ghcr.io/acme/chart"
    assert normalize_chart_url("https://charts.example/x") == "https://charts.example/x"


@given(st.text(max_size=60))
def test_no_text_breaks_and_twice_is_once(text: str) -> None:
    for normalize in (normalize_git_url, normalize_image_url, normalize_chart_url):
        assert isinstance(normalize(text), str)
    assert sanitize_url(sanitize_url(text)) == sanitize_url(text)


@given(st.from_regex(r"https://[a-z]{1,8}\.example(/[A-Za-z0-9._-]{1,8}){1,3}", fullmatch=True))
def test_suffix_case_and_credentials_do_not_matter(url: str) -> None:
    plain = normalize_git_url(url.removesuffix(".git"))
    assert normalize_git_url(url.removesuffix(".git") + ".git/") == plain
    assert normalize_git_url(url.removesuffix(".git").upper().replace("HTTPS", "https")) == plain
    assert normalize_git_url(url.removesuffix(".git").replace("https://", "https://me:pw@")) == plain
