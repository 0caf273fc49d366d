"""Comments look as they do on GitHub, and whatever stands in them does nothing but look."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.sandbox.github.pages.markdown import render_comment, render_document
from bot.sandbox.github.pages.sanitise import sanitise

HOME = "acme/shop"


def shown(text: str) -> str:
    return str(render_comment(text, HOME))


class TestGitHubFlavour:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("| a |\n| --- |\n| `b` |", "<td><code>b</code></td>", id="a table"),
            pytest.param("| a |\n| ---: |\n| b |", '<td align="right">b</td>', id="a column to the right"),
            pytest.param("- [x] done", '<input type="checkbox" disabled checked> done', id="a done task"),
            pytest.param("- [ ] open", '<input type="checkbox" disabled> open', id="an open task"),
            pytest.param("~~old~~", "<s>old</s>", id="struck out"),
            pytest.param("one\ntwo", "one<br>\ntwo", id="a line break is one"),
            pytest.param(
                "<details><summary>s</summary>\n\n**b**\n\n</details>", "<p><strong>b", id="details"
            ),
            pytest.param("<kbd>x</kbd> &#58; a\\.b", "<kbd>x</kbd> : a.b", id="HTML and entities in a line"),
            pytest.param("> [!WARNING]\n> hot", '<p class="alert-title">Warning</p>\n<p>hot', id="an alert"),
            pytest.param("> [!NOTE] no", "<blockquote>", id="no alert if text follows"),
            pytest.param("```diff\n+a\n-b\n```", '<span class="line add">+a</span>', id="a coloured diff"),
            pytest.param("```\n<x> &amp;\n```", "&lt;x&gt; &amp;amp;", id="code is kept as it is"),
            pytest.param("see #12", '<a href="/acme/shop/pull/12"', id="a reference"),
            pytest.param("a/b#3", '<a href="/a/b/pull/3"', id="a reference elsewhere"),
            pytest.param("at " + "ab" * 20, f'href="/acme/shop/commit/{"ab" * 20}"', id="a commit"),
            pytest.param("https://x.example/a", '<a href="https://x.example/a"', id="a URL is a link"),
        ],
    )
    def test_it_shows(self, text: str, expected: str) -> None:
        assert expected in shown(text)

    @pytest.mark.parametrize(
        ("text", "absent"),
        [
            pytest.param("hello @rafael", "<a", id="mentions are text"),
            pytest.param("values.yaml and a.b", "<a", id="names of files are no links"),
            pytest.param("`#12` &#35;12x", "<a", id="no reference in code"),
            pytest.param("a <!-- secret --> b\n\n<!-- two\n\nlines -->", "secret", id="comments are hidden"),
            pytest.param("<!-- never closed\n\nlockstep-marker", "marker", id="an open comment is hidden"),
        ],
    )
    def test_it_does_not_show(self, text: str, absent: str) -> None:
        assert absent not in shown(text)

    def test_in_a_file_a_line_break_is_a_space(self) -> None:
        assert "<br>" not in render_document("one\ntwo", HOME)


class TestHostileText:
    @pytest.mark.parametrize(
        "text",
        [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "<a href='javascript:alert(1)'>x</a>",
            "<a href='java\nscript:alert(1)'>x</a>",
            "[x](javascript:alert(1))",
            "<svg/onload=alert(1)>",
            "<iframe src=https://x.example></iframe>",
            "<p style='position:fixed' class=notice onclick=alert(1)>x</p>",
            "<form action=/acme/shop/pull/1/merge><button>Merge</button></form>",
            "<input type=submit formaction=/x>",
            '<div data-live id="mergebox">x</div>',
            "<base href=https://x.example><meta http-equiv=refresh content=0>",
            "<details open ontoggle=alert(1)>",
            '<div data-alert="x onclick=alert(1)">',
            "<style>body{display:none}</style>",
        ],
    )
    def test_nothing_of_it_acts(self, text: str) -> None:
        html = shown(text).lower()
        for word in (
            "<script",
            " on",
            'href="java',
            "<svg",
            "<iframe",
            "<form",
            "<button",
            " style",
            "<style",
        ):
            assert word not in html.replace("&lt;", "")
        for word in ("<base", "<meta", "data-live", 'id="mergebox"', "submit", 'class="notice"', "<img"):
            assert word not in html

    def test_it_cannot_close_what_it_did_not_open(self) -> None:
        assert shown("</div></main></body>") == ""
        assert shown("<div><b>x").count("</") == 2

    @given(st.text(alphabet="<>/=\"'ab div!-[]x \n&;`|", max_size=80))
    def test_elements_are_always_balanced(self, text: str) -> None:
        again = sanitise(sanitise(text))
        assert again == sanitise(text)

    @pytest.mark.parametrize(
        "piece",
        [
            "<div ",
            '<a b="',
            "<a ",
            "<!-- ",
            "<!x ",
            "</a ",
            "<![CDATA[",
            "&#",
            "[",
            "- [x] **a**\n  - `b`\n",
            "*a ",
        ],
    )
    def test_65_kb_of_anything_take_no_time_to_speak_of(self, piece: str) -> None:
        text = (
            ("<div>\n" + piece * 65_000)[:65_000]
            if piece.startswith(("<", "&"))
            else (piece * 65_000)[:30_000]
        )
        started = time.process_time()
        shown(text)
        assert time.process_time() - started < 2.0
