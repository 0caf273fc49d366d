"""One module per step kind; `KINDS` names them all and `build_steps` joins them with the world."""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.review import StepClass, StepKind
from bot.ports import Ports
from bot.steps.argocd_update import ArgoCDUpdate
from bot.steps.contract import Step
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.git_push import GitPush
from bot.steps.hcl_update import HclUpdate
from bot.steps.json_update import JsonUpdate
from bot.steps.tf_apply import TfApply
from bot.steps.tf_output import TfOutput
from bot.steps.tf_plan import TfPlan
from bot.steps.toml_update import TomlUpdate
from bot.steps.yaml_update import YamlUpdate

_WAIT_FOR_APPS = 300.0
"""Kargo's default for `argocd-wait`, in seconds."""

KINDS: Mapping[str, StepKind] = {
    "argocd-update": StepKind("argocd-update", StepClass.ACT),
    "argocd-wait": StepKind("argocd-wait", StepClass.WAIT, timeout=_WAIT_FOR_APPS),
    "compose-output": StepKind("compose-output", StepClass.PURE),
    "copy": StepKind("copy", StepClass.EDIT),
    "delete": StepKind("delete", StepClass.EDIT),
    "dns-wait": StepKind("dns-wait", StepClass.WAIT),
    "fail": StepKind("fail", StepClass.PURE),
    "file-write": StepKind("file-write", StepClass.EDIT),
    "get-user-input": StepKind("get-user-input", StepClass.WAIT),
    "gh-create-issue": StepKind("gh-create-issue", StepClass.NOTE),
    "gh-issue-add-comment": StepKind("gh-issue-add-comment", StepClass.NOTE),
    "gh-issue-delete-comment": StepKind("gh-issue-delete-comment", StepClass.NOTE),
    "gh-issue-update-comment": StepKind("gh-issue-update-comment", StepClass.NOTE),
    "gh-search-issues": StepKind("gh-search-issues", StepClass.READ),
    "gh-update-issue": StepKind("gh-update-issue", StepClass.NOTE),
    "gh-wait-for-issue-state": StepKind("gh-wait-for-issue-state", StepClass.WAIT),
    "gha-dispatch-workflow": StepKind("gha-dispatch-workflow", StepClass.ACT),
    "gha-wait-for-workflow": StepKind("gha-wait-for-workflow", StepClass.WAIT),
    "git-clear": StepKind("git-clear", StepClass.EDIT),
    "git-clone": StepKind("git-clone", StepClass.READ),
    "git-commit": StepKind("git-commit", StepClass.COMMIT),
    "git-merge-pr": StepKind("git-merge-pr", StepClass.REVIEW),
    "git-open-pr": StepKind("git-open-pr", StepClass.REVIEW),
    "git-push": StepKind("git-push", StepClass.PUBLISH),
    "git-tag": StepKind("git-tag", StepClass.ACT),
    "git-wait-for-pr": StepKind("git-wait-for-pr", StepClass.REVIEW),
    "github-push": StepKind("github-push", StepClass.PUBLISH),
    "hcl-update": StepKind("hcl-update", StepClass.EDIT),
    "helm-template": StepKind("helm-template", StepClass.EDIT),
    "helm-update-chart": StepKind("helm-update-chart", StepClass.EDIT),
    "http": StepKind("http", StepClass.ACT),
    "http-download": StepKind("http-download", StepClass.EDIT),
    "jfrog-evidence": StepKind("jfrog-evidence", StepClass.ACT),
    "jira": StepKind("jira", StepClass.NOTE),
    "json-parse": StepKind("json-parse", StepClass.PURE),
    "json-update": StepKind("json-update", StepClass.EDIT),
    "kustomize-build": StepKind("kustomize-build", StepClass.EDIT),
    "kustomize-set-image": StepKind("kustomize-set-image", StepClass.EDIT),
    "oci-download": StepKind("oci-download", StepClass.EDIT),
    "oci-push": StepKind("oci-push", StepClass.ACT),
    "record-audit-event": StepKind("record-audit-event", StepClass.NOTE),
    "send-message": StepKind("send-message", StepClass.NOTE),
    "set-freight-alias": StepKind("set-freight-alias", StepClass.NOTE),
    "set-metadata": StepKind("set-metadata", StepClass.NOTE),
    "snow-create": StepKind("snow-create", StepClass.NOTE),
    "snow-delete": StepKind("snow-delete", StepClass.NOTE),
    "snow-query-for-records": StepKind("snow-query-for-records", StepClass.READ),
    "snow-update": StepKind("snow-update", StepClass.NOTE),
    "snow-wait-for-condition": StepKind("snow-wait-for-condition", StepClass.WAIT),
    "tar": StepKind("tar", StepClass.EDIT),
    "tf-apply": StepKind("tf-apply", StepClass.INFRA),
    "tf-output": StepKind("tf-output", StepClass.INFRA),
    "tf-plan": StepKind("tf-plan", StepClass.INFRA),
    "toml-parse": StepKind("toml-parse", StepClass.PURE),
    "toml-update": StepKind("toml-update", StepClass.EDIT),
    "untar": StepKind("untar", StepClass.EDIT),
    "wait-for-approval": StepKind("wait-for-approval", StepClass.WAIT),
    "yaml-merge": StepKind("yaml-merge", StepClass.EDIT),
    "yaml-parse": StepKind("yaml-parse", StepClass.PURE),
    "yaml-update": StepKind("yaml-update", StepClass.EDIT),
}
"""Every step kind of Kargo, open source and Enterprise, and ours, with its class; any other name is an act."""


def build_steps(ports: Ports) -> Mapping[str, Step]:
    """Every step kind that can be carried out, by name, each with only the ports that it declares."""
    return {
        "argocd-update": ArgoCDUpdate(ports.argocd, ports.git),
        "git-clone": GitClone(ports.git),
        "git-commit": GitCommit(ports.git),
        "git-push": GitPush(ports.git),
        "github-push": GitPush(ports.git, "github-push"),
        "hcl-update": HclUpdate(),
        "json-update": JsonUpdate(),
        "tf-apply": TfApply(ports.git, ports.terraform, ports.vault, ports.store),
        "tf-output": TfOutput(ports.git, ports.terraform, ports.vault, ports.store),
        "tf-plan": TfPlan(ports.git, ports.terraform, ports.vault, ports.store),
        "toml-update": TomlUpdate(),
        "yaml-update": YamlUpdate(),
    }
