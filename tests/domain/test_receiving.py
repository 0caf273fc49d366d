"""Addresses of receivers, and whom a notice concerns."""

from __future__ import annotations

import pytest

from bot.domain.model import (
    ChartSubscription,
    CommitSelectionStrategy,
    GenericSubscription,
    GitSubscription,
    ImageSelectionStrategy,
    ImageSubscription,
    LabelRequirement,
    Metadata,
    Subscription,
    Warehouse,
    WebhookReceiver,
)
from bot.domain.promotion import State, StepRun, StepStatus
from bot.domain.receiving import (
    ActionFailed,
    Notice,
    PullRequestEnded,
    RefsMoved,
    TagsPushed,
    TargetsChosen,
    find_warehouses,
    receiver_path,
    waits_for_pull,
)
from bot.domain.values import Value

URL = "https://git.acme.example/pay/ops"
IMAGE = "reg.acme.example/pay/api"


def concerned(notice: Notice, *subscriptions: Subscription) -> bool:
    warehouse = Warehouse(Metadata("apps", "shop"), subscriptions)
    return find_warehouses(notice, {("shop", "apps"): warehouse}, "shop") == (("shop", "apps"),)


@pytest.mark.parametrize(
    ("subscription", "notice", "expected"),
    [
        pytest.param(
            GitSubscription(URL),
            RefsMoved((f"{URL}.git",), ("refs/heads/main",)),
            True,
            id="the default branch",
        ),
        pytest.param(
            GitSubscription(URL.upper()), RefsMoved((URL,), ("refs/heads/master",)), True, id="in capitals"
        ),
        pytest.param(
            GitSubscription(URL), RefsMoved((URL,), ("refs/heads/dev",)), False, id="another branch"
        ),
        pytest.param(
            GitSubscription(URL),
            RefsMoved((URL, ""), ("refs/tags/v1", "refs/heads/main")),
            True,
            id="one of the refs",
        ),
        pytest.param(GitSubscription(URL), RefsMoved((URL,), ()), False, id="no ref at all"),
        pytest.param(
            GitSubscription(URL),
            RefsMoved((f"{URL}2",), ("refs/heads/main",)),
            False,
            id="another repository",
        ),
        pytest.param(
            GitSubscription(""), RefsMoved(("",), ("refs/heads/main",)), False, id="no address at all"
        ),
        pytest.param(
            GitSubscription("git@git.acme.example:pay/ops.git"),
            RefsMoved((URL, "ssh://git@git.acme.example/pay/ops"), ("refs/heads/main",)),
            True,
            id="known by ssh",
        ),
        pytest.param(
            GitSubscription(URL, strategy=CommitSelectionStrategy.SEMVER, semver_constraint="^1"),
            RefsMoved((URL,), ("refs/tags/v1.2.0",)),
            True,
            id="a tag within the constraint",
        ),
        pytest.param(
            GitSubscription(URL, strategy=CommitSelectionStrategy.SEMVER, semver_constraint="^1"),
            RefsMoved((URL,), ("refs/tags/v2.0.0", "refs/heads/main")),
            False,
            id="a tag outside of it",
        ),
        pytest.param(
            GitSubscription(URL, include_paths=("charts",)),
            RefsMoved((URL,), ("refs/heads/main",), ("charts/a", "docs/b")),
            True,
            id="one path is included",
        ),
        pytest.param(
            GitSubscription(URL, include_paths=("charts",)),
            RefsMoved((URL,), ("refs/heads/main",), ("docs/b",)),
            False,
            id="no path is included",
        ),
        pytest.param(
            GitSubscription(URL, include_paths=("charts",)),
            RefsMoved((URL,), ("refs/heads/main",)),
            True,
            id="the paths are not known",
        ),
        pytest.param(
            GitSubscription(URL, include_paths=("regex:[",)),
            RefsMoved((URL,), ("refs/heads/main",)),
            True,
            id="a wrong pattern, which the look reports",
        ),
        pytest.param(
            ImageSubscription(IMAGE),
            RefsMoved((IMAGE,), ("refs/heads/main",)),
            False,
            id="an image is no repository of git",
        ),
        pytest.param(ImageSubscription(IMAGE), TagsPushed(IMAGE, ("1.8.2",)), True, id="an image's tag"),
        pytest.param(
            ImageSubscription(IMAGE),
            TagsPushed(f"{IMAGE}:1.8.2", ("1.8.2",)),
            True,
            id="with its tag in the name",
        ),
        pytest.param(
            ImageSubscription(IMAGE), TagsPushed(IMAGE, ("latest",)), False, id="a tag that is no version"
        ),
        pytest.param(
            ImageSubscription(IMAGE), TagsPushed(IMAGE, ("latest", "1.8.2")), True, id="one of the tags"
        ),
        pytest.param(ImageSubscription(IMAGE), TagsPushed(IMAGE, ("",)), False, id="untagged"),
        pytest.param(
            ImageSubscription("nginx"),
            TagsPushed("docker.io/library/nginx", ("1.0.0",)),
            True,
            id="Docker Hub's names",
        ),
        pytest.param(
            ImageSubscription(IMAGE, strategy=ImageSelectionStrategy.DIGEST, constraint="latest"),
            TagsPushed(IMAGE, ("latest",)),
            True,
            id="the tag that is followed",
        ),
        pytest.param(
            ImageSubscription(IMAGE, strategy=ImageSelectionStrategy.DIGEST),
            TagsPushed(IMAGE, ("latest",)),
            True,
            id="a strategy without its tag, which the look reports",
        ),
        pytest.param(ChartSubscription(f"oci://{IMAGE}"), TagsPushed(IMAGE, ("1.8.2",)), True, id="a chart"),
        pytest.param(
            ChartSubscription(f"oci://{IMAGE}"),
            TagsPushed(IMAGE, ("1.8.2_build.1",)),
            True,
            id="a chart with build data",
        ),
        pytest.param(
            ChartSubscription(f"oci://{IMAGE}", semver_constraint="^2"),
            TagsPushed(IMAGE, ("1.8.2",)),
            False,
            id="an older chart",
        ),
        pytest.param(
            ChartSubscription("https://charts.example", "api"),
            TagsPushed(IMAGE, ("1.8.2",)),
            False,
            id="a chart elsewhere",
        ),
        pytest.param(
            ImageSubscription(IMAGE),
            TagsPushed(IMAGE, ("latest",) * 1001),
            True,
            id="very many tags of an image",
        ),
        pytest.param(
            ChartSubscription(f"oci://{IMAGE}"),
            TagsPushed(IMAGE, ("x",) * 1001),
            True,
            id="very many tags of a chart",
        ),
        pytest.param(
            GitSubscription(URL), RefsMoved((URL,), ("refs/heads/x",) * 1001), True, id="very many refs"
        ),
        pytest.param(
            GitSubscription(URL, include_paths=("charts",)),
            RefsMoved((URL,), ("refs/heads/main",), ("docs/b",) * 1001),
            True,
            id="very many paths",
        ),
        pytest.param(GenericSubscription("x", "y"), TagsPushed(IMAGE, ("1.8.2",)), False, id="another type"),
        pytest.param(ImageSubscription(IMAGE), PullRequestEnded(f"{URL}/pull/7"), False, id="a pull request"),
        pytest.param(ImageSubscription(IMAGE), ActionFailed("x"), False, id="a failure"),
    ],
)
def test_whom_a_notice_concerns(subscription: Subscription, notice: Notice, *, expected: bool) -> None:
    assert concerned(notice, subscription) is expected


def test_one_subscription_is_enough() -> None:
    others = (GitSubscription(URL), ImageSubscription("reg.example/x"), ImageSubscription(IMAGE))
    assert concerned(TagsPushed(IMAGE, ("1.0.0",)), *others)


def test_a_receiver_of_a_project_sees_no_other_project() -> None:
    warehouses = {
        (project, "apps"): Warehouse(Metadata("apps", project), (ImageSubscription(IMAGE),))
        for project in ("shop", "bank")
    }
    pushed = TagsPushed(IMAGE, ("1.0.0",))
    assert find_warehouses(pushed, warehouses, "shop") == (("shop", "apps"),)
    assert set(find_warehouses(pushed, warehouses, "")) == set(warehouses)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        pytest.param(TargetsChosen("Warehouse"), {"apps", "jobs"}, id="everything"),
        pytest.param(TargetsChosen("Promotion"), set(), id="another kind"),
        pytest.param(TargetsChosen("Warehouse", "jobs"), {"jobs"}, id="by name"),
        pytest.param(TargetsChosen("Warehouse", "", {"team": "pay"}), {"apps"}, id="by label"),
        pytest.param(
            TargetsChosen("Warehouse", "", {}, (LabelRequirement("team", "DoesNotExist"),)),
            {"jobs"},
            id="by expression",
        ),
        pytest.param(
            TargetsChosen("Warehouse", subscribed=((URL, True),)), {"apps"}, id="by what it subscribes to"
        ),
        pytest.param(
            TargetsChosen("Warehouse", subscribed=((URL, False),)), {"jobs"}, id="by what it does not"
        ),
        pytest.param(TargetsChosen("Warehouse", "jobs", {"team": "pay"}), set(), id="all must hold"),
    ],
)
def test_what_a_generic_receiver_chooses(chosen: TargetsChosen, expected: set[str]) -> None:
    git, chart = GitSubscription(f"{URL}.git"), ChartSubscription(f"oci://{IMAGE}")
    other = GenericSubscription("x", "y")
    warehouses = {
        ("shop", "apps"): Warehouse(Metadata("apps", "shop", {"team": "pay"}), (git, chart, other)),
        ("shop", "jobs"): Warehouse(Metadata("jobs", "shop"), (ImageSubscription(IMAGE),)),
    }
    assert {name for _, name in find_warehouses(chosen, warehouses, "shop")} == expected


# -- Addresses -----------------------------------------------------------------------------------------------


def test_the_address_changes_with_project_name_and_secret() -> None:
    hub = WebhookReceiver("hub", "dockerhub", "s")
    given = [
        receiver_path("shop", hub, {"secret": "a"}),
        receiver_path("shop", hub, {"secret": "b"}),
        receiver_path("bank", hub, {"secret": "a"}),
        receiver_path("shop", WebhookReceiver("two", "dockerhub", "s"), {"secret": "a"}),
    ]
    assert len(set(given)) == 4
    assert all(path.startswith("/dockerhub/") and len(path) == len("/dockerhub/") + 64 for path in given)


@pytest.mark.parametrize(
    ("receiver", "secret"),
    [
        pytest.param(WebhookReceiver("r", "gitlab", "s"), {"secret": "a"}, id="another key"),
        pytest.param(
            WebhookReceiver("r", "quay", "s"), {"secret": ""}, id="an empty value, which anybody could guess"
        ),
        pytest.param(WebhookReceiver("r", "quay", ""), {}, id="no Secret"),
        pytest.param(WebhookReceiver("r", "ci", "s"), {}, id="a Secret that does not exist"),
    ],
)
def test_without_its_credential_a_receiver_has_no_address(
    receiver: WebhookReceiver, secret: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match="has no value under the key"):
        receiver_path("shop", receiver, secret)


def test_who_proves_himself_by_a_token_needs_no_secret() -> None:
    assert receiver_path("shop", WebhookReceiver("r", "gar", ""), {}).startswith("/gar/")


# -- Promotions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "kind", "page", "expected"),
    [
        (State.FULFILLING, "git-wait-for-pr", f"{URL}/pull/7", True),
        (State.FULFILLING, "git-wait-for-pr", f"{URL}/pull/7/", True),
        (State.FULFILLING, "git-wait-for-pr", f"{URL}/pull/70", False),
        (State.FULFILLING, "git-open-pr", f"{URL}/pull/7", False),
        (State.SUCCEEDED, "git-wait-for-pr", f"{URL}/pull/7", False),
        (State.FULFILLING, "git-wait-for-pr", None, False),
    ],
)
def test_which_promotion_waits_for_a_pull_request(
    state: State, kind: str, page: str | None, *, expected: bool
) -> None:
    output: dict[str, Value] = {"pr": {"url": page}} if page is not None else {}
    run = StepRun("wait", kind, 1, StepStatus.RUNNING, output=output)
    assert waits_for_pull(state, [run], f"{URL}/pull/7") is expected
