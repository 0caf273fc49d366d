"""What a preview puts on GitHub: the promotion branch and its pull request.

Everything here is done by looking first, so that a second run after a crash ends in the same branch, the same commits
and the same pull request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bot.domain.files import Change, CommitId, TreeId
from bot.domain.github import Repository
from bot.domain.promotion import Promotion
from bot.domain.review import PreparedCommit, Preview
from bot.ports import Git, GitHub, Moved, Refused, Signature, TerminalError, TransientError
from bot.steps.pull_requests import is_free
from bot.workflow.targets import seed_target


@dataclass(frozen=True, slots=True)
class Texts:
    """Title and body of the pull request, already rendered and within GitHub's limits, and the labels it gets."""

    title: str
    body: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """The promotion branch as a preview found it: its tip, and whether people's commits are part of the preview."""

    tip: CommitId | None
    people: bool = False


@dataclass(frozen=True, slots=True)
class Publisher:
    """Writes promotion branches and opens pull requests. `author` is the bot's name and e-mail.

    `committer` is asked who commits in its place, given both.
    """

    git: Git
    github: GitHub
    author: tuple[str, str]
    committer: Callable[[str, str], tuple[str, str]] = lambda name, email: (name, email)

    @property
    def signs_as(self) -> tuple[str, str]:
        """Name and e-mail in the commits that are made now."""
        return self.committer(*self.author)

    async def leave_former(
        self, promotion: Promotion, preview: Preview, superseded: Sequence[Promotion]
    ) -> Promotion:
        """Close whatever pull request is open elsewhere than where this preview goes; the answer goes there.

        A Stage has one at a time: its own of a place that the pipeline no longer names, and those of Promotions that
        newer Freight superseded and whose branch it does not take over, or that somebody has pointed elsewhere.
        """
        place = (preview.target, preview.source)
        for former in superseded:
            if (former.target, former.source) != place or await self._is_retargeted(former):
                await self.close(former)
        if (promotion.target, promotion.source) == place:
            return promotion
        moved = replace(promotion, target=preview.target, source=preview.source)
        if promotion.pull is None:
            return moved
        await self.close(promotion)
        return replace(moved, pull=None, head=None, heads=(), own_commits=(), pushers=(), digest="")

    async def _is_retargeted(self, promotion: Promotion) -> bool:
        """Whether the pull request goes to another branch than it was opened for; by its place nobody would find it."""
        repository = self.github.repository_of(promotion.target.url) if promotion.target is not None else None
        if repository is None or promotion.pull is None or promotion.target is None:
            return False
        pull = await self.github.get_pull_request(repository, promotion.pull)
        return pull.base_branch != promotion.target.branch

    async def publish_branch(
        self, promotion: Promotion, preview: Preview, found: Branch, marker: str
    ) -> Promotion:
        """Make the branch's head carry the preview's digest; the answer knows head, heads and our commits.

        A target that does not exist begins with the base. A branch with only our commits is built anew on the base.
        People's commits are never overwritten: the digest then goes into an empty commit on top of theirs. Raises
        TransientError if the branch is no longer where the preview found it: the digest would then stand on commits
        that it does not speak of.
        """
        url = preview.target.url
        if promotion.pull is None:
            await seed_target(self.git, preview)
        await self.git.fetch(url)
        tip = await self.git.resolve(url, f"refs/heads/{promotion.branch}")
        if promotion.pull is not None and tip != found.tip:
            raise TransientError(
                f"{promotion.branch} was pushed to while its preview was made; it is previewed again",
                retry_after=0.0,
            )
        named = promotion.source if promotion.pull is None else ""
        if named and not await is_free(self.git, url, named, preview.base, promotion):
            # Another Stage, or a person, was quicker to use the name; whoever comes later meets our lease.
            raise TransientError(f"{named} was written meanwhile; it is previewed again")
        if found.people and tip is not None:
            return await self._on_top(promotion, preview, tip, marker)
        same = tip is not None and tip == promotion.head and promotion.digest == preview.digest
        if same and tip != promotion.drop:
            return promotion
        chain = await self._build(promotion, preview, marker)
        if tip != chain[-1]:
            await self._push(url, promotion.branch, chain[-1], expected=tip)
        return replace(
            promotion,
            head=chain[-1],
            heads=(chain[-1],),
            own_commits=tuple(chain),
            pushers=(),
            drop=None,
            base=preview.base,
            digest=preview.digest,
        )

    def check_place(self, preview: Preview) -> Repository:
        """The repository of the pull request. Raises TerminalError if it is not on the App's GitHub."""
        repository = self.github.repository_of(preview.target.url)
        if repository is None:
            raise TerminalError(
                f"the pull request would be in {preview.target.url}, which is not on the GitHub that the App lives on; "
                "name a branch there with `reviewIn` of a ReviewPolicy, or say `review: None`"
            )
        return repository

    async def open(self, promotion: Promotion, preview: Preview, texts: Texts) -> Promotion:
        """Open the pull request, or adopt the open one of the branch."""
        repository = self.check_place(preview)
        if promotion.pull is not None:
            # One promotion has one pull request, also if it was merged while this preview was made.
            return promotion
        pull = await self.github.open_pull_request(
            repository,
            head_branch=promotion.branch,
            base_branch=preview.target.branch,
            title=texts.title,
            body=texts.body,
        )
        if texts.labels:
            await self.github.set_labels(repository, pull.number, texts.labels)
        return replace(promotion, pull=pull.number)

    async def close(self, promotion: Promotion) -> None:
        """Close the pull request and delete the branch, if they are still there."""
        repository = self.github.repository_of(promotion.target.url) if promotion.target is not None else None
        if repository is not None and promotion.pull is not None:
            pull = await self.github.get_pull_request(repository, promotion.pull)
            if pull.open:
                await self.github.update_pull_request(repository, promotion.pull, state="closed")
        await self.delete_branch(promotion)

    async def delete_branch(self, promotion: Promotion) -> None:
        """Delete the promotion branch if it is where we last saw it; people's later pushes keep it alive.

        A branch that an author named is left to them: other work may start from it.
        """
        if promotion.target is None or promotion.head is None or not promotion.owns_branch:
            return
        await self.git.fetch(promotion.target.url)
        tip = await self.git.resolve(promotion.target.url, f"refs/heads/{promotion.branch}")
        if tip == promotion.head:
            await self.git.push(promotion.target.url, None, promotion.branch, expected=tip)

    async def _on_top(self, promotion: Promotion, preview: Preview, tip: CommitId, marker: str) -> Promotion:
        if promotion.digest == preview.digest:
            heads = promotion.heads if tip in promotion.heads else (*promotion.heads, tip)
            return replace(promotion, head=tip, heads=heads, base=preview.base)
        message = _with_trailers(
            f"preview of {promotion.stage} {promotion.freight.alias}", promotion, preview, marker
        )
        read = await self.git.read_commit(preview.target.url, tip)
        head = await self.git.commit(preview.target.url, read.tree, [tip], message, self._signature(preview))
        await self._push(preview.target.url, promotion.branch, head, expected=tip)
        return replace(
            promotion,
            head=head,
            heads=(head,),
            own_commits=(*promotion.own_commits, head),
            base=preview.base,
            digest=preview.digest,
        )

    async def _build(self, promotion: Promotion, preview: Preview, marker: str) -> list[CommitId]:
        url, signature = preview.target.url, self._signature(preview)
        title = f"prepare {promotion.stage} {promotion.freight.alias}"
        commits = list(preview.split.prepared) or [PreparedCommit(_empty_title(promotion), ())]
        parent, chain = preview.base, []
        tree = (await self.git.read_commit(url, parent)).tree
        for number, commit in enumerate(commits, start=1):
            tree = await self._write(url, tree, commit.changes)
            message = commit.message or title
            if number == len(commits):
                message = _with_trailers(message, promotion, preview, marker)
            parent = await self.git.commit(url, tree, [parent], message, signature)
            chain.append(parent)
        if tree == preview.tree:
            return chain
        # The checkout is of another branch, whose whole tree the target gets.
        said = commits[0].message if len(commits) == 1 else ""
        message = _with_trailers(said or title, promotion, preview, marker)
        return [await self.git.commit(url, preview.tree, [preview.base], message, signature)]

    async def _write(self, url: str, tree: TreeId, changes: tuple[Change, ...]) -> TreeId:
        return await self.git.write_tree(url, tree, {c.path: c.after for c in changes}) if changes else tree

    async def _push(self, url: str, branch: str, commit: CommitId, *, expected: CommitId | None) -> None:
        match await self.git.push(url, commit, branch, expected=expected):
            case Moved(tip=tip):
                raise TransientError(f"{branch} moved to {tip} while it was written; it is looked at again")
            case Refused(message=message):
                raise TerminalError(f"the push of {branch} to {url} was refused: {message}")

    def _signature(self, preview: Preview) -> Signature:
        return Signature(*self.signs_as, at=preview.made_at.replace(microsecond=0))


def _empty_title(promotion: Promotion) -> str:
    return f"promote {promotion.freight.alias} to {promotion.stage}"


def _with_trailers(message: str, promotion: Promotion, preview: Preview, marker: str) -> str:
    """The message with the trailers that bind the head to its preview."""
    trailers = [
        f"Lockstep-Freight: {promotion.freight.name}",
        f"Lockstep-Stage: {promotion.project}/{promotion.stage}",
        f"Lockstep-Promotion: {promotion.id}",
        f"Lockstep-Preview: {preview.digest}",
    ]
    if marker:
        trailers.append(f"Lockstep-Marker: {marker}")
    return message.rstrip() + "\n\n" + "\n".join(trailers) + "\n"
