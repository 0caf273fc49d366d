"""What receivers are told: realistic bodies of our own making for every vendor, and what hostile ones do."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.receiving import (
    SECRET_KEYS,
    Notice,
    PullRequestEnded,
    RefsMoved,
    TagsPushed,
    TargetsChosen,
)
from bot.domain.values import Json
from bot.payloads import PayloadProblem
from bot.payloads.generic import write_envelope
from bot.payloads.reading import UnsupportedEventError
from bot.payloads.receivers import RECEIVERS, read_notices
from tests.payloads.damage import JSON, replace_one

FOLDER = Path(__file__).parent / "receivers"
DIGEST = f"sha256:{'ab' * 32}"
ACR, DEVOPS = "AzureContainerRegistry/1.0", "VSServices/19.0"
MAIN = ("refs/heads/main",)
GITLAB = ("https://gitlab.acme.example/acme/ops.git", "git@gitlab.acme.example:acme/ops.git")
GITHUB = ("https://github.com/acme/charts.git", "git@github.com:acme/charts.git")
NOTHING = "of no interest"

EXPECTED: dict[str, tuple[str, object]] = {
    "artifactory.pushed": ("", TagsPushed("jfrog.acme.example/docker-local/pay/api", ("1.8.2",))),
    "artifactory.flat": ("", TagsPushed("jfrog.acme.example/docker-local/pay/api", ("1.8.2",))),
    "artifactory.promoted": ("", NOTHING),
    "azure.push": (ACR, TagsPushed("acme.azurecr.io/pay/api", ("1.8.2",))),
    "azure.ping": (ACR, ()),
    "azure.git_push": (DEVOPS, RefsMoved(("https://acme@dev.azure.com/acme/shop/_git/ops",), MAIN)),
    "azure.pull_merged": (
        DEVOPS,
        PullRequestEnded("https://dev.azure.com/acme/shop/_git/ops/pullrequest/7"),
    ),
    "azure.pull_abandoned": (
        DEVOPS,
        PullRequestEnded("https://dev.azure.com/acme/shop/_git/ops/pullrequest/7"),
    ),
    "azure.pull_updated": (DEVOPS, ()),
    "bitbucket.push": (
        "repo:push",
        RefsMoved(
            ("https://bitbucket.org/acme/ops",), ("refs/heads/main", "refs/tags/v1.2.0", "refs/heads/fix")
        ),
    ),
    "bitbucket.refs_changed": (
        "repo:refs_changed",
        RefsMoved(
            ("https://git.acme.example/scm/pay/ops.git", "ssh://git@git.acme.example:7999/pay/ops.git"), MAIN
        ),
    ),
    "bitbucket.fulfilled": (
        "pullrequest:fulfilled",
        PullRequestEnded("https://bitbucket.org/acme/ops/pull-requests/7"),
    ),
    "bitbucket.merged": (
        "pr:merged",
        PullRequestEnded("https://git.acme.example/projects/PAY/repos/ops/pull-requests/7"),
    ),
    "bitbucket.ping": ("diagnostics:ping", ()),
    "dockerhub.push": ("", TagsPushed("acme/api", ("1.8.2",))),
    "quay.push": ("", TagsPushed("quay.io/acme/api", ("1.8.2", "latest"))),
    "quay.older": ("", TagsPushed("quay.io/acme/api", ("1.8.2",))),
    "harbor.push": ("", TagsPushed("harbor.acme.example:8443/pay/api", ("1.8.2",))),
    "harbor.cloud_event": ("", TagsPushed("harbor.acme.example/pay/api", ("1.8.2",))),
    "harbor.scan": ("", NOTHING),
    "gitlab.push": ("Push Hook", RefsMoved(GITLAB, MAIN, ("charts/api/values.yaml", "README.md"))),
    "gitlab.long_push": ("Push Hook", RefsMoved(GITLAB, MAIN)),
    "gitlab.tag": ("Tag Push Hook", RefsMoved(GITLAB, ("refs/tags/v1.2.0",))),
    "gitlab.merge": (
        "Merge Request Hook",
        PullRequestEnded("https://gitlab.acme.example/acme/ops/-/merge_requests/7"),
    ),
    "gitlab.merge_updated": ("Merge Request Hook", ()),
    "gitlab.pipeline": ("Pipeline Hook", NOTHING),
    "gitea.push": (
        "push",
        RefsMoved(("https://gitea.acme.example/acme/ops.git",), MAIN, ("charts/api/values.yaml", "old.txt")),
    ),
    "gitea.pull_closed": ("pull_request", PullRequestEnded("https://gitea.acme.example/acme/ops/pulls/7")),
    "gitea.package": ("package", TagsPushed("gitea.acme.example/pay/api", ("1.8.2",))),
    "gitea.package_part": ("package", ()),
    "github.push": ("push", RefsMoved(GITHUB, MAIN, ("api/Chart.yaml", "README.md"))),
    "github.package": ("package", TagsPushed("ghcr.io/acme-corp/api:1.8.2", ("1.8.2",))),
    "github.registry_package": ("registry_package", TagsPushed("ghcr.io/acme-corp/api:1.8.2", ("1.8.2",))),
    "github.untagged": ("registry_package", ()),
    "github.pull_closed": ("pull_request", PullRequestEnded("https://github.com/acme/ops/pull/7")),
    "github.ping": ("ping", ()),
    "ecr.push": ("", TagsPushed("111122223333.dkr.ecr.eu-central-1.amazonaws.com/pay/api", ("1.8.2",))),
    "ecr.china": ("", TagsPushed("111122223333.dkr.ecr.cn-north-1.amazonaws.com.cn/pay/api", ("1.8.2",))),
    "ecr.cloud_event": (
        "",
        TagsPushed("111122223333.dkr.ecr.eu-central-1.amazonaws.com/pay/api", ("1.8.2",)),
    ),
    "ecr.by_digest": ("", ()),
    "ecr.delete": ("", NOTHING),
    "ecr.scan": ("", NOTHING),
    "gar.insert": ("", TagsPushed("europe-docker.pkg.dev/acme/pay/api", ("1.8.2",))),
    "gar.unwrapped": ("", TagsPushed("europe-docker.pkg.dev/acme/pay/api", ("1.8.2",))),
    "gar.untagged": ("", ()),
    "gar.delete": ("", NOTHING),
    "nexus.created": ("rm:repository:component", TagsPushed("nexus.acme.example:5000/pay/api", ("1.8.2",))),
    "nexus.deleted": ("rm:repository:component", ()),
    "distribution.push": ("", TagsPushed("registry.acme.example:5000/pay/payments-api", ("1.8.2",))),
    "ci.image": ("", TagsPushed("registry.acme.example/pay/api", ("1.8.2",))),
    "ci.git": ("", RefsMoved(("https://git.acme.example/pay/ops.git",), MAIN)),
    "generic.request": ("", TargetsChosen("Warehouse", "apps", {})),
}
CONFIGS: dict[str, dict[str, Json]] = {
    "nexus": {"registry": "nexus.acme.example:5000"},
    "generic": {
        "actions": [{"action": "Refresh", "targetSelectionCriteria": [{"kind": "Warehouse", "name": "apps"}]}]
    },
}


def read(name: str, body: bytes) -> tuple[Notice, ...]:
    vendor = name.partition(".")[0]
    return read_notices(vendor, EXPECTED[name][0], body, CONFIGS.get(vendor, {}))


def test_every_kind_has_a_reader_and_every_file_an_expectation() -> None:
    assert set(RECEIVERS) == set(SECRET_KEYS) == {name.partition(".")[0] for name in EXPECTED}
    assert {path.stem for path in FOLDER.glob("*.json")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_delivery_becomes_what_it_tells(name: str) -> None:
    _, expected = EXPECTED[name]
    body = (FOLDER / f"{name}.json").read_bytes()
    if expected == NOTHING:
        with pytest.raises(UnsupportedEventError):
            read(name, body)
    else:
        assert read(name, body) == (expected if isinstance(expected, tuple) else (expected,))


@pytest.mark.parametrize(
    ("vendor", "config", "name", "repository"),
    [
        (
            "artifactory",
            {"virtualRepoName": "docker"},
            "artifactory.pushed",
            "jfrog.acme.example/docker/pay/api",
        ),
        ("distribution", {"registry": "r.example"}, "distribution.push", "r.example/pay/payments-api"),
    ],
    ids=["a virtual repository of Artifactory", "a registry that clients know by another name"],
)
def test_the_receiver_names_what_the_payload_cannot(
    vendor: str, config: dict[str, Json], name: str, repository: str
) -> None:
    (pushed,) = read_notices(vendor, "", (FOLDER / f"{name}.json").read_bytes(), config)
    assert pushed == TagsPushed(repository, ("1.8.2",))


def test_a_push_of_very_many_commits_says_nothing_of_its_paths() -> None:
    document = json.loads((FOLDER / "github.push.json").read_text())
    document["commits"] *= 2048
    (moved,) = read_notices("github", "push", json.dumps(document).encode(), {})
    assert moved == RefsMoved(GITHUB, MAIN)


@pytest.mark.parametrize(
    ("vendor", "event", "body", "message"),
    [
        ("artifactory", "", {"domain": "docker", "event_type": "pushed", "path": "a/b/c"}, "Custom Base URL"),
        (
            "artifactory",
            "",
            {"domain": "docker", "event_type": "pushed", "jpd_origin": "https://[x", "path": "a/b/c"},
            "no address",
        ),
        (
            "artifactory",
            "",
            {"domain": "docker", "event_type": "pushed", "jpd_origin": "https://a.example", "path": "a"},
            "image/tag/file",
        ),
        ("ecr", "", {"source": "aws.ecr", "detail-type": "ECR Image Action"}, "detail: is missing"),
        (
            "ecr",
            "",
            {
                "source": "aws.ecr",
                "detail-type": "ECR Image Action",
                "account": "evil.example/",
                "region": "eu-central-1",
                "detail": {"result": "SUCCESS", "action-type": "PUSH", "repository-name": "x"},
            },
            "twelve digits",
        ),
        ("gar", "", {"message": {"data": "%%%"}}, "message.data: JSON in base64"),
        ("gar", "", {"message": {"data": "e30"}}, "message.data: JSON in base64"),
        ("gar", "", {"message": {}}, "message.data: is missing"),
        (
            "gitea",
            "package",
            {"action": "created", "package": {"type": "container", "html_url": "//[a"}},
            "address",
        ),
        ("github", "package", {"action": "published", "package": {}}, "package_version: is missing"),
        ("quay", "", {"docker_url": "q", "updated_tags": [1]}, "a string was expected"),
        ("ci", "", {}, "give image and tag"),
        ("ci", "", {"image": "r.example/a"}, "tag: is missing"),
        ("generic", "", {"body": "{"}, "the body is no JSON"),
    ],
)
def test_a_wrong_body_is_named(vendor: str, event: str, body: object, message: str) -> None:
    with pytest.raises(PayloadProblem, match=message) as caught:
        read_notices(vendor, event, json.dumps(body).encode(), {})
    assert not isinstance(caught.value, UnsupportedEventError)


# -- Hostile bodies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff\xfe\x00", id="no text"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[" * 200_000, id="deep lists"),
        pytest.param(b'{"a":' * 200_000, id="deep objects"),
        pytest.param(b'{"ref": NaN}', id="no JSON number"),
    ],
)
@pytest.mark.parametrize("vendor", sorted(RECEIVERS))
def test_a_hostile_body_is_a_problem(vendor: str, body: bytes) -> None:
    event = next(event for name, (event, _) in EXPECTED.items() if name.startswith(f"{vendor}."))
    with pytest.raises(PayloadProblem):
        read_notices(vendor, event, body, CONFIGS.get(vendor, {}))


@pytest.mark.parametrize("depth", [400, 3000])
def test_a_generic_body_of_any_depth_is_read_or_a_problem(depth: int) -> None:
    body = write_envelope("POST", "/", [], b"[" * depth + b"]" * depth)
    with suppress(PayloadProblem):
        assert read_notices("generic", "", body, CONFIGS["generic"])


@given(name=st.sampled_from(sorted(EXPECTED)), seed=st.integers(0, 2**32), value=JSON)
def test_one_value_replaced_anywhere_gives_notices_or_a_problem(name: str, seed: int, value: object) -> None:
    document: Any = json.loads((FOLDER / f"{name}.json").read_text())
    if not replace_one(document, seed, value):
        return
    # Any other exception fails the test.
    with suppress(PayloadProblem):
        read(name, json.dumps(document).encode())


@given(
    vendor=st.sampled_from(sorted(RECEIVERS)), event=st.text(max_size=20), body=st.binary(max_size=200) | JSON
)
def test_anything_at_all_gives_notices_or_a_problem(vendor: str, event: str, body: object) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with suppress(PayloadProblem):
        read_notices(vendor, event, raw, CONFIGS.get(vendor, {}))
