"""Replacing and reading literals of HCL texts, and what a Terraform file names."""

from __future__ import annotations

import pytest

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.hcl import (
    HclExpression,
    find_backend,
    find_file_calls,
    find_hcl_leaves,
    find_module_sources,
    read_hcl_value,
    update_hcl,
)
from bot.editors.keys import Update

RESOURCE = """resource "aws_lambda_function" "app" {
  image_uri = "old" # written by promotions
  tags = {
    version   = "1.0"
    "app.k8s" : true,
  }
  env {
    name = "A"
  }
  env {
    name = "B"
  }
}
"""


@pytest.mark.parametrize(
    ("text", "key", "value", "old", "new"),
    [
        pytest.param(
            'image_uri="x" # c\r\nb=1', "image_uri", "y", '"x"', '"y"', id="tfvars with CRLF, no last end"
        ),
        pytest.param("\ufeffa = 1", "a", "2", "1", '"2"', id="a byte order mark"),
        pytest.param(
            RESOURCE, "resource.aws_lambda_function.app.image_uri", "n", '"old"', '"n"', id="a block path"
        ),
        pytest.param(
            RESOURCE, "resource.aws_lambda_function.app.tags.version", "2", '"1.0"', '"2"', id="a map in it"
        ),
        pytest.param(
            RESOURCE,
            "resource.aws_lambda_function.app.tags.app\\.k8s",
            False,
            "true",
            "false",
            id="a quoted key",
        ),
        pytest.param(
            RESOURCE, "resource.aws_lambda_function.app.env.1.name", "C", '"B"', '"C"', id="a repeated block"
        ),
        pytest.param(
            'module x {\n  version = "1"\n}\n', "module.x.version", "2", '"1"', '"2"', id="a bare label"
        ),
        pytest.param(
            "locals {\n a = 1\n}\nlocals {\n b = 2\n}\n", "locals.b", 5, "2", "5", id="in the second block"
        ),
        pytest.param('l = ["a", ["b", 3]]\n', "l[1][0]", "v", '"b"', '"v"', id="indexes in brackets"),
        pytest.param('l = ["a", ["b", 3]]\n', "l.1.1", "v", "3", '"v"', id="indexes with dots"),
        pytest.param("a = -5 // c\n", "a", 3, "-5", "3", id="a negative number"),
        pytest.param("a = 1e10\nb = 1E+3\n", "b", 3, "1E+3", "3", id="exponents without a point"),
        pytest.param("a = null\n", "a", "x", "null", '"x"', id="a null"),
        pytest.param("a = /* 1 */ 2 /* 3 */\n", "a", True, " 2 ", " true ", id="comments around the value"),
        pytest.param(
            'a = 1 # "b" = {\nb = "c # d"\n', "b", "x", '"c # d"', '"x"', id="signs in comments and strings"
        ),
        pytest.param('a = "x$${b}"\n', "a", "v", '"x$${b}"', '"v"', id="an escaped template is a literal"),
        pytest.param("a = 1\nb {\n c = \n}\n", "a", 2, "= 1", "= 2", id="an error in another block"),
        pytest.param('a = "x"\n', "a", "${v}", '"x"', '"$${v}"', id="interpolation is escaped"),
        pytest.param('a = "x"\n', "a", "%{ if v }", '"x"', '"%%{ if v }"', id="a directive is escaped"),
        pytest.param(
            'a = "x"\n', "a", "$${v}$", '"x"', '"\\u0024$${v}$"', id="signs before an interpolation"
        ),
        pytest.param('a = "x"\n', "a", 'q"\\\n\t\x00é', '"x"', '"q\\"\\\\\\n\\t\\u0000é"', id="escapes"),
        pytest.param('a = "x"\n', "a", 1e-7, '"x"', "1.0e-07", id="a small float"),
        pytest.param('a = "x"\n', "a", 2**70, '"x"', str(2**70), id="a large number"),
    ],
)
def test_replaces_only_the_value(text: str, key: str, value: Json, old: str, new: str) -> None:
    assert text.count(old) == 1
    after = update_hcl(text, [Update(key, value)])
    assert after == text.replace(old, new)
    assert read_hcl_value(after, key) == value


@pytest.mark.parametrize(
    ("text", "key", "value", "said"),
    [
        pytest.param(
            RESOURCE, "resource.aws_lambda_function.app.image_url", 1,
            "was not found in 13 lines; did you mean 'resource.aws_lambda_function.app.image_uri'", id="misspelt",
        ),
        pytest.param(RESOURCE, "resource.aws_lambda_function.ap", 1, "aws_lambda_function.app'", id="a misspelt block"),
        pytest.param(RESOURCE, "resource.aws_lambda_function.app", 1, "names the block at line 1", id="a block"),
        pytest.param(RESOURCE, "resource.aws_lambda_function.app.tags", 1, "line 3: .*no literal", id="an object"),
        pytest.param(RESOURCE, "resource.aws_lambda_function.app.env.name", 1, "at lines 8, 11", id="two blocks"),
        pytest.param("a = 1\na = 2\n", "a", 1, "line 2: .*more than once, at lines 1, 2", id="a duplicate attribute"),
        pytest.param("m = { a = 1, a = 2 }\n", "m.a", 1, "more than once", id="a duplicate key"),
        pytest.param('a = "${x}"\n', "a", 1, "holds `\"\\${x}\"`, which is no literal", id="a template"),
        pytest.param('a = f("x")\n', "a", 1, "no literal", id="a call"),
        pytest.param("a = <<E\nx\nE\n", "a", 1, "no literal", id="a heredoc"),
        pytest.param('a = ("x")\n', "a", 1, "no literal", id="parentheses"),
        pytest.param("a = var.x\n", "a.b", 1, "`var.x`, which has no keys", id="through a reference"),
        pytest.param("m = { (x) = 1 }\n", "m.x", 1, "computed keys", id="a computed key"),
        pytest.param("l = [1]\n", "l.1", 1, "did you mean 'l.0'", id="index past the end"),
        pytest.param("b {\n c = \n d = 1\n}\n", "b.d", 1, "line 2: .*syntax error", id="an error in the block"),
        pytest.param("a = 1\n}\n", "a", 1, "line 2: there is a syntax error", id="an error between blocks"),
        pytest.param('b {\n c = "x\n}\nd {\n a = 1\n}\n', "d.a", 1, "syntax error", id="an error that swallows blocks"),
        pytest.param("", "a", 1, "not found in 0 lines", id="an empty text"),
        pytest.param("a = 1\n", "a", [1], "only scalars", id="a list as value"),
        pytest.param("a = 1\n", "a", float("inf"), "cannot be written", id="infinity"),
        pytest.param("a = 1\n", "a", "\ud800", "cannot be written", id="half a surrogate pair"),
    ],
)  # fmt: skip
def test_refuses_and_says_why(text: str, key: str, value: Json, said: str) -> None:
    with pytest.raises(EditError, match=said):
        update_hcl(text, [Update(key, value)])


def test_several_updates_at_once_and_the_last_of_one_key_counts() -> None:
    text = 'a = 1 # x\nm = { b = "1", c = "22" }\n'
    updates = [Update("m.c", "3"), Update("a", 4), Update("m.b", "long"), Update("a", 5)]
    assert update_hcl(text, updates) == 'a = 5 # x\nm = { b = "long", c = "3" }\n'


def test_finds_leaves_with_expressions_as_source() -> None:
    text = 'a = 1\nb "x" {\n c = [1, {d = "${e}"}]\n f = {}\n}\ng {\n h=1\n}\ng {\n h=2\n}\n'
    assert find_hcl_leaves(text) == {
        ("a",): 1,
        ("b", "x", "c", 0): 1,
        ("b", "x", "c", 1, "d"): HclExpression('"${e}"'),
        ("b", "x", "f"): {},
        ("g", 0, "h"): 1,
        ("g", 1, "h"): 2,
    }
    with pytest.raises(EditError, match="this is no valid HCL"):
        find_hcl_leaves("a = \n")


def test_reads_values() -> None:
    assert read_hcl_value('a = { b = [1, "x$${y}", null, -2.5], "c d" = true }\n', "a") == {
        "b": [1, "x${y}", None, -2.5],
        "c d": True,
    }
    with pytest.raises(EditError, match="no literal"):
        read_hcl_value("a = [var.x]\n", "a")


def test_finds_module_sources_and_says_which_are_computed() -> None:
    text = 'module "a" {\n  source = "./m"\n}\nmodule "b" {\n  source = var.x\n}\nmodule "c" {}\n'
    assert find_module_sources(text) == [(2, "./m"), (5, None), (7, None)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('terraform {\n  backend "s3" {\n    key = "k"\n  }\n}\n', ("s3", 2)),
        ("terraform {\n  cloud {}\n}\n", ("cloud", 2)),
        ('terraform {\n  required_version = "1"\n}\nterraform {\n  backend "local" {}\n}\n', ("local", 5)),
        ("backend = 1\n", None),
    ],
)
def test_finds_the_backend(text: str, found: tuple[str, int] | None) -> None:
    assert find_backend(text) == found


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ('file("x")', ["x"]),
        ('file("${path.module}/x")', ["${path.module}/x"]),
        ('templatefile("${ path.module }/t.tpl", { a = file("y") })', ["${path.module}/t.tpl", "y"]),
        ('fileset(path.module, "*.tf")', ["${path.module}/*.tf"]),
        ('"a ${file("q")}"', ["q"]),
        ('<<E\n${file("h")}\nE', ["h"]),
        ('file( # why\n "x")', ["x"]),
        ('core::filebase64sha256("../x.zip")', ["../x.zip"]),
        ('jsonencode("x")', []),
        ('"file(\\"x\\")"', []),
        ("file(var.x)", None),
        ('file("${path.module}/${x}")', None),
        ('filesha256("${path.module}/a-%{ if x }b%{ endif }")', None),
        ("file(x...)", None),
        ("file()", None),
    ],
)
def test_finds_the_files_that_are_read(expression: str, found: list[str] | None) -> None:
    assert find_file_calls(f"locals {{\n  a = {expression}\n}}\n") == found
