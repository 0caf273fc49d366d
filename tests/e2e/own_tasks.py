"""Seeds in which every Stage runs a task of its own, so that one road carries several scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.e2e.pipelines import Seed, stage, task


def own_tasks(tasks: Mapping[str, Sequence[str]], *files: tuple[str, str | None], review: str = "") -> Seed:
    """A seed with these Stages, each with its steps and with Freight straight from the Warehouse."""
    listed = [task(steps).replace("name: promote", f"name: promote-{name}") for name, steps in tasks.items()]
    stages = [stage(name).replace("name: promote\n", f"name: promote-{name}\n") for name in tasks]
    made = (("config/promote.yaml", "---\n".join(listed)), ("config/stages.yaml", "---\n".join(stages)))
    return Seed(review=review, files=(*made, *files))
