from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.model import (
    ChartSubscription,
    CommitSelectionStrategy,
    GitSubscription,
    ImageSelectionStrategy,
    ImageSubscription,
)
from bot.domain.selection import (
    BranchCommit,
    GitTag,
    accepts_git_ref,
    accepts_image_tag,
    keep_by_paths,
    keep_newest_builds,
    matches_platform,
    order_branch_commits,
    order_chart_versions,
    order_git_tags,
    order_image_tags,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
IMAGE = ImageSubscription("reg.example/a/b", constraint="^1.0.0", ignore_tags_regexes=("-debug$",))


def test_ignored_tags_go_first_then_the_constraint() -> None:
    assert order_image_tags(IMAGE, ["1.0.0", "1.1.0-debug", "1.2.0", "2.0.0", "x"]) == ("1.2.0", "1.0.0")


def test_ten_thousand_tags_are_ordered() -> None:
    tags = [f"1.{number % 100}.{number // 100}" for number in range(10_000)]
    assert order_image_tags(IMAGE, tags)[0] == "1.99.99"


def test_an_event_counts_only_for_a_tag_that_could_be_chosen() -> None:
    assert accepts_image_tag(IMAGE, "1.5.0")
    assert not accepts_image_tag(IMAGE, "2.0.0")


def test_digest_follows_one_tag() -> None:
    subscription = ImageSubscription("a/b", strategy=ImageSelectionStrategy.DIGEST, constraint="latest")
    assert order_image_tags(subscription, ["latest", "1"]) == ("latest",)
    assert order_image_tags(subscription, ["1"]) == ()
    with pytest.raises(ValueError, match="needs the tag"):
        order_image_tags(ImageSubscription("a/b", strategy=ImageSelectionStrategy.DIGEST), ["latest"])


def test_newest_builds_are_cut_after_sorting() -> None:
    created = {"a": NOW, "b": NOW + timedelta(hours=1), "c": NOW}
    assert keep_newest_builds(created, 2) == ("b", "c")
    assert keep_newest_builds(created, 0) == ("b", "c", "a")


def test_platforms_are_compared_exactly() -> None:
    assert matches_platform("linux/arm64/v8", "linux", "arm64", "v8")
    assert not matches_platform("linux/arm64", "linux", "arm64", "v8")
    assert matches_platform("", "plan9", "mips")
    with pytest.raises(ValueError, match="no platform"):
        matches_platform("linux", "linux", "amd64")


def test_oci_charts_write_plus_as_underscore() -> None:
    subscription = ChartSubscription("oci://reg.example/c")
    assert order_chart_versions(subscription, ["1.0.0_b", "v2.0.0", "1.0"], oci=True) == ("1.0.0+b",)


def test_branch_commits_before_since_are_left_out() -> None:
    subscription = GitSubscription("https://git.example/a", since=NOW)
    commits = [BranchCommit("new", NOW), BranchCommit("old", NOW - timedelta(seconds=1))]
    assert [commit.id for commit in order_branch_commits(subscription, commits)] == ["new"]


def test_paths_are_asked_no_more_often_than_needed() -> None:
    asked: list[str] = []

    def changed(item: str) -> list[str]:
        asked.append(item)
        return ["env/a"]

    subscription = GitSubscription("https://git.example/a", include_paths=("env",), discovery_limit=2)
    assert keep_by_paths(subscription, "abcd", changed) == ("a", "b")
    assert asked == ["a", "b"]
    keep_by_paths(GitSubscription("https://git.example/a"), "abcd", changed)
    assert asked == ["a", "b"]


def test_an_expression_judges_tags_in_the_strategys_order() -> None:
    tags = [GitTag("v1.0.0", "1"), GitTag("v1.10.0", "2"), GitTag("v1.9.0", "3"), GitTag("nightly", "4")]
    subscription = GitSubscription("https://git.example/a", strategy=CommitSelectionStrategy.SEMVER)
    kept = order_git_tags(subscription, tags, lambda tag: tag.id != "3")
    assert [tag.tag for tag in kept] == ["v1.10.0", "v1.0.0"]


@pytest.mark.parametrize(
    ("subscription", "ref", "accepted"),
    [
        (GitSubscription("u"), "refs/heads/master", True),
        (GitSubscription("u"), "refs/heads/dev", False),
        (GitSubscription("u", branch="a/b"), "refs/heads/a/b", True),
        (GitSubscription("u", strategy=CommitSelectionStrategy.NEWEST_TAG), "refs/tags/x", True),
        (GitSubscription("u", strategy=CommitSelectionStrategy.NEWEST_TAG), "refs/tags/", False),
        (GitSubscription("u", strategy=CommitSelectionStrategy.NEWEST_TAG), "refs/heads/x", False),
    ],
)
def test_a_pushed_ref_concerns_a_subscription(
    subscription: GitSubscription, ref: str, accepted: bool
) -> None:
    assert accepts_git_ref(subscription, ref) is accepted
