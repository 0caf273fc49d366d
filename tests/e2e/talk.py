"""What people ask of the bot, what it answers, and how the simulated GitHub is made to misbehave."""

from __future__ import annotations

import asyncio
from typing import Any

from bot.sandbox.github import webhooks
from bot.sandbox.github.records import Comment, Delivery, Reaction
from bot.sandbox.github.rules import BranchRules, Bypass
from tests.e2e.road import OPERATIONS, Road

_MAINTAIN = 2


async def say(road: Road, number: int, text: str, user: str = "rafael", *, answer: str = "rocket") -> str:
    """Give a command and wait for the reaction that answers it; the answer is the reply's text, if there is one."""
    comment = await road.comment(number, text, user)

    async def answered() -> bool:
        return answer in reactions(road, comment) and (answer == "rocket" or bool(reply(road, comment)))

    await road.until(f"a reaction {answer!r} to {text!r}", answered)
    return reply(road, comment)


async def wait_for_reply(road: Road, comment: int) -> str:
    """The App's reply to a comment, once it is there with the reaction that goes with it."""

    async def probe() -> str | None:
        return (reply(road, comment) or None) if "rocket" in reactions(road, comment) else None

    return await road.until(f"a reply to the comment {comment}", probe)


def reactions(road: Road, comment: int) -> list[str]:
    """The App's reactions to a comment, oldest first."""
    found = road.sandbox.github.world.store.find(Reaction, subject_id=comment)
    return [reaction.content for reaction in sorted(found, key=lambda reaction: reaction.id)]


def replies(road: Road, comment: int) -> list[str]:
    """What the App replied to a comment."""
    found = road.sandbox.github.world.store.find(Comment, repo_id=road.repository.id)
    return [c.body for c in found if f"lockstep:reply:{comment} " in c.body]


def reply(road: Road, comment: int) -> str:
    """The App's first reply to a comment, empty if there is none (yet)."""
    return next(iter(replies(road, comment)), "")


async def misbehave(road: Road, **rule: Any) -> None:
    """Give the simulated GitHub a rule of misbehaviour: `kind`, and what it applies to."""
    answer = await road.client.post(f"{road.sandbox.github_url}/_sandbox/faults", json=[rule])
    answer.raise_for_status()


async def redeliver(road: Road, row: Delivery) -> None:
    """Press "Redeliver" on the App's page."""
    await asyncio.to_thread(webhooks.redeliver, road.sandbox.github.world, row)


def let_merges_queue(road: Road) -> None:
    """Give main a merge queue beside the required check."""
    bypass = (Bypass("Integration", road.demo.app_id), Bypass("RepositoryRole", _MAINTAIN))
    required = (("lockstep", road.demo.app_id),)
    rules = BranchRules(required_checks=required, required_reviews=0, bypass=bypass, merge_queue=True)
    road.sandbox.github.set_rules(OPERATIONS, "main", rules)


async def enqueue(road: Road, number: int, user: str = "rafael") -> None:
    """Put a pull request into the merge queue."""
    await asyncio.to_thread(road.sandbox.github.actions.enqueue, user, OPERATIONS, number)


async def push_again(road: Road, tag: str) -> None:
    """Push the image otel-app that is there already: the registry tells of it, as of a build that runs once more."""
    manifest = f"http://{road.sandbox.registry_host}/v2/otel-app/manifests/{tag}"
    accepted = (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    )
    known = await road.client.get(manifest, headers={"Accept": ", ".join(accepted)})
    kind = known.headers["content-type"]
    again = await road.client.put(manifest, content=known.content, headers={"Content-Type": kind})
    assert again.status_code == 201
