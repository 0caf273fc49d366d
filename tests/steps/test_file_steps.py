"""Steps that copy, write, pack, delete, merge and read files of the work tree."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace

import pytest

from bot.domain.files import File, Mode
from bot.domain.freight import Image
from bot.domain.promotion import StepStatus
from bot.domain.values import Sensitive, Text, Unknown, Value
from bot.ports import TerminalError
from bot.steps.compose_output import ComposeOutput
from bot.steps.contract import Config, Step, StepResult
from bot.steps.copy import Copy
from bot.steps.delete import Delete
from bot.steps.fail import Fail
from bot.steps.file_write import FileWrite
from bot.steps.git_clear import GitClear
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.json_parse import JsonParse
from bot.steps.kustomize_set_image import KustomizeSetImage, images_of
from bot.steps.tar import Tar
from bot.steps.toml_parse import TomlParse
from bot.steps.untar import Untar
from bot.steps.yaml_merge import YamlMerge
from bot.steps.yaml_parse import YamlParse
from tests.steps.bench import Bench, promotion

URL = Unknown("known after apply: url")


async def write(bench: Bench, **files: str) -> None:
    for path, text in files.items():
        await bench.tree.write(path.replace("__", "/").replace("_", "."), text.encode())


async def text_of(bench: Bench, path: str) -> str:
    return await bench.tree.read_text(path)


# -- copy, delete, clear ---------------------------------------------------------------------------------------


async def test_a_directory_is_copied_but_for_links_and_what_is_ignored(bench: Bench) -> None:
    await write(bench, a__x_yaml="x", a__sub__y_yaml="y", a__skip_log="log", a__keep_log="kept")
    bench.tree.loose["a/link"] = File(b"x.yaml", Mode.SYMLINK)
    await bench.preview(Copy(), {"inPath": "./a", "outPath": "b", "ignore": "*.log\n!keep.log\nsub/\n"})
    assert bench.tree.list("b") == ["b/keep.log", "b/x.yaml"]


async def test_a_file_is_copied_under_its_new_name(bench: Bench) -> None:
    await write(bench, a_yaml="x")
    await bench.preview(Copy(), {"inPath": "a.yaml", "outPath": "out/b.yaml"})
    assert await text_of(bench, "out/b.yaml") == "x"


async def test_copying_what_does_not_exist_fails(bench: Bench) -> None:
    result = await bench.preview(Copy(), {"inPath": "nope", "outPath": "b"})
    assert (result.status, result.message) == (StepStatus.FAILED, "copy: 'nope' does not exist")


@pytest.mark.parametrize(
    ("config", "left"),
    [
        ({"path": "a"}, ["b/z.yaml", "c.yaml"]),
        ({"paths": ["a/x.yaml", "c.yaml"]}, ["a/sub/y.yaml", "b/z.yaml"]),
        ({"path": "**/*.yaml", "pathsAreGlobs": True}, []),
        ({"path": "a/*", "pathsAreGlobs": True}, ["b/z.yaml", "c.yaml"]),
        ({"path": "nothing"}, ["a/sub/y.yaml", "a/x.yaml", "b/z.yaml", "c.yaml"]),
    ],
    ids=["a directory", "several files", "a glob of files", "a glob of a directory", "nothing there"],
)
async def test_delete(bench: Bench, config: Config, left: list[str]) -> None:
    await write(bench, a__x_yaml="x", a__sub__y_yaml="y", b__z_yaml="z", c_yaml="c")
    assert (await bench.preview(Delete(), config)).status is StepStatus.SUCCEEDED
    assert bench.tree.list(".") == left


async def test_a_strict_delete_of_nothing_fails(bench: Bench) -> None:
    result = await bench.preview(Delete(), {"path": "nothing", "strict": True})
    assert result.status is StepStatus.FAILED


async def test_a_cleared_checkout_is_committed_as_removals(bench: Bench) -> None:
    checkout: Value = {"path": "src", "branch": "main"}
    await bench.preview(GitClone(bench.git), {"repoURL": bench.url, "checkout": [checkout]})
    await bench.preview(GitClear(), {"path": "src"})
    assert bench.tree.list("src") == []
    await bench.tree.write("src/new.txt", b"new\n")
    result = await bench.preview(GitCommit(bench.git), {"path": "src", "message": "all new"})
    assert result.record is not None
    changes = bench.tree.checkouts["src"].commits[0].changes
    assert {(change.path, change.after is None) for change in changes} == {
        ("README.md", True),
        ("env/dev/terraform/main.auto.tfvars", True),
        ("env/dev/terraform/main.tf", True),
        ("env/dev/values.yaml", True),
        ("new.txt", False),
    }


# -- file-write ------------------------------------------------------------------------------------------------


async def test_a_file_is_written_with_stand_ins(bench: Bench) -> None:
    await bench.preview(FileWrite(), {"path": "a.env", "contents": Text(("URL=", URL, "\n"))})
    assert await text_of(bench, "a.env") == f"URL={bench.tree.sentinels.write(URL)}\n"


async def test_an_existing_file_is_kept_unless_overwrite_is_set(bench: Bench) -> None:
    await write(bench, a_txt="old")
    assert (
        await bench.preview(FileWrite(), {"path": "a.txt", "contents": "new"})
    ).status is StepStatus.FAILED
    assert await text_of(bench, "a.txt") == "old"
    await bench.preview(FileWrite(), {"path": "a.txt", "contents": "new", "overwrite": True})
    assert await text_of(bench, "a.txt") == "new"


@pytest.mark.parametrize("permissions", ["0755", "0602", "0777"])
async def test_executable_and_world_writable_files_are_refused(bench: Bench, permissions: str) -> None:
    config: Config = {"path": "a", "contents": "x", "permissions": permissions}
    assert (await bench.preview(FileWrite(), config)).status is StepStatus.FAILED


async def test_secrets_are_not_written(bench: Bench) -> None:
    with pytest.raises(TerminalError, match="sensitive value token"):
        await bench.preview(FileWrite(), {"path": "a", "contents": Sensitive("token", "hunter2")})


# -- archives --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gzip", [False, True], ids=["plain", "compressed"])
async def test_what_is_packed_is_unpacked(bench: Bench, *, gzip: bool) -> None:
    await write(bench, a__x_yaml="x", a__sub__y_yaml="y")
    await bench.preview(Tar(), {"inPath": "a", "outPath": "out.tar", "gzip": gzip})
    first = await bench.tree.read("out.tar")
    await bench.preview(Tar(), {"inPath": "a", "outPath": "out.tar", "gzip": gzip})
    assert await bench.tree.read("out.tar") == first
    await bench.preview(Untar(), {"inPath": "out.tar", "outPath": "b", "ignore": "x.yaml"})
    assert bench.tree.list("b") == ["b/sub/y.yaml"]
    await bench.preview(Untar(), {"inPath": "out.tar", "outPath": "c", "stripComponents": 1})
    assert bench.tree.list("c") == ["c/y.yaml"]


def archive(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, link
        tar.addfile(member)
    return out.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        archive("../evil"),
        archive("/etc/evil"),
        archive("a/.git/hooks/post-checkout"),
        archive("link", tarfile.SYMTYPE, "/etc/passwd"),
        archive("device", tarfile.CHRTYPE),
        b"no archive at all" * 100,
        b"\x1f\x8bno gzip either",
    ],
    ids=["parent", "absolute", "git", "link", "device", "no tar", "no gzip"],
)
async def test_an_archive_that_does_harm_is_refused(bench: Bench, data: bytes) -> None:
    await bench.tree.write("in.tar", data)
    with pytest.raises(TerminalError):
        await bench.preview(Untar(), {"inPath": "in.tar", "outPath": "out"})


# -- merging and parsing ---------------------------------------------------------------------------------------


async def test_yaml_files_are_merged_later_ones_winning(bench: Bench) -> None:
    await write(bench, a_yaml="x: 1 # one\ny: 2\n", b_yaml="y: 3\n")
    config: Config = {
        "inFiles": ["a.yaml", "none.yaml", "b.yaml"],
        "outFile": "c.yaml",
        "ignoreMissingFiles": True,
    }
    result = await bench.preview(YamlMerge(), config)
    assert await text_of(bench, "c.yaml") == "x: 1 # one\ny: 3\n"
    assert result.output["commitMessage"] == "Merged YAML files to c.yaml\n\n- a.yaml\n- b.yaml"


async def test_merging_a_missing_file_fails(bench: Bench) -> None:
    result = await bench.preview(YamlMerge(), {"inFiles": ["none.yaml"], "outFile": "c.yaml"})
    assert result.status is StepStatus.FAILED


def outputs(**expressions: str) -> Value:
    return [{"name": name, "fromExpression": text} for name, text in expressions.items()]


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (YamlParse(), "image: {tag: v1}\nports: [1, 2]\n"),
        (JsonParse(), '{"image": {"tag": "v1"}, "ports": [1, 2]}'),
        (TomlParse(), 'ports = [1, 2]\n[image]\ntag = "v1"\n'),
    ],
    ids=["yaml", "json", "toml"],
)
async def test_outputs_are_expressions_over_the_document(bench: Bench, step: Step, text: str) -> None:
    await bench.tree.write("f", text.encode())
    config: Config = {
        "path": "f",
        "outputs": outputs(tag="image.tag", sum="ports[0] + ports[1]", none="missing"),
    }
    result = await bench.preview(step, config)
    assert result.output == {"tag": "v1", "sum": 3, "none": None}


async def test_a_stand_in_that_is_read_back_is_unknown_again(bench: Bench) -> None:
    sentinel = bench.tree.sentinels.write(URL)
    await bench.tree.write("f", f"url: {sentinel}\nfull: https://{sentinel}/x\n".encode())
    config: Config = {"path": "f", "outputs": outputs(url="url", full="full", upper="upper(url)")}
    result = await bench.preview(YamlParse(), config)
    assert result.output["url"] == URL
    assert result.output["full"] == Text(("https://", URL, "/x"))
    assert isinstance(result.output["upper"], Unknown)


async def test_a_file_that_is_unknown_as_a_whole_gives_unknown_outputs(bench: Bench) -> None:
    await bench.tree.write("f", bench.tree.sentinels.write(URL).encode())
    result = await bench.preview(JsonParse(), {"path": "f", "outputs": outputs(a="b.c")})
    assert isinstance(result.output["a"], Unknown)


async def test_a_broken_file_is_named_with_its_line(bench: Bench) -> None:
    await bench.tree.write("f", b"a: 1\nb: [\n")
    result = await bench.preview(YamlParse(), {"path": "f", "outputs": outputs(a="a")})
    assert result.status is StepStatus.FAILED
    assert result.message.startswith("yaml-parse: f, line ")


async def test_a_broken_expression_is_named(bench: Bench) -> None:
    await bench.tree.write("f", b"a: 1\n")
    with pytest.raises(TerminalError, match=r"'a \+' cannot be evaluated"):
        await bench.preview(YamlParse(), {"path": "f", "outputs": outputs(a="a +")})


# -- kustomize -------------------------------------------------------------------------------------------------

KUSTOMIZATION = "resources: [a.yaml]\nimages:\n  - name: ghcr.io/acme/app # ours\n    newTag: 1.0.0\n"


async def set_image(bench: Bench, text: str, *images: Value) -> StepResult:
    await bench.tree.write("k/kustomization.yaml", text.encode())
    return await bench.preview(KustomizeSetImage(), {"path": "k", "images": list(images)})


async def test_a_tag_is_replaced_in_place(bench: Bench) -> None:
    result = await set_image(bench, KUSTOMIZATION, {"image": "ghcr.io/acme/app", "tag": "1.2.3"})
    assert await text_of(bench, "k/kustomization.yaml") == KUSTOMIZATION.replace("1.0.0", "1.2.3")
    assert result.output["commitMessage"] == (
        "Updated k/kustomization.yaml to use new image\n\n- ghcr.io/acme/app:1.2.3"
    )


async def test_the_same_tag_again_changes_nothing(bench: Bench) -> None:
    await set_image(bench, KUSTOMIZATION, {"image": "ghcr.io/acme/app", "tag": "1.0.0"})
    assert await text_of(bench, "k/kustomization.yaml") == KUSTOMIZATION


async def test_a_new_image_is_added(bench: Bench) -> None:
    await set_image(bench, KUSTOMIZATION, {"image": "other", "newName": "mirror/other", "tag": "2"})
    config: Config = {"path": "k/kustomization.yaml", "outputs": outputs(images="images")}
    result = await bench.preview(YamlParse(), config)
    assert result.output["images"] == [
        {"name": "ghcr.io/acme/app", "newTag": "1.0.0"},
        {"name": "other", "newName": "mirror/other", "newTag": "2"},
    ]


async def test_images_are_set_where_there_were_none(bench: Bench) -> None:
    await set_image(bench, "resources: [a.yaml]\n", {"image": "app", "digest": "sha256:abc"})
    expected = "resources: [a.yaml]\nimages:\n- name: app\n  digest: sha256:abc\n"
    assert await text_of(bench, "k/kustomization.yaml") == expected


async def test_a_tag_takes_the_place_of_a_digest(bench: Bench) -> None:
    text = "images:\n  - name: app\n    digest: sha256:old\n"
    await set_image(bench, text, {"image": "app", "tag": "2"})
    written = await text_of(bench, "k/kustomization.yaml")
    assert "digest" not in written
    assert "newTag" in written


async def test_the_freights_images_are_set_where_none_is_named(bench: Bench) -> None:
    await set_image(bench, KUSTOMIZATION)
    assert "newTag: 1.2.3" in await text_of(bench, "k/kustomization.yaml")


def test_freight_that_disagrees_on_an_image_is_refused() -> None:
    freight = promotion().freight
    other = replace(freight, images=(Image("ghcr.io/acme/app", "9.9.9"),))
    with pytest.raises(TerminalError, match=r"two versions of ghcr\.io/acme/app"):
        images_of((freight, other))


# -- the rest --------------------------------------------------------------------------------------------------


async def test_fail_fails_with_its_message(bench: Bench) -> None:
    result = await bench.preview(Fail(), {"message": "not on Fridays"})
    assert (result.status, result.message) == (StepStatus.FAILED, "not on Fridays")


async def test_compose_output_passes_marks_on(bench: Bench) -> None:
    result = await bench.preview(ComposeOutput(), {"url": URL, "n": 1})
    assert result.output == {"url": URL, "n": 1}
