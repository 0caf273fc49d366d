"""Commits of people on a promotion branch: what the task writes from the base must be there, and is not done twice."""

from __future__ import annotations

import pytest

from tests.e2e.pipelines import TAG, C, M, P, S, commit, values
from tests.workflow.life_bed import Begin
from tests.workflow.life_pipeline import APPLY, BASE, POST, TFVARS, VALUES, tag_in

PARSE = """\
uses: yaml-parse
as: read
config:
  path: ./src/env/${{ ctx.stage }}/helm/values.yaml
  outputs:
    - {name: replicas, fromExpression: replicas}
    - {name: tag, fromExpression: image.tag}
"""
GROW = values(TAG, ("replicas", "${{ task.outputs['read'].replicas + 1 }}"))
MORE = """\
uses: hcl-update
config:
  path: ./src/env/${{ ctx.stage }}/terraform/main.auto.tfvars
  updates:
    - key: fn__memory
      value: ${{ quote(128 * (task.outputs['read'].replicas + 1)) }}
"""
MEMORY = MORE.replace("${{ quote(128 * (task.outputs['read'].replicas + 1)) }}", "'512'")
HISTORY = values(("env.LEVEL", "from-${{ task.outputs['read'].tag }}"))
PLAIN = commit("Promote ${{ ctx.stage }}")
AGAIN, PUSH = PLAIN.replace("as: commit", "as: recommit"), P.replace("git-push", "git-push\nas: again")


def test_a_number_that_grows_has_grown_once_beside_an_edit_of_a_person(begin: Begin) -> None:
    life = begin(C, PARSE, GROW, PLAIN, P, S)
    life.release(1)
    before = life.promotion.digest
    life.edit("README.md", "read me", "read it")
    assert (life.promotion.reason, life.preview.held) == ("0 of 1 approvals", "")
    assert life.promotion.digest != before
    life.merge()
    assert ("replicas: 2\n" in life.text(), tag_in(life.text())) == (True, "1")
    assert life.text("README.md") == "read it\n"


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        pytest.param(VALUES, "replicas: 2", "replicas: 1", id="the number is set back"),
        pytest.param(VALUES, "pull: Always", "pull: Never", id="another line of the file that it grows in"),
    ],
)
def test_a_number_that_grows_is_not_held_where_its_file_differs(
    begin: Begin, path: str, old: str, new: str
) -> None:
    life = begin(C, PARSE, GROW, PLAIN, P, S)
    life.release(1)
    life.edit(path, old, new)
    assert f"does not hold what the task writes to {path}" in life.promotion.reason
    life.edit(path, new, old)
    assert life.promotion.reason == "0 of 1 approvals"


def test_what_is_committed_later_is_made_of_what_was_read_from_the_base(begin: Begin) -> None:
    steps = (C, PARSE, values(TAG), PLAIN, P, POST, HISTORY, AGAIN, PUSH)
    life = begin(*steps)
    life.release(1)
    life.edit("README.md", "read me", "read it")
    (later,) = life.preview.split.deferred.changes
    assert b"LEVEL: from-0\n" in (later.after.data if later.after is not None else b"")
    life.merge()
    assert "LEVEL: from-0\n" in life.text()


def test_what_is_committed_later_stands_beside_an_edit_of_a_person(begin: Begin) -> None:
    life = begin(C, PARSE, MORE, GROW, APPLY, M, P, S)
    life.release(1)
    life.edit(VALUES, "pull: Always", "pull: Never")
    assert life.promotion.reason == "0 of 1 approvals"
    life.merge()
    assert ("replicas: 2\n" in life.text(), "pull: Never\n" in life.text()) == (True, True)
    assert 'fn__memory = "256"' in life.text(TFVARS)
    (state,) = life.world.terraform.states.values()
    assert "256" in str(state.resources)


def test_an_edit_that_waits_is_made_behind_one_of_the_same_file_that_does_not(begin: Begin) -> None:
    steps = (C, values(TAG), PLAIN, P, values(("env.LEVEL", "debug")), MEMORY, APPLY, AGAIN, PUSH)
    life = begin(*steps)
    life.release(1)
    life.merge()
    assert (tag_in(life.text()), "LEVEL: debug\n" in life.text()) == ("1", True)
    assert 'fn__memory = "512"' in life.text(TFVARS)


def test_what_an_edit_of_terraform_defers_is_not_done_on_top_of_itself(begin: Begin) -> None:
    life = begin(C, APPLY, PARSE, GROW, M, P, S)
    life.release(1)
    life.merge()
    assert "replicas: 2\n" in life.text()
    life.release(2)
    assert life.preview.split.deferred.changes == ()
    life.edit(TFVARS, '"128"', '"256"')
    assert f"does not hold what the task writes to {VALUES}" in life.promotion.reason


def test_the_same_branch_has_the_same_digest_on_any_replica(begin: Begin) -> None:
    life = begin(C, PARSE, GROW, PLAIN, P, S)
    life.release(1)
    life.edit("README.md", "read me", "read it")
    assert life.preview_again().digest == life.promotion.digest
    assert BASE["README.md"] == "read me\n"
