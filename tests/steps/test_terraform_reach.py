"""Which files a Terraform directory reaches."""

from __future__ import annotations

import pytest

from bot.domain.files import CommitId, File, Mode
from bot.domain.review import Pin
from bot.steps.checkout import Checkout
from bot.steps.terraform_reach import View, find_reach
from tests.steps.bench import Bench

BACKEND = 'terraform {\n  backend "s3" {}\n}\n'


def view(bench: Bench, files: dict[str, str | File]) -> View:
    """A checkout whose files were all written by the walk."""
    pin = Pin("src", bench.url, "main", CommitId("a" * 40))
    overlay: dict[str, File | None] = {
        path: text if isinstance(text, File) else File(text.encode()) for path, text in files.items()
    }
    return View.current(bench.git, Checkout(pin, {}, overlay))


async def reached(bench: Bench, files: dict[str, str | File], *, variables: tuple[str, ...] = ()) -> set[str]:
    reach = await find_reach(view(bench, files), "tf/dev", variables)
    assert not reach.whole
    return reach.paths - {"tf/dev/main.tf"}


async def test_the_directory_alone(bench: Bench) -> None:
    files: dict[str, str | File] = {
        "tf/dev/main.tf": BACKEND,
        "tf/dev/.terraform.lock.hcl": "",
        "tf/dev/templates/x.tftpl": "${a}",
        "tf/dev/terraform.tfstate": "{}",
        "tf/dev/terraform.tfstate.backup": "{}",
        "tf/dev/terraform.tfstate.d/prod/terraform.tfstate": "{}",
        "tf/dev/crash.log": "",
        "tf/prod/main.tf": BACKEND,
        "README.md": "",
    }
    assert await reached(bench, files) == {"tf/dev/.terraform.lock.hcl", "tf/dev/templates/x.tftpl"}


async def test_local_modules_are_followed_and_what_they_call(bench: Bench) -> None:
    files: dict[str, str | File] = {
        "tf/dev/main.tf": BACKEND + 'module "a" {\n  source = "../../modules/a"\n}\n',
        "modules/a/main.tf": 'module "b" {\n  source = "../b"\n}\nmodule "r" {\n  source = "acme/r/aws"\n}\n',
        "modules/a/files/x.json": "{}",
        "modules/b/main.tf": 'module "a" {\n  source = "../a"\n}\n',
        "modules/c/main.tf": "",
    }
    assert await reached(bench, files) == {"modules/a/main.tf", "modules/a/files/x.json", "modules/b/main.tf"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('file("${path.module}/../shared/a.txt")', {"tf/shared/a.txt"}),
        ('file("../shared/a.txt")', {"tf/shared/a.txt"}),
        ('templatefile("${path.root}/../shared/a.txt", {})', {"tf/shared/a.txt"}),
        ('fileset("${path.module}/../shared", "*.txt")', {"tf/shared/a.txt", "tf/shared/sub/b.txt"}),
        ('"${path.module}/../shared/sub"', {"tf/shared/sub/b.txt"}),
        ('"a text with ../nothing in it"', set()),
        ('"wait for ${var.x}..."', set()),
        ('file("/etc/passwd")', set()),
    ],
)
async def test_files_that_the_code_reads(bench: Bench, expression: str, expected: set[str]) -> None:
    files: dict[str, str | File] = {
        "tf/dev/main.tf": f"{BACKEND}locals {{\n  x = {expression}\n}}\n",
        "tf/shared/a.txt": "a",
        "tf/shared/sub/b.txt": "b",
        "tf/other.txt": "",
    }
    assert await reached(bench, files) == expected


@pytest.mark.parametrize(
    "extra",
    [
        {"tf/dev/x.tf": "locals {\n  x = file(var.path)\n}\n"},
        {"tf/dev/x.tf": 'locals {\n  x = "${path.module}/../${var.env}/x"\n}\n'},
        {"tf/dev/x.tf.json": "{}"},
        {"tf/dev/x.tf": "this is { no HCL"},
        {"tf/dev/x.tftpl": '${file("../secret.txt")}'},
    ],
    ids=["a computed path", "a computed string", "JSON", "broken code", "a template that reads"],
)
async def test_what_cannot_be_followed_makes_everything_an_input(bench: Bench, extra: dict[str, str]) -> None:
    reach = await find_reach(view(bench, {"tf/dev/main.tf": BACKEND, "README.md": "", **extra}), "tf/dev", ())
    assert reach.whole
    assert "README.md" in reach.paths


async def test_variable_files_and_link_targets_are_inputs(bench: Bench) -> None:
    files: dict[str, str | File] = {
        "tf/dev/main.tf": BACKEND,
        "tf/dev/common.tf": File(b"../common/common.tf", Mode.SYMLINK),
        "tf/common/common.tf": "",
        "vars/dev.tfvars": "",
        "vars/prod.tfvars": "",
    }
    found = await reached(bench, files, variables=("vars/dev.tfvars",))
    assert found == {"tf/dev/common.tf", "tf/common/common.tf", "vars/dev.tfvars"}


async def test_linked_code_and_linked_modules_are_read(bench: Bench) -> None:
    files: dict[str, str | File] = {
        "tf/dev/main.tf": 'module "m" {\n  source = "./linked"\n}\n',
        "tf/dev/backend.tf": File(b"../common/backend.tf", Mode.SYMLINK),
        "tf/dev/linked": File(b"../../modules/m", Mode.SYMLINK),
        "tf/common/backend.tf": BACKEND,
        "modules/m/main.tf": 'module "n" {\n  source = "../n"\n}\n',
        "modules/n/main.tf": "",
        "modules/o/main.tf": "",
    }
    reach = await find_reach(view(bench, files), "tf/dev", ())
    assert (reach.whole, reach.backend) == ("", "s3")
    assert reach.paths == set(files) - {"modules/o/main.tf"}


async def test_a_loop_of_links_ends(bench: Bench) -> None:
    files: dict[str, str | File] = {
        "tf/dev/main.tf": BACKEND,
        "tf/dev/a.tf": File(b"b.tf", Mode.SYMLINK),
        "tf/dev/b.tf": File(b"a.tf", Mode.SYMLINK),
    }
    reach = await find_reach(view(bench, files), "tf/dev", ())
    assert "is not understood" in reach.whole


@pytest.mark.parametrize(
    ("code", "backend"),
    [
        (BACKEND, "s3"),
        ('terraform {\n  backend "local" {}\n}\n', "local"),
        ("terraform {\n  cloud {}\n}\n", "cloud"),
        ("", ""),
    ],
)
async def test_the_backend_is_that_of_the_root(bench: Bench, code: str, backend: str) -> None:
    files: dict[str, str | File] = {
        "tf/dev/main.tf": code,
        "tf/dev/m.tf": 'module "m" {\n  source = "./m"\n}\n',
        "tf/dev/m/main.tf": 'terraform {\n  backend "gcs" {}\n}\n',
    }
    assert (await find_reach(view(bench, files), "tf/dev", ())).backend == backend


async def test_a_directory_at_the_root_of_the_checkout(bench: Bench) -> None:
    files: dict[str, str | File] = {
        "main.tf": 'module "m" {\n  source = "./m"\n}\n',
        "m/main.tf": "",
        "README.md": "",
    }
    reach = await find_reach(view(bench, files), ".", ())
    assert reach.paths == {"main.tf", "m/main.tf", "README.md"}
