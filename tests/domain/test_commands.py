"""Which first lines are commands, which are near misses, and which are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.commands import (
    HELP,
    Apply,
    Approve,
    Cancel,
    Command,
    CommandProblem,
    Doctor,
    Drift,
    Explain,
    Freeze,
    Help,
    Hold,
    MakeFreight,
    Plan,
    Promote,
    Resume,
    Retry,
    Rollback,
    Status,
    Unfreeze,
    Verify,
    parse_command,
)

FREIGHT = "f5f87aa23c9e97f43eb83dd63768ee41f5ba3766"


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("/promote staging", Promote("staging")),
        ("/promote shop/staging", Promote("staging", "shop")),
        ("/promote staging lucky-lynx", Promote("staging", "", "lucky-lynx")),
        (f"/promote shop/staging {FREIGHT}", Promote("staging", "shop", FREIGHT)),
        ("/PROMOTE staging", Promote("staging")),
        ("/promote \t staging  ", Promote("staging")),
        ("/promote staging\r\nplease", Promote("staging")),
        ("/promote staging\n/rollback prod", Promote("staging")),
        ("/plan", Plan()),
        ("/plan 1234567ABC", Plan("1234567abc")),
        ("/apply 0123abcd", Apply("0123abcd")),
        ("/apply", Apply("")),
        ("/retry", Retry()),
        ("/approve lucky-lynx prod", Approve("lucky-lynx", "prod")),
        ("/approve lucky-lynx shop/prod", Approve("lucky-lynx", "prod", "shop")),
        ("/hold", Hold()),
        ("/hold waiting for the café team `x` $(y)", Hold("waiting for the café team `x` $(y)")),
        ("/hold a\u202eb\u200bc", Hold("abc")),
        ("/resume", Resume()),
        ("/rollback prod", Rollback("prod")),
        ("/rollback shop/prod lucky-lynx", Rollback("prod", "shop", "lucky-lynx")),
        ("/freight shop", MakeFreight("shop")),
        (
            "/freight acme/shop app=1.0.0 https://git.example/acme/infra.git=v1+b",
            MakeFreight("shop", "acme", (("app", "1.0.0"), ("https://git.example/acme/infra.git", "v1+b"))),
        ),
        ("/verify prod", Verify("prod")),
        ("/verify shop/prod abort", Verify("prod", "shop", abort=True)),
        ("/cancel", Cancel()),
        ("/freeze incident 42", Freeze("incident 42")),
        ("/unfreeze", Unfreeze()),
        ("/drift", Drift()),
        ("/drift acme/prod", Drift(stage="prod", project="acme")),
        ("/drift fix", Drift(fix=True)),
        ("/drift FIX prod", Drift(fix=True, stage="prod")),
        ("/explain", Explain()),
        ("/status", Status()),
        ("/doctor", Doctor()),
        ("/help\n", Help()),
    ],
)
def test_a_command_is_understood(body: str, command: Command) -> None:
    assert parse_command(body) == command


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("", id="nothing"),
        pytest.param("please /promote staging", id="in the middle of a line"),
        pytest.param("\n/promote staging", id="on the second line"),
        pytest.param("hello\n/promote staging", id="after a greeting"),
        pytest.param("> /promote staging", id="quoted"),
        pytest.param("    /promote staging", id="indented code"),
        pytest.param(" /promote staging", id="after a blank"),
        pytest.param("```\n/promote staging\n```", id="in a fence"),
        pytest.param("~~~\n/promote staging\n~~~", id="in a tilde fence"),
        pytest.param("`/promote staging`", id="as inline code"),
        pytest.param("<!-- /promote staging -->", id="in an HTML comment"),
        pytest.param("<!--\n/promote staging\n-->", id="in an HTML comment of several lines"),
        pytest.param("/usr/bin/terraform is missing", id="a path"),
        pytest.param("/promote: staging", id="punctuation after the word"),
        pytest.param("//promote staging", id="two slashes"),
        pytest.param("/", id="a slash"),
        pytest.param("/ promote staging", id="a slash apart"),
        pytest.param("／promote staging", id="a full-width slash"),
        pytest.param("\ufeff/promote staging", id="an invisible character first"),
        pytest.param("/pro\u200bmote staging", id="an invisible character inside the word"),
        pytest.param("/prоmote staging", id="a Cyrillic letter inside the word"),
        pytest.param("/promote\u00a0staging", id="a no-break space after the word"),
        pytest.param("/promote\x0bstaging", id="a vertical tab after the word"),
    ],
)
def test_it_is_no_command(body: str) -> None:
    assert parse_command(body) is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("/promote", "an argument is missing"),
        ("/promote a b c", "at most 2 arguments"),
        ("/drift dev prod", "the word fix and then a Stage"),
        ("/drift fix dev prod", "at most 2 arguments"),
        ("/promote Staging", "lower-case"),
        ("/promote a/b/c", "PROJECT/STAGE"),
        ("/promote /staging", "PROJECT/STAGE"),
        ("/promote shop/", "PROJECT/STAGE"),
        ("/promote ../prod", "PROJECT/STAGE"),
        ("/promote staging a;b", "alias or its hash"),
        ("/promote staging $(id)", "alias or its hash"),
        ("/promote --force staging", "takes no options"),
        ("/promote staging <!-- x -->", "takes no options"),
        ("/promote stagi\u200bng", "invisible"),
        ("/promote stag\u0456ng", "invisible"),
        ("/promote staging\u2028x", "invisible"),
        ("/promote sta\rging", "invisible"),
        ("/promote " + "a" * 600, "more than 500 characters"),
        ("/apply 12345", "hexadecimal"),
        ("/apply xyzxyzxyz", "hexadecimal"),
        ("/apply 0123abcd 0123abcd", "at most 1 argument"),
        ("/plan main", "hexadecimal"),
        ("/approve", "by a review"),
        ("/approve lucky-lynx", "an argument is missing"),
        ("/rollback", "an argument is missing"),
        ("/freight", "an argument is missing"),
        ("/freight Shop", "a Warehouse is written WAREHOUSE or PROJECT/WAREHOUSE"),
        ("/freight shop app", "NAME=VERSION"),
        ("/freight shop app=", "NAME=VERSION"),
        ("/freight shop =1.0.0", "NAME=VERSION"),
        ("/freight shop app=1.0.0;x", "NAME=VERSION"),
        ("/freight shop app=1 app=2", "stands there twice"),
        ("/verify prod again", "after the Stage there may only be the word abort"),
        ("/retry now", "no arguments"),
    ],
)
def test_a_wrong_argument_is_named_and_the_right_form_shown(body: str, message: str) -> None:
    problem = parse_command(body)
    assert isinstance(problem, CommandProblem)
    assert message in problem.message
    word = body.split()[0].removeprefix("/")
    assert problem.suggestion == HELP[word][0]
    assert not problem.unknown


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("promot", "promote"),
        ("Rolback", "rollback"),
        ("unfreez", "unfreeze"),
        ("deploy", "promote"),
        ("unhold", "resume"),
        ("thaw", "unfreeze"),
        ("xyzzy", "help"),
    ],
)
def test_an_unknown_word_gets_the_nearest_command(word: str, meant: str) -> None:
    problem = parse_command(f"/{word} staging")
    assert problem == CommandProblem(f"there is no command /{word.lower()}", HELP[meant][0], unknown=True)


def test_approval_by_comment_is_pointed_to_reviews() -> None:
    problem = parse_command("/lgtm")
    assert isinstance(problem, CommandProblem)
    assert "by a review" in problem.message


@pytest.mark.parametrize("word", sorted(HELP))
def test_every_command_of_the_table_is_known(word: str) -> None:
    usage, text = HELP[word]
    assert usage.startswith(f"/{word}")
    assert text
    parsed = parse_command(f"/{word}")
    assert parsed is not None
    assert not (isinstance(parsed, CommandProblem) and parsed.unknown)


@given(st.text())
def test_any_text_gives_an_answer(body: str) -> None:
    for text in (
        body,
        f"/freight {body}",
        f"/promote {body}",
        f"/apply {body}",
        f"/approve {body}",
        f"/hold {body}",
    ):
        parse_command(text)


@given(st.text())
def test_what_a_name_can_hold_is_plain(argument: str) -> None:
    parsed = parse_command(f"/promote {argument}")
    if isinstance(parsed, Promote):
        assert (parsed.stage + parsed.project + parsed.freight).isascii()
        assert not set(parsed.stage + parsed.project + parsed.freight) & set(" ;|&$`<>\"'\\\n\r\t/")
