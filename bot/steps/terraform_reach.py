"""Which files a Terraform directory reaches: its own, local modules, variable files and files that it reads.

What cannot be followed makes the whole checkout an input, with the reason: too much is planned again needlessly, too
little would be applied unseen.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bot.domain.files import Entry, File, Mode
from bot.editors.errors import EditError
from bot.editors.hcl import find_backend, find_file_calls, find_module_sources
from bot.ports import Git
from bot.steps.checkout import Checkout
from bot.steps.worktree import inside_path, join

_CODE = (".tf", ".tofu")
_JSON_CODE = (".tf.json", ".tofu.json")
_STATE = re.compile(
    r"(^|/)(terraform\.tfstate\.d/.*|[^/]*\.tfstate(\.[^/]*)?|\.terraform\.tfstate\.lock\.info|crash(\.[^/]*)?\.log)$"
)
_ROOTED = re.compile(r"\$\{path\.(module|root|cwd)\}/?")
_UPWARD = re.compile(r'"((?:(?:[^"\\\n]|\\.)*[/}])?\.\.(?:/(?:[^"\\\n]|\\.)*)?)"')
_READS_FILES = re.compile(rb"\b(file\w*|templatefile)\s*\(")
_GLOB = re.compile(r"[*?\[{]")
_MAX_LINKS = 16


class View:
    """The files of one checkout, as the walk sees them now or as its base has them."""

    def __init__(
        self, git: Git, url: str, entries: Mapping[str, Entry], overlay: Mapping[str, File | None]
    ) -> None:
        self._git = git
        self._url = url
        self._entries = entries
        self._overlay = overlay
        gone = {path for path, file in overlay.items() if file is None}
        self.paths = frozenset((set(entries) | set(overlay)) - gone)

    @classmethod
    def current(cls, git: Git, checkout: Checkout) -> View:
        """The checkout with what the walk wrote into it."""
        return cls(git, checkout.pin.url, checkout.files, checkout.overlay)

    @classmethod
    def base(cls, git: Git, checkout: Checkout, entries: Mapping[str, Entry]) -> View:
        """A tree of the checkout's repository without anything written into it."""
        return cls(git, checkout.pin.url, entries, {})

    def entry(self, path: str) -> Entry:
        """Mode and content id of an existing path."""
        written = self._overlay.get(path)
        return written.entry if written is not None else self._entries[path]

    def written(self, path: str) -> File | None:
        """What the walk wrote to a path, None if nothing."""
        return self._overlay.get(path)

    def below(self, directory: str) -> set[str]:
        """The path itself, if it is a file, and all files below it; state files are left out."""
        return {
            path
            for path in self.paths
            if inside_path(directory, path) is not None and not _STATE.search(path)
        }

    def states_below(self, directory: str) -> set[str]:
        """The state files below a directory."""
        return {
            path
            for path in self.paths
            if path.endswith(".tfstate") and inside_path(directory, path) is not None
        }

    async def load(self, paths: Iterable[str]) -> dict[str, File]:
        """The contents of existing paths; submodules are left out."""
        wanted = [path for path in paths if path in self.paths]
        stored = {path: self._entries[path] for path in wanted if self._overlay.get(path) is None}
        loaded = dict(await self._git.read_files(self._url, stored)) if stored else {}
        for path in wanted:
            written = self._overlay.get(path)
            if written is not None:
                loaded[path] = written
        return loaded

    async def resolve(self, path: str) -> str:
        """The path with symbolic links in it followed; one that leaves the checkout is returned with its `..`."""
        for _ in range(_MAX_LINKS):
            parts = path.split("/")
            above = ("/".join(parts[:length]) for length in range(1, len(parts) + 1))
            link = next((p for p in above if p in self.paths and self.entry(p).mode is Mode.SYMLINK), None)
            if link is None:
                break
            target = (await self.load([link]))[link].data.decode("utf-8", "replace")
            rest = path[len(link) :].lstrip("/")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(link), target, rest))
            if path.startswith(("/", "../")):
                break
        return path

    async def read_code(self, paths: Iterable[str]) -> dict[str, str]:
        """The texts of these paths, links followed."""
        real = {path: await self.resolve(path) for path in paths}
        loaded = await self.load(real.values())
        return {
            path: loaded[target].data.decode("utf-8", "replace")
            for path, target in real.items()
            if target in loaded
        }


@dataclass(slots=True)
class Reach:
    """Paths inside the checkout; `whole` says why it is all of them.

    `backend` is that of the root module; with `unread` code in it there may be another.
    """

    paths: set[str] = field(default_factory=set)
    whole: str = ""
    backend: str = ""
    unread: bool = False


async def find_reach(view: View, directory: str, variable_files: Iterable[str]) -> Reach:
    """Everything that Terraform may read when it runs in a directory of the checkout."""
    reach = Reach()
    waiting, seen = [directory], set[str]()
    reach.paths |= {path for path in variable_files if path in view.paths}
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        reach.paths |= view.below(module)
        real = await view.resolve(module)
        if real != module:
            waiting.append(real)
            continue
        own = {path for path in view.paths if posixpath.dirname(path) == module.removeprefix(".")}
        if any(path.endswith(_JSON_CODE) for path in own):
            reach.whole = reach.whole or f"{module} holds Terraform in JSON, which is not followed"
            reach.unread = reach.unread or module == directory
        code = await view.read_code(sorted(path for path in own if path.endswith(_CODE)))
        for path, text in code.items():
            try:
                waiting += _follow(view, reach, text, module, directory)
                backend = find_backend(text) if module == directory else None
            except EditError as error:
                reach.whole = reach.whole or f"{path} is not understood: {error}"
                reach.unread = reach.unread or module == directory
                continue
            if backend is not None:
                reach.backend = backend[0]
    await _follow_links(view, reach)
    await _check_templates(view, reach, directory)
    if reach.whole:
        reach.paths = view.below(".")
    return reach


def _follow(view: View, reach: Reach, text: str, module: str, root: str) -> list[str]:
    """The local modules that a file calls; the files that it reads are added to the reach."""
    modules = []
    known: set[str] = set()
    for line, source in find_module_sources(text):
        if source is None:
            reach.whole = reach.whole or f"a module's source in {module}, line {line}, must be computed"
        elif source.startswith(("./", "../")) or source in (".", ".."):
            known.add(source)
            modules.append(posixpath.normpath(posixpath.join(module, source)))
    calls = find_file_calls(text)
    if calls is None:
        reach.whole = reach.whole or f"{module} reads a file whose path must be computed"
    # An attribute such as a provider's `source_dir` reads files too; what climbs out of the module is followed.
    for path in [*(calls or ()), *(found for found in _UPWARD.findall(text) if found not in known)]:
        _add(view, reach, path, module, root)
    return [found for found in modules if not found.startswith("..")]


def _add(view: View, reach: Reach, path: str, module: str, root: str) -> None:
    start = _ROOTED.match(path)
    base = module if start is not None and start[1] == "module" else root
    rest = path[start.end() :] if start is not None else path
    if "${" in rest or "%{" in rest:
        reach.whole = reach.whole or f"{module} names the path {path!r}, which must be computed"
        return
    if posixpath.isabs(rest):
        return
    parts = rest.split("/")
    literal = next((number for number, part in enumerate(parts) if _GLOB.search(part)), len(parts))
    target = posixpath.normpath(join(base, "/".join(parts[:literal]) or "."))
    if not target.startswith(".."):
        reach.paths |= view.below(target)


async def _follow_links(view: View, reach: Reach) -> None:
    """Add what symbolic links of the reach point to."""
    done: set[str] = set()
    while links := {path for path in reach.paths - done if view.entry(path).mode is Mode.SYMLINK}:
        done |= links
        for path in links:
            target = await view.resolve(path)
            if not target.startswith(("/", "..")):
                reach.paths |= view.below(target)


async def _check_templates(view: View, reach: Reach, directory: str) -> None:
    """A template outside of the code may read files by itself; then nobody knows which."""
    if reach.whole:
        return
    others = sorted(
        path
        for path in reach.paths
        if path.endswith((".tftpl", ".tpl", ".tmpl")) and not path.endswith(_CODE)
    )
    for path, file in (await view.load(others)).items():
        if _READS_FILES.search(file.data):
            reach.whole = f"the template {path} of {directory} reads files by itself"
            return
