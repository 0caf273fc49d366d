"""The reference pages name all that the language has, with its type, and nothing that it has not.

A failure prints the rows to add (with dots for the words that only a person can write) and those to remove.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest

from bot.domain.step_kinds import StepClass
from bot.expressions.facts import DataFacts, FreightFacts, PromotionFacts, StepFacts
from bot.expressions.functions import (
    TEMPLATE_FUNCTIONS,
    URL_FUNCTIONS,
    UTILITY_FUNCTIONS,
    data_functions,
    freight_functions,
    status_functions,
)
from bot.expressions.grammar import BINARY, BUILTINS, PREDICATES, UNARY
from bot.expressions.scopes import promotion_names, step_names
from bot.pipeline import STEP_SCHEMAS
from bot.pipeline.expression_checks import FUNCTIONS
from bot.pipeline.kinds.registry import KINDS, Kind
from bot.pipeline.kinds.tables import STAGE_STEPS, TASK_STEPS
from bot.pipeline.schema import JsonSchema
from bot.steps import KINDS as STEP_KINDS
from bot.steps import NOT_CARRIED_OUT
from tests.docs.reference_pages import PAGES, SHARED, expected_rows, first_cells, rows, sections

KIND_SECTIONS = sections("kinds-and-fields.md")
STEP_SECTIONS = sections("steps.md")
EXPRESSIONS = sections("expressions.md")


def assert_same(where: str, named: Collection[object], known: Collection[object]) -> None:
    """Fails with what to add to a page and what to remove from it."""
    missing, excess = [x for x in known if x not in named], [x for x in named if x not in known]
    told = "\n".join([*(f"  add     {item}" for item in missing), *(f"  remove  {item}" for item in excess)])
    assert not told, f"docs/reference/{where}:\n{told}"


def assert_rows(where: str, section: str, schema: JsonSchema) -> None:
    found = rows(section)
    assert len(found) == len(set(found)), f"docs/reference/{where} names a key twice"
    assert_same(where, found, list(expected_rows(schema)))


# -- kinds ---------------------------------------------------------------------------------------------------


def test_every_kind_has_a_section_and_no_other_section_is_there() -> None:
    titles = [kind.name for kind in KINDS.values()]
    assert_same("kinds-and-fields.md (sections)", list(KIND_SECTIONS), [*titles, *SHARED])


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_field_of_a_kind_is_named(kind: Kind) -> None:
    section = KIND_SECTIONS.get(kind.name, "")
    assert f"`{kind.api_version}`" in section, f"the section of {kind.name} must name {kind.api_version}"
    assert ("Passed over" in section) == bool(kind.passed_over), (
        "say Passed over of what is, and of nothing else"
    )
    assert_rows(f"kinds-and-fields.md, {kind.name}", section, kind.schema)


@pytest.mark.parametrize("title", SHARED)
def test_every_field_of_a_shared_part_is_named(title: str) -> None:
    assert_rows(f"kinds-and-fields.md, {title}", KIND_SECTIONS.get(title, ""), SHARED[title])


def test_steps_of_tasks_have_no_key_that_those_of_stages_lack() -> None:
    assert {row.path for row in expected_rows(TASK_STEPS)} <= {row.path for row in expected_rows(STAGE_STEPS)}


# -- steps ---------------------------------------------------------------------------------------------------


def test_every_step_has_a_section_and_no_other_section_is_there() -> None:
    assert set(STEP_KINDS) == set(STEP_SCHEMAS)
    assert_same("steps.md (sections)", list(STEP_SECTIONS), list(STEP_KINDS))


@pytest.mark.parametrize("name", STEP_KINDS)
def test_every_step_is_described(name: str) -> None:
    section = STEP_SECTIONS.get(name, "")
    step_class = STEP_KINDS[name].step_class.value
    assert f"Class: `{step_class}`." in section, f"the section of {name} must say: Class: `{step_class}`."
    assert "Outputs: " in section, f"the section of {name} must say which Outputs there are, or none"
    told = "Not carried out yet." in section
    assert told == (name in NOT_CARRIED_OUT), (
        f"{name}: say Not carried out yet. of what is not, and only then"
    )
    assert_rows(f"steps.md, {name}", section, STEP_SCHEMAS[name])


def test_every_class_is_explained() -> None:
    page = (PAGES / "steps.md").read_text()
    explained = re.findall(r"^\| `([a-z]+)` \|", page.partition("### ")[0], re.MULTILINE)
    assert_same("steps.md (classes)", explained, [item.value for item in StepClass])


# -- expressions ---------------------------------------------------------------------------------------------


def functions_in(titles: Iterable[str]) -> list[str]:
    cells = [cell for title in titles for cell in first_cells(EXPRESSIONS.get(title, ""))]
    return [cell.partition("(")[0] for cell in cells]


def test_every_builtin_of_the_language_is_named() -> None:
    titles = [title for title in EXPRESSIONS if title.startswith("Builtins")]
    assert_same("expressions.md, Builtins", functions_in(titles), [*BUILTINS, *PREDICATES])


def test_every_function_of_kargo_is_named() -> None:
    known = {
        *TEMPLATE_FUNCTIONS,
        *UTILITY_FUNCTIONS,
        *freight_functions(FreightFacts()),
        *data_functions(DataFacts()),
        *status_functions("", ()),
    }
    assert known == set(FUNCTIONS)
    titles = [title for title in EXPRESSIONS if title.startswith("Functions")]
    assert_same("expressions.md, Functions", functions_in(titles), [*FUNCTIONS, *URL_FUNCTIONS])


def test_every_operator_is_named() -> None:
    known = [*dict.fromkeys([*UNARY, *BINARY]), "?.", "?:", "[a:b]"]
    assert_same("expressions.md, Operators", first_cells(EXPRESSIONS.get("Operators", "")), known)


def test_every_name_of_the_environment_is_named() -> None:
    def leaves(value: object, path: str) -> list[str]:
        if isinstance(value, dict) and value:
            return [
                leaf for key, item in value.items() for leaf in leaves(item, f"{path}.{key}" if path else key)
            ]
        return [path]

    promotion = PromotionFacts("project", "stage", target={})
    step: dict[str, object] = {name: {} for name in step_names(StepFacts("task::step"))}
    known = [*leaves(promotion_names(promotion, "x"), ""), *leaves(step, ""), "vars"]
    named = [name.replace("task.outputs", "task") for name in first_cells(EXPRESSIONS.get("Environment", ""))]
    assert_same("expressions.md, Environment", named, known)


# -- pages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert link.startswith("https://") or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.name)
def test_every_row_says_what_it_means(page: Path) -> None:
    assert "..." not in re.sub(r"`[^`\n]*`", "", page.read_text())


def test_the_differences_name_steps_that_exist() -> None:
    page = (PAGES / "differences.md").read_text()
    named = re.findall(
        r"^\| `([a-z0-9-]+)` \|", page.partition("## Steps")[2].partition("\n## ")[0], re.MULTILINE
    )
    assert named
    assert set(named) <= set(STEP_KINDS)
