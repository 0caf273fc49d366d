"""Whatever the world says, a report shows it and does nothing else: read back by a Markdown parser."""

from __future__ import annotations

import re
import time
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.domain.actions import Gate
from bot.domain.approvals import Tally, Verdict
from bot.domain.files import Change, File
from bot.domain.promotion import State, StepStatus, Stop
from bot.domain.review import EffectRecord, Patch, Presence, Problem, Split, StepReport
from bot.domain.step_kinds import StepClass
from bot.domain.terraform import Action, AttributeChange, OutputChange, ResourceChange
from bot.domain.values import Text, Unknown
from bot.domain.view import PromotionView, StageLine
from bot.reports.answers import render_explain, render_status
from bot.reports.body import render_body, render_title
from bot.reports.checks import render_gate_check, render_outcome_check, render_plan_check
from bot.reports.comments import render_counts, render_outcome_comment, render_plan_comment
from bot.reports.markdown import clean, code, fence, html_code, plain, size, table, title
from tests.reports.views import (
    DIRECTORY,
    MAIN,
    MERGE,
    NEW,
    NOW,
    SENTINEL,
    STEPS,
    apply,
    outcome,
    plan,
    preview,
    promotion,
    run,
    steps,
    view,
)

PARSER = MarkdownIt("gfm-like", {"html": True})
assert PARSER.linkify is not None
# GitHub makes links of addresses with a scheme or `www.` and of mail addresses, not of every word with a dot.
PARSER.linkify.set({"fuzzy_link": False, "fuzzy_email": True, "fuzzy_ip": False})

PAGE = "https://lockstep.example/promotions/staging.01jx.1101101"
MENTION = re.compile(r"@[A-Za-z0-9]|#\d|\bGH-\d|://|\bwww\.[a-z0-9]|\$|\x1b", re.IGNORECASE)
OUR_TAGS = {"details", "summary", "code"}

NASTY = [
    "@acme/owners", "hey @olivia", "#1", "acme/ops#12", "GH-7", "fixes #3", "https://evil.example/x.png",
    "www.evil.example", "![x](https://evil.example/b.png)", "[click](https://evil.example)", "a@evil.example",
    "<img src=x onerror=alert(1)>", "<!-- lockstep-marker {} " + "0" * 64 + " -->", "``` ```` `````",
    "<!-- lockstep:plan:acme:staging -->", "```", "~~~~", "`", "``", "a `b` c", "`@olivia`", "`#1` `#2`",
    "| a | b |", "\\|", "\\", "*x* **y** _z_ __w__", "~~gone~~", "# heading",
    "> quote", "- item", "1. one", "---", "===", "\x1b[31mred\x1b[0m", "\x1b]8;;https://evil.example\x07x\x1b]8;;\x07",
    "\u202eabc\u202c", "\u200b\u2066", "\U000e0041\U000e0042", "\ud800", "\x00\x07\x85", "a\r\nb\rc\n\nd", "</details>",
    "</summary></code>", "<details>", "&lt;b&gt; &#64;olivia &amp;", "👨\u200d👩 🎉 :tada:", "$x$ $$y$$", "[^1]", "[x]: https://e.example",
    "[!CAUTION]", "\t code", "    code", "a" * 700, "mailto:x@e.example", "ﬀ é 漢字", " ", "",
]  # fmt: skip
texts = st.one_of(
    st.sampled_from(NASTY),
    st.lists(st.sampled_from(NASTY), min_size=2, max_size=4).map(" ".join),
    st.lists(st.sampled_from(NASTY), min_size=2, max_size=4).map("".join),
    st.lists(st.sampled_from(NASTY), min_size=2, max_size=4).map("\n".join),
    st.text(alphabet=st.characters(), max_size=60),
    st.text(alphabet="`~|\\*_[]()<>!#@&:;$-+=1. \nab", max_size=60),
)


class Tags(HTMLParser):
    """Collects elements, and text outside of `code`."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.comments: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        self.tags.append("/" + tag)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        if self.tags.count("code") == self.tags.count("/code"):
            self.text.append(data)


def flat(tokens: list[Token]) -> list[Token]:
    return [inner for token in tokens for inner in [token, *flat(token.children or [])]]


def assert_harmless(markdown: str, *, comments: int = 0) -> None:
    """Every fence is closed, and nothing in it links, mentions, refers, or is HTML but for our own folds."""
    markdown.encode()
    seen = Tags()
    for token in flat(PARSER.parse(markdown)):
        assert token.type != "image", markdown
        if token.type == "link_open":
            assert token.attrs["href"] == PAGE, markdown
        if token.type == "fence":
            lines = markdown.split("\n")
            assert token.map is not None
            assert lines[token.map[1] - 1].strip() == token.markup, markdown
        assert token.type != "code_block", markdown
        if token.type in ("html_block", "html_inline"):
            seen.feed(token.content)
        if token.type == "text":
            assert MENTION.search(token.content) is None, markdown
    seen.close()
    assert set(seen.tags) <= OUR_TAGS | {f"/{tag}" for tag in OUR_TAGS}, markdown
    for tag in OUR_TAGS:
        assert seen.tags.count(tag) == seen.tags.count(f"/{tag}"), markdown
    assert seen.attributes == [("open", None)] * len(seen.attributes)
    assert len(seen.comments) == comments, markdown
    hidden = [
        c for c in markdown if unicodedata.category(c) in {"Cc", "Cs", "Co", "Zl", "Zp"} and c not in "\n\t"
    ]
    assert not hidden


# -- the small parts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("solar-marmot: 1 to create.", "solar-marmot: 1 to create."),
        ("these values: lambda_url, image.tag (3)", "these values: lambda_url, image.tag (3)"),
        ("see `/apply 12` now", "see `/apply 12` now"),
        ("@rafael may not (needs team:x)", "`@rafael` may not (needs team:x)"),
        ("answer of https://x.example/a, which", "answer of `https://x.example/a`, which"),
        ("closes acme/ops#12.", "closes `acme/ops#12`."),
        ("<known after apply: x>", "&lt;known after apply: x>"),
        ("a_b _c_ *d*", r"a_b \_c\_ \*d\*"),
        ("- x", r"\- x"),
        ("1. x", r"1\. x"),
        ("1.2.3 is new", r"1\.2.3 is new"),
        ("half ` open", "half &#96; open"),
        ("a\n\n b\tc", "a b c"),
        ("`a``b`", "`a` `b`"),
        ("&lt; & &#64;x", "&amp;lt; & `&#64;x`"),
        ("at 12:30:45 on 3 > 2", "at 12:30:45 on 3 > 2"),
    ],
)
def test_prose_escapes_only_what_acts(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a", "`a`"),
        ("a`b", "``a`b``"),
        ("`a`", "`` `a` ``"),
        ("", "`(empty)`"),
        ("a\nb", "`a\\nb`"),
        ("a|b", "`a|b`"),
        ("x" * 400, "`" + "x" * 299 + "…`"),
    ],
)
def test_code_is_one_span(text: str, shown: str) -> None:
    assert code(text) == shown


def test_a_fence_is_longer_than_what_it_holds() -> None:
    assert fence("a\n````\nb", "diff") == "`````diff\na\n````\nb\n`````"


@pytest.mark.parametrize("text", ["a|b", "a\\|b", "`|`", "a||b"])
def test_a_cell_keeps_its_pipes(text: str) -> None:
    tokens = PARSER.parse(table(["x", "y"], [[code(text), plain(text)]]))
    cells = [inline for inline in tokens if inline.type == "inline"][2:]
    assert len(cells) == 2
    spans = [token.content for token in cells[0].children or [] if token.type == "code_inline"]
    assert spans == [text]
    assert PARSER.renderInline(cells[1].content).count("|") == text.count("|")


def test_hides_exactly_what_nobody_sees() -> None:
    kept_formats = {*range(0x600, 0x606), 0x6DD, 0x890, 0x891, 0x8E2}
    for number in range(0x110000):
        char = chr(number)
        hidden = unicodedata.category(char) in {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
        if char in "\n\t\r" or number in kept_formats:
            hidden = False
        if hidden:
            assert char not in clean(char), hex(number)
        elif unicodedata.category(char)[0] in "LNPS" and number not in (
            0x115F,
            0x1160,
            0x3164,
            0xFFA0,
            0x2800,
        ):
            assert clean(char) == char, hex(number)


def test_emoji_are_whole_and_colours_are_gone() -> None:
    assert clean("👨\u200d👩 ❤\ufe0f a\u200db \x1b[1;31mred\x1b[0m") == "👨\u200d👩 ❤\ufe0f a\\u{200d}b red"


@given(texts)
def test_a_title_is_one_short_line(text: str) -> None:
    shown = title(text, inert=True)
    assert size(shown) <= 255
    assert "\n" not in shown
    assert not re.search(r"@\w|#\d|\bGH-\d", shown)
    assert clean(shown) == shown


@given(texts)
def test_small_parts_do_nothing(text: str) -> None:
    cell = table(["x", "y"], [[plain(text), code(text)]])
    alert = f"> [!CAUTION]\n> {plain(text)}  \n> {code(text)}"
    fold = f"<details><summary>Log of {html_code(text)}</summary>\n\n{fence(text)}\n\n</details>"
    bold = f"- **{plain(text)}**: {code(text)}, {plain(text)}"
    for markdown in (plain(text), code(text), fence(text), cell, alert, fold, bold, f"a\n{plain(text)}\nb"):
        assert_harmless(markdown)
    rows = [token for token in PARSER.parse(cell) if token.type == "td_open"]
    assert len(rows) == 2


# -- whole reports -----------------------------------------------------------------------------------------------


@st.composite
def views(draw: st.DrawFn) -> PromotionView:
    """A view in which every text that comes from outside is whatever was drawn."""
    one, two, three = draw(texts), draw(texts), draw(texts)
    change = ResourceChange(
        one, two, draw(st.sampled_from(Action)), (AttributeChange(two, three, one, draw(st.booleans())),),
        moved_from=draw(st.sampled_from(["", three])), reason=draw(st.sampled_from(["", two])),
    )  # fmt: skip
    hole = Text((two, Unknown(f"known after apply: {three}")))
    found = plan(
        change,
        drift=(change,),
        outputs=(OutputChange(one, Action.UPDATE, [two], hole),),
        resource_lines={one: (two, 3)},
    )
    record = apply(
        found,
        text=draw(texts),
        directory=draw(st.sampled_from([DIRECTORY, two])),
        boundary=(f"{one} ({two}:3)",),
    )
    reports = list(steps(record))
    effect = EffectRecord(one, two, ((three, hole), (one, [three])))
    reports[7] = replace(reports[7], record=effect)
    reports.append(StepReport(8, one, two, StepClass.ACT, Presence.CONDITIONAL, None, message=three))
    patch = Patch(
        MAIN,
        (
            Change(
                one, File(two.encode("utf-8", "replace")), File((three + SENTINEL).encode("utf-8", "replace"))
            ),
        ),
    )
    problem = Problem(STEPS[2].alias, two, log=three, path=one, line=3)
    seen = preview(
        record, steps=tuple(reports), warnings=(one,), origins={SENTINEL: two},
        held=draw(st.sampled_from(["", three])), problems=(problem,) if draw(st.booleans()) else (),
        split=Split(2, (), patch, others=(patch,), scratch=(three,)),
    )  # fmt: skip
    state = draw(st.sampled_from(State))
    runs = outcome(run(STEPS[2].alias, StepStatus.FAILED, one, detail={"log": two}, output={"result": three}))
    moved = promotion(
        state=state, reason=one, freight=replace(NEW, alias=two), actor=three, merge_commit=MERGE, blocked=True,
        stop=Stop(one, "ab12", (two, three)), steps=(*STEPS, replace(STEPS[0], alias=one, uses=two)),
    )  # fmt: skip
    return view(
        promotion=moved if draw(st.booleans()) else replace(moved, merge_commit=None),
        preview=seen, outcome=runs, waiting=two, people_commits=(one,), stages=(StageLine(one, NEW, NOW, state=two),),
        gates=(Gate(one, False, two), Gate("freeze", False, three)),
        tally=Tally(0, 1, verdicts=(Verdict(one, False, two),)),
    )  # fmt: skip


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(views())
def test_whole_reports_do_nothing(seen: PromotionView) -> None:
    assert_harmless(render_body(seen), comments=1)
    for markdown in (
        render_plan_comment(seen),
        render_outcome_comment(seen),
        render_explain(seen),
        render_status(seen),
        render_counts(seen),
        render_plan_check(seen).text,
    ):
        assert_harmless(markdown)
        assert size(markdown) <= 65_000
    assert len(render_title(seen)) <= 120
    for check in (render_gate_check(seen), render_plan_check(seen), render_outcome_check(seen)):
        assert size(check.title) <= 255
        assert size(check.summary) <= 65_000
        assert len(check.annotations) <= 50
        for annotation in check.annotations:
            assert size(annotation.message) <= 64_000
            assert size(annotation.title) <= 255
        for button in check.buttons:
            assert (len(button.label) <= 20, len(button.description) <= 40, len(button.identifier) <= 20) == (
                True,
            ) * 3


# -- size --------------------------------------------------------------------------------------------------------


def huge(count: int, width: int, text: int) -> PromotionView:
    changes = tuple(
        ResourceChange(
            f'module.net["{"x" * width}"].aws_thing.n{number}',
            "aws_db_instance",
            Action.UPDATE if number % 2 else Action.REPLACE,
            (AttributeChange("policy", "a" * 70, "a" * 69 + "b"),),
        )
        for number in range(count)
    )
    outputs = tuple(OutputChange(f"o{number}", Action.UPDATE, "x", "y") for number in range(count))
    record = apply(plan(*changes, outputs=outputs), text="~ line\n" * (text // 7))
    return view(preview=preview(record))


@pytest.mark.parametrize(
    ("count", "width", "text"),
    [(3, 3, 100), (3000, 3, 200_000), (3000, 200, 1_000_000), (90, 600, 60_000), (5, 200_000, 7)],
)
def test_fits_and_keeps_the_counts(count: int, width: int, text: int) -> None:
    seen = huge(count, width, text)
    for markdown in (render_body(seen), render_plan_comment(seen), render_plan_check(seen).summary):
        assert size(markdown) <= 65_000
        assert f"{count // 2:,} to update" in markdown
        assert_harmless(markdown, comments=markdown.count("<!-- lockstep-marker"))
    assert render_body(seen).endswith(seen.marker)
    assert size(render_plan_check(seen).text) <= 65_000


def test_detail_is_given_up_in_a_fixed_order() -> None:
    seen = huge(80, 10, 30_000)
    sizes = [65_000, 30_000, 8_000, 2_000]
    whole, rows, by_name, counts = (render_plan_comment(seen, limit=limit) for limit in sizes)
    assert "Terraform's own text" in whole
    assert "Terraform's own text" not in rows
    assert "| Resource |" in rows
    assert "| Resource |" not in by_name
    assert "aws_thing.n7" in by_name
    assert "aws_thing.n79" not in counts
    assert all("40 to update, 40 to replace" in markdown for markdown in (whole, rows, by_name, counts))


def test_a_large_machine_block_is_never_cut() -> None:
    marker = "<!-- lockstep-marker " + "x" * 60_000 + " -->"
    body = render_body(replace(huge(3000, 3, 200_000), marker=marker))
    assert body.endswith(marker)
    assert size(body) <= 65_000


def test_many_plans_fit() -> None:
    records = [
        apply(plan(*(ResourceChange(f"a.b{n}", "a", Action.CREATE) for n in range(50))), text="x\n" * 900)
    ] * 90
    base = steps(records[0])
    several = tuple(replace(base[2], index=n, record=record) for n, record in enumerate(records))
    seen = view(preview=preview(steps=several))
    for markdown in (render_plan_comment(seen), render_plan_check(seen).text, render_body(seen)):
        assert size(markdown) <= 65_000
        assert markdown


def test_a_huge_attribute_and_many_resources_take_no_second() -> None:
    wide = ResourceChange(
        "a.b", "a", Action.UPDATE, (AttributeChange("x", "q" * 200_000, "q" * 199_999 + "z"),)
    )
    narrow = huge(3000, 20, 200_000)
    record = narrow.preview.applies[0] if narrow.preview is not None else apply()
    changes = record.plan.resources if record.plan is not None else ()
    seen = view(preview=preview(replace(record, plan=plan(wide, *changes))))
    begun = time.process_time()
    render_body(seen)
    render_plan_comment(seen)
    render_plan_check(seen)
    # Far from the bar of a second, so that a slow machine does not matter; anything quadratic is beyond it.
    assert time.process_time() - begun < 1.0


def test_a_machine_block_beyond_the_limit_is_left_out_whole() -> None:
    body = render_body(view(marker="<!-- lockstep-marker " + "x" * 64_000 + " -->"))
    assert "lockstep-marker" not in body
    assert body.endswith("The machine-readable block is too large for this page; the commits carry it.")
    assert size(body) <= 65_000
