"""What the port `Registry` promises, on the sandbox's registry and on Debian's real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.adapters.oci import OciRegistries
from bot.ports import Registry, TerminalError
from tests.adapters.oci.registries import (
    PASSWORD,
    USER,
    push_image,
    push_index,
    run_distribution,
    run_sandbox,
    signed_in,
)

RUNNERS = {"sandbox": run_sandbox, "docker-registry": run_distribution}
CREATED = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.fixture(params=sorted(RUNNERS))
async def host(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    async with RUNNERS[request.param](tmp_path) as running:
        yield running


@pytest.fixture
async def registry(host: str) -> AsyncIterator[OciRegistries]:
    async with OciRegistries(signed_in((USER, PASSWORD))) as registries:
        yield registries


async def test_it_lists_the_tags_that_were_pushed(host: str, registry: Registry) -> None:
    for tag in ("1.0.0", "1.1.0", "latest"):
        await push_image(host, "acme/app", tag)
    assert sorted(await registry.list_tags(f"{host}/acme/app")) == ["1.0.0", "1.1.0", "latest"]


async def test_an_unknown_repository_has_no_tags(host: str, registry: Registry) -> None:
    assert list(await registry.list_tags(f"{host}/acme/nothing")) == []


async def test_an_unknown_tag_is_none(host: str, registry: Registry) -> None:
    await push_image(host, "acme/app", "1.0.0")
    assert await registry.find_image(f"{host}/acme/app", "2.0.0") is None


async def test_an_image_has_its_digest_time_labels_and_platform(host: str, registry: Registry) -> None:
    digest = await push_image(
        host, "acme/app", "1.0.0", labels={"team": "pay", "both": "label"}, annotations={"both": "annotation"}
    )
    facts = await registry.find_image(f"{host}/acme/app", "1.0.0")
    assert facts is not None
    assert (facts.tag, facts.digest, facts.created_at) == ("1.0.0", digest, CREATED)
    assert dict(facts.annotations) == {"team": "pay", "both": "annotation"}
    assert facts.platforms == ("linux/amd64",)


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        pytest.param(
            {"org.opencontainers.image.created": "2025-05-05T05:05:05Z"},
            {},
            datetime(2025, 5, 5, 5, 5, 5, tzinfo=UTC),
            id="a label wins over the configuration",
        ),
        pytest.param(
            {"org.label-schema.build-date": "2024-04-04T04:04:04+02:00"},
            {},
            datetime(2024, 4, 4, 2, 4, 4, tzinfo=UTC),
            id="the old label counts too",
        ),
        pytest.param(
            {"org.opencontainers.image.created": "2025-05-05T05:05:05Z"},
            {"org.opencontainers.image.created": "2026-06-06T06:06:06Z"},
            datetime(2026, 6, 6, 6, 6, 6, tzinfo=UTC),
            id="an annotation wins over a label",
        ),
        pytest.param(
            {"org.opencontainers.image.created": "last Tuesday"},
            {},
            CREATED,
            id="a label that is no time is nothing",
        ),
    ],
)
async def test_when_an_image_was_created(
    host: str, registry: Registry, labels: dict[str, str], annotations: dict[str, str], expected: datetime
) -> None:
    await push_image(host, "acme/app", "1", labels=labels, annotations=annotations)
    facts = await registry.find_image(f"{host}/acme/app", "1")
    assert facts is not None
    assert facts.created_at == expected


async def test_an_index_is_its_own_digest_its_platforms_and_its_newest_image(
    host: str, registry: Registry
) -> None:
    amd = await push_image(host, "acme/app", "", created="2026-01-01T00:00:00Z")
    arm = await push_image(
        host, "acme/app", "", created="2026-02-02T00:00:00Z", platform=("linux", "arm64", "v8")
    )
    attestation = await push_image(host, "acme/app", "", created="2027-01-01T00:00:00Z")
    digest = await push_index(
        host,
        "acme/app",
        "2.0.0",
        {
            amd: {"os": "linux", "architecture": "amd64"},
            arm: {"os": "linux", "architecture": "arm64", "variant": "v8"},
            attestation: {"os": "unknown", "architecture": "unknown"},
        },
    )
    facts = await registry.find_image(f"{host}/acme/app", "2.0.0")
    assert facts is not None
    assert facts.digest == digest
    assert facts.platforms == ("linux/amd64", "linux/arm64/v8")
    assert facts.created_at == datetime(2026, 2, 2, tzinfo=UTC)


async def test_a_moved_tag_has_the_new_digest(host: str, registry: Registry) -> None:
    first = await push_image(host, "acme/app", "latest", labels={"n": "1"})
    before = await registry.find_image(f"{host}/acme/app", "latest")
    second = await push_image(host, "acme/app", "latest", labels={"n": "2"})
    after = await registry.find_image(f"{host}/acme/app", "latest")
    assert before is not None
    assert after is not None
    assert (before.digest, after.digest) == (first, second)


async def test_two_tags_of_one_image_keep_their_own_names(host: str, registry: Registry) -> None:
    await push_image(host, "acme/app", "1")
    await push_image(host, "acme/app", "stable")
    one = await registry.find_image(f"{host}/acme/app", "1")
    other = await registry.find_image(f"{host}/acme/app", "stable")
    assert one is not None
    assert other is not None
    assert (one.tag, other.tag) == ("1", "stable")
    assert one.digest == other.digest


@pytest.mark.parametrize("user", [None, ("robot", "wrong")])
async def test_without_the_right_password_it_says_what_to_check(
    host: str, user: tuple[str, str] | None
) -> None:
    await push_image(host, "acme/app", "1")
    async with OciRegistries(signed_in(user)) as registry:
        with pytest.raises(TerminalError, match=r"Secret"):
            await registry.list_tags(f"{host}/acme/app")
