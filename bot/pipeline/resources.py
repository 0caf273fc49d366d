"""From files to resources: documents with a kind, a name and a project, each admitted or complained about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from bot.domain.model import Metadata, Source
from bot.domain.problems import ConfigProblem, Severity
from bot.domain.values import Json
from bot.pipeline.access import list_at, mapping_at, text_at
from bot.pipeline.deprecations import modernize
from bot.pipeline.field_patterns import is_valid_field
from bot.pipeline.kinds.custom_steps import admit_definition
from bot.pipeline.kinds.registry import GROUPS, KINDS, Kind, Scope
from bot.pipeline.reader import Marks, Path, ReadDocument, read_documents
from bot.pipeline.schema import Finding, check, nearest, show_path, shown

EXTENSIONS = (".yaml", ".yml", ".json")
"""Files that are read; all others are passed over."""
MAX_TOTAL = 16 * 1024 * 1024
MOST_FINDINGS = 100
"""So many problems of one resource are told one by one; nobody reads more."""
PROJECT_LABEL = "kargo.akuity.io/project"


@dataclass(slots=True)
class Resource:
    """One document: its kind, its place, and its `spec` with today's field names and without nulls.

    `body` is the whole document as written; `prefix` leads from the file's document to it (items of a List).
    """

    path: str
    marks: Marks
    kind: Kind
    name: str
    namespace: str
    body: dict[str, Json]
    spec: dict[str, Json] = field(default_factory=dict)
    prefix: Path = ()
    usable: bool = True

    def line(self, path: Path = ()) -> int:
        """The line of a key path, or of what is nearest to it."""
        return self.marks.line_at((*self.prefix, *path))

    def locate(self, path: Path) -> Source:
        """The place of a key path."""
        return Source(self.path, self.line(path))

    def problem(self, finding: Finding, *, stage: str = "", project: str = "") -> ConfigProblem:
        """A finding as a problem, at its place in the file."""
        key = show_path((*self.prefix, *finding.path))
        line = self.line(finding.path)
        return ConfigProblem(self.path, line, key, finding.message, finding.severity, stage, project)

    def metadata(self) -> Metadata:
        """The metadata that has a meaning here."""
        given = mapping_at(self.body, "metadata")
        labels, annotations = (mapping_at(given, key) for key in ("labels", "annotations"))
        return Metadata(
            name=self.name,
            namespace=self.namespace,
            labels={key: str(value) for key, value in labels.items()},
            annotations={key: str(value) for key, value in annotations.items()},
            source=self.locate(()),
        )


@dataclass(slots=True)
class Reading:
    """What was read: resources in the order of the files, declared projects, problems so far."""

    resources: list[Resource] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)
    problems: list[ConfigProblem] = field(default_factory=list)


def read_resources(files: Mapping[str, str]) -> Reading:
    """Every resource of the files, and everything that is wrong with each by itself."""
    reading = Reading()
    texts = {path: files[path] for path in sorted(files) if path.lower().endswith(EXTENSIONS)}
    total = sum(map(len, texts.values()))
    if not texts:
        message = "the configuration holds no .yaml file"
        reading.problems.append(ConfigProblem("", 0, "", message))
    elif total > MAX_TOTAL:
        message = f"the configuration has {total:,} characters, and more than {MAX_TOTAL:,} are not read"
        reading.problems.append(ConfigProblem("", 0, "", message))
    else:
        for path, text in texts.items():
            for document in read_documents(text):
                _read_document(path, document, reading)
    _assign_projects(reading)
    for resource in reading.resources:
        _admit(resource, reading.problems)
    _refuse_doubles(reading)
    return reading


def _read_document(path: str, document: ReadDocument, reading: Reading) -> None:
    for complaint in document.complaints:
        severity = Severity.ERROR if complaint.fatal else Severity.WARNING
        key = show_path(complaint.path)
        reading.problems.append(ConfigProblem(path, complaint.line, key, complaint.message, severity))
    if document.value is not None:
        _read_value(path, document, document.value, (), reading)


def _read_value(path: str, document: ReadDocument, value: Json, prefix: Path, reading: Reading) -> None:
    def report(message: str, severity: Severity, *key: str) -> None:
        where = (*prefix, *key)
        line = document.marks.line_at(where)
        reading.problems.append(ConfigProblem(path, line, show_path(where), message, severity))

    if not isinstance(value, dict):
        report("this is no resource: a mapping with apiVersion and kind is expected", Severity.ERROR)
        return
    api_version, name = text_at(value, "apiVersion"), text_at(value, "kind")
    if not api_version or not name:
        missing = "apiVersion" if not api_version else "kind"
        hint = nearest(missing, value)
        report(f"'{missing}' is missing, so this document is passed over{hint}", Severity.WARNING)
        return
    if (api_version, name) == ("v1", "List") and not prefix:
        for index, item in enumerate(list_at(value, "items")):
            _read_value(path, document, item, ("items", index), reading)
        return
    _note_namespace(api_version, name, value, reading)
    kind = KINDS.get((api_version, name))
    if kind is None:
        _report_unknown(api_version, name, report)
        return
    metadata = mapping_at(value, "metadata")
    if kind.passed_over:
        report(f"{name} {kind.passed_over}", Severity.WARNING)
        return
    namespace = "" if kind.scope is Scope.CLUSTER else text_at(metadata, "namespace")
    resource = Resource(
        path, document.marks, kind, text_at(metadata, "name"), namespace, value, prefix=prefix
    )
    reading.resources.append(resource)
    if name == "Project" and resource.name:
        reading.projects.append(resource.name)


def _note_namespace(api_version: str, name: str, value: dict[str, Json], reading: Reading) -> None:
    """A Namespace that Kargo has adopted is a project too."""
    metadata = mapping_at(value, "metadata")
    labelled = text_at(mapping_at(metadata, "labels"), PROJECT_LABEL) == "true"
    if (api_version, name) == ("v1", "Namespace") and labelled and text_at(metadata, "name"):
        reading.projects.append(text_at(metadata, "name"))


def _report_unknown(api_version: str, name: str, report: Callable[..., None]) -> None:
    group = api_version.partition("/")[0]
    if group not in GROUPS:
        # Deployments, roles and the like share files with Kargo's kinds; a kind of ours under another version
        # does not.
        near = [known for known, kind in KINDS if kind == name and nearest(group, [known.partition("/")[0]])]
        if near and group != near[0].partition("/")[0]:
            message = f"apiVersion {shown(api_version)} is not known; did you mean {near[0]!r}?"
            report(message, Severity.WARNING, "apiVersion")
        return
    versions = [known for known, kind in KINDS if kind == name]
    if versions:
        message = f"apiVersion {shown(api_version)} is not known for {name}; did you mean {versions[0]!r}?"
        report(message, Severity.WARNING, "apiVersion")
        return
    kinds = [kind for known, kind in KINDS if known.partition("/")[0] == group]
    report(f"kind {shown(name)} is not known and passed over{nearest(name, kinds)}", Severity.WARNING, "kind")


# -- Projects ----------------------------------------------------------------------------------------------------


def _assign_projects(reading: Reading) -> None:
    """Give every resource its project; say which project is missing."""
    named = dict.fromkeys(item.namespace for item in reading.resources if item.kind.scope is Scope.PROJECT)
    implied = [namespace for namespace in named if namespace]
    declared = list(dict.fromkeys(reading.projects))
    reading.projects = list(dict.fromkeys([*declared, *implied]))
    only = reading.projects[0] if len(reading.projects) == 1 else ""
    doubtful = set(implied) - set(declared)
    for resource in reading.resources:
        if resource.kind.scope is Scope.CLUSTER:
            continue
        if resource.kind.name == "ProjectConfig" and not resource.namespace:
            resource.namespace = only or resource.name
        if not resource.namespace and resource.kind.name != "ReviewPolicy":
            resource.namespace = only
        path: Path = ("metadata", "namespace")
        if resource.kind.scope is Scope.PROJECT and not resource.namespace:
            resource.usable = False
            message = f"'namespace' is missing: which project? {_known_projects(reading.projects)}"
            reading.problems.append(resource.problem(Finding(path, message)))
        elif resource.namespace in doubtful:
            doubtful.discard(resource.namespace)
            hint = nearest(resource.namespace, declared)
            message = f"no Project is named {shown(resource.namespace)}; it is taken for one{hint}"
            reading.problems.append(resource.problem(Finding(path, message, Severity.WARNING)))


def _known_projects(projects: list[str]) -> str:
    if not projects:
        return "Add a document of kind Project, or a namespace"
    return f"There are {', '.join(projects[:5])}{' and others' if len(projects) > 5 else ''}"


# -- Admission ---------------------------------------------------------------------------------------------------


def _admit(resource: Resource, problems: list[ConfigProblem]) -> None:
    findings = [*_check_metadata(resource), *_check_spec(resource)]
    problems.extend(resource.problem(finding) for finding in cut_findings(findings))
    if any(finding.severity is Severity.ERROR for finding in findings):
        resource.usable = False


def cut_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Findings as they are told: beyond the first hundred only their number, as an error if one of them is."""
    every = list(findings)
    rest = every[MOST_FINDINGS:]
    if not rest:
        return every
    worst = Severity.ERROR if any(item.severity is Severity.ERROR for item in rest) else Severity.WARNING
    return [*every[:MOST_FINDINGS], Finding((), f"there are {len(rest):,} more problems here", worst)]


def _check_metadata(resource: Resource) -> Iterator[Finding]:
    metadata = mapping_at(resource.body, "metadata")
    if not resource.name:
        yield Finding(("metadata", "name"), "'name' is missing")
    elif not is_valid_field("name", resource.name) or len(resource.name) > 253:
        message = f"{shown(resource.name)} is no Kubernetes name: lower-case letters, digits, '-' and '.'"
        yield Finding(("metadata", "name"), message)
    if resource.namespace and not is_valid_field("label", resource.namespace):
        message = f"{shown(resource.namespace)} is no name of a project: lower-case letters, digits and '-'"
        yield Finding(("metadata", "namespace"), message)
    for key in ("labels", "annotations"):
        for label, value in mapping_at(metadata, key).items():
            if not isinstance(value, str):
                yield Finding(("metadata", key, label), f'must be text; write it in quotes: "{shown(value)}"')
    if resource.kind.name == "ProjectConfig" and resource.name and resource.name != resource.namespace:
        message = f"a ProjectConfig must have its project's name, {shown(resource.namespace)}"
        yield Finding(("metadata", "name"), message)
    if resource.kind.name == "ClusterConfig" and resource.name not in {"", "cluster"}:
        yield Finding(("metadata", "name"), "a ClusterConfig must be named 'cluster'")
    if resource.kind.name == "CustomPromotionStep":
        yield from admit_definition(resource.name, mapping_at(metadata, "annotations"))


def _check_spec(resource: Resource) -> Iterator[Finding]:
    kind = resource.kind
    given = resource.body.get("spec")
    if given is None:
        if kind.needs_spec:
            yield Finding(("spec",), "'spec' is missing")
        return
    if not isinstance(given, dict):
        yield Finding(("spec",), "must be a mapping")
        return
    resource.spec, warnings = modernize(kind.name, _without_nulls(given))
    yield from warnings
    findings = check(resource.spec, kind.schema, unknown_keys=kind.unknown_keys)
    yield from (replace(finding, path=("spec", *finding.path)) for finding in findings)
    if not any(finding.is_excess for finding in findings):
        yield from kind.admit(resource.spec)


def _without_nulls(value: dict[str, Json], *, below_config: bool = False) -> dict[str, Json]:
    """The mapping without keys that hold nothing, as if they were absent; step configurations stay as they are."""
    return {
        key: item if key == "config" or below_config else _clean(item)
        for key, item in value.items()
        if item is not None
    }


def _clean(value: Json) -> Json:
    match value:
        case dict():
            return _without_nulls(value)
        case list():
            return [_clean(item) for item in value]
        case _:
            return value


def _refuse_doubles(reading: Reading) -> None:
    seen: dict[tuple[str, str, str, str], Resource] = {}
    for resource in reading.resources:
        key = (resource.kind.api_version, resource.kind.name, resource.namespace, resource.name)
        if not resource.name:
            continue
        if key in seen:
            first = seen[key]
            message = (
                f"{resource.kind.name} {shown(resource.name)} stands in {first.path}:{first.line()} already"
            )
            reading.problems.append(resource.problem(Finding(("metadata", "name"), message)))
            resource.usable = False
        else:
            seen[key] = resource
