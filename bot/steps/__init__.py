"""One module per step kind; `KINDS` names them all and `build_steps` joins them with the world."""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.step_kinds import StepClass, StepKind
from bot.ports import Git, Ports
from bot.ports.rendering import RenderTool
from bot.steps.argocd_update import ArgoCDUpdate
from bot.steps.argocd_wait import ArgoCDWait
from bot.steps.compose_output import ComposeOutput
from bot.steps.contract import Step
from bot.steps.copy import Copy
from bot.steps.delete import Delete
from bot.steps.dns_wait import DnsWait
from bot.steps.fail import Fail
from bot.steps.file_write import FileWrite
from bot.steps.follow_up import FollowUps
from bot.steps.get_user_input import GetUserInput
from bot.steps.gh_create_issue import GhCreateIssue
from bot.steps.gh_issue_add_comment import GhIssueAddComment
from bot.steps.gh_issue_delete_comment import GhIssueDeleteComment
from bot.steps.gh_issue_update_comment import GhIssueUpdateComment
from bot.steps.gh_search_issues import GhSearchIssues
from bot.steps.gh_update_issue import GhUpdateIssue
from bot.steps.gh_wait_for_issue_state import GhWaitForIssueState
from bot.steps.gha_dispatch_workflow import GhaDispatchWorkflow
from bot.steps.gha_wait_for_workflow import GhaWaitForWorkflow
from bot.steps.git_clear import GitClear
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.git_merge_pr import GitMergePr
from bot.steps.git_open_pr import GitOpenPr
from bot.steps.git_push import GitPush
from bot.steps.git_tag import GitTag
from bot.steps.git_wait_for_pr import GitWaitForPr
from bot.steps.github_push import SigningPusher
from bot.steps.hcl_update import HclUpdate
from bot.steps.helm_template import HelmTemplate
from bot.steps.helm_update_chart import HelmUpdateChart
from bot.steps.http import HttpStep
from bot.steps.http_download import HttpDownload
from bot.steps.json_parse import JsonParse
from bot.steps.json_update import JsonUpdate
from bot.steps.kustomize_build import KustomizeBuild
from bot.steps.kustomize_set_image import KustomizeSetImage
from bot.steps.not_carried_out import ADVICE, NotCarriedOut
from bot.steps.oci_download import OciDownload
from bot.steps.oci_push import OciPush
from bot.steps.record_audit_event import RecordAuditEvent
from bot.steps.send_message import SendMessage
from bot.steps.set_freight_alias import SetFreightAlias
from bot.steps.set_metadata import SetMetadata
from bot.steps.tar import Tar
from bot.steps.tf_apply import TfApply
from bot.steps.tf_output import TfOutput
from bot.steps.tf_plan import TfPlan
from bot.steps.toml_parse import TomlParse
from bot.steps.toml_update import TomlUpdate
from bot.steps.untar import Untar
from bot.steps.wait_for_approval import WaitForApproval
from bot.steps.yaml_merge import YamlMerge
from bot.steps.yaml_parse import YamlParse
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


_ALONE: Mapping[str, Step] = {
    "compose-output": ComposeOutput(),
    "copy": Copy(),
    "delete": Delete(),
    "fail": Fail(),
    "file-write": FileWrite(),
    "git-clear": GitClear(),
    "hcl-update": HclUpdate(),
    "jfrog-evidence": NotCarriedOut(KINDS["jfrog-evidence"]),
    "jira": NotCarriedOut(KINDS["jira"]),
    "json-parse": JsonParse(),
    "json-update": JsonUpdate(),
    "kustomize-set-image": KustomizeSetImage(),
    "snow-create": NotCarriedOut(KINDS["snow-create"]),
    "snow-delete": NotCarriedOut(KINDS["snow-delete"]),
    "snow-query-for-records": NotCarriedOut(KINDS["snow-query-for-records"]),
    "snow-update": NotCarriedOut(KINDS["snow-update"]),
    "snow-wait-for-condition": NotCarriedOut(KINDS["snow-wait-for-condition"]),
    "tar": Tar(),
    "toml-parse": TomlParse(),
    "toml-update": TomlUpdate(),
    "untar": Untar(),
    "yaml-merge": YamlMerge(),
    "yaml-parse": YamlParse(),
    "yaml-update": YamlUpdate(),
}
"""The kinds that need nothing but the work tree, and those that can only say that they are not done."""

NOT_CARRIED_OUT = frozenset(name for name, step in _ALONE.items() if isinstance(step, NotCarriedOut))
"""Kinds that a pipeline may name but that fail when they are reached: a configuration check can say so before."""


_NEEDS: Mapping[str, RenderTool] = {
    "helm-template": RenderTool.HELM,
    "helm-update-chart": RenderTool.HELM,
    "kustomize-build": RenderTool.KUSTOMIZE,
}


def find_unusable_kinds(missing: Mapping[RenderTool, str]) -> Mapping[str, str]:
    """The kinds that cannot be carried out at all, or not without these programs, each with what to do about it."""
    never = dict.fromkeys(sorted(NOT_CARRIED_OUT), ADVICE)
    return never | {kind: missing[tool] for kind, tool in _NEEDS.items() if tool in missing}


def build_steps(ports: Ports, git: Git) -> Mapping[str, Step]:
    """Every step kind by name, each with only the ports that it declares; `git` is that of the task's project."""
    follow_ups = FollowUps(git, ports.github, ports.branch_rules, ports.store)
    return {
        **_ALONE,
        "argocd-update": ArgoCDUpdate(ports.argocd, git),
        "argocd-wait": ArgoCDWait(ports.argocd),
        "dns-wait": DnsWait(ports.dns),
        "gh-create-issue": GhCreateIssue(ports.github, ports.issues, ports.store),
        "gh-issue-delete-comment": GhIssueDeleteComment(ports.github, ports.issues),
        "gh-issue-update-comment": GhIssueUpdateComment(ports.github, ports.issues),
        "gh-search-issues": GhSearchIssues(ports.github, ports.issues, ports.vault),
        "gh-update-issue": GhUpdateIssue(ports.github, ports.issues),
        "gh-wait-for-issue-state": GhWaitForIssueState(ports.github, ports.issues),
        "gha-dispatch-workflow": GhaDispatchWorkflow(ports.github, ports.workflows),
        "gha-wait-for-workflow": GhaWaitForWorkflow(ports.github, ports.workflows),
        "gh-issue-add-comment": GhIssueAddComment(ports.github),
        "get-user-input": GetUserInput(ports.store),
        "git-clone": GitClone(git),
        "git-commit": GitCommit(git),
        "git-merge-pr": GitMergePr(ports.github),
        "git-open-pr": GitOpenPr(git, ports.github),
        "git-push": GitPush(git, follow_ups=follow_ups),
        "git-tag": GitTag(git),
        "git-wait-for-pr": GitWaitForPr(ports.github),
        "github-push": GitPush(
            git, "github-push", SigningPusher(git, ports.github, ports.signed_push), follow_ups
        ),
        "helm-template": HelmTemplate(ports.renderer),
        "helm-update-chart": HelmUpdateChart(ports.renderer, ports.vault),
        "http": HttpStep(ports.http, ports.vault),
        "http-download": HttpDownload(ports.http, ports.vault),
        "kustomize-build": KustomizeBuild(ports.renderer),
        "oci-download": OciDownload(ports.artifacts, ports.vault),
        "oci-push": OciPush(ports.artifacts),
        "record-audit-event": RecordAuditEvent(ports.store),
        "send-message": SendMessage(ports.messages, ports.store),
        "set-freight-alias": SetFreightAlias(ports.store),
        "set-metadata": SetMetadata(ports.store),
        "tf-apply": TfApply(git, ports.terraform, ports.vault, ports.store),
        "tf-output": TfOutput(git, ports.terraform, ports.vault, ports.store),
        "tf-plan": TfPlan(git, ports.terraform, ports.vault, ports.store),
        "wait-for-approval": WaitForApproval(ports.github, ports.store),
    }
