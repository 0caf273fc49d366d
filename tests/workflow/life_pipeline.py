"""The pipeline of the machine that plays a promotion's life: one Stage, toy Terraform, values, a sync."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime

from bot.domain.freight import Freight, FreightName, FreightOrigin, Image
from tests.e2e.pipelines import TAG, C, M, P, S, hcl, policy, shipped, stage, task, values
from tests.e2e.pipelines import URL as OUTPUT

URL = "https://github.sandbox.example/acme/operations.git"
TFVARS = "env/dev/terraform/main.auto.tfvars"
VALUES = "env/dev/helm/values.yaml"
OTEL, FUNCTION = "registry.sandbox.example/otel-app", "registry.sandbox.example/lambda-app"
BASE = {
    VALUES: 'replicas: 1\nimage:\n  tag: "0"\n  pull: Always\nenv:\n  LEVEL: info\n  LAMBDA_URL: ""\n',
    TFVARS: f'fn__image = "{FUNCTION}:0"\nfn__memory = "128"\noutput_lambda_url = id(fn)\n',
    "env/dev/terraform/main.tf": 'terraform {\n  backend "http" {}\n}\n\nresource "toy_thing" "fn" {}\n',
    "README.md": "read me\n",
}
APPLY = "uses: tf-apply\nas: tf-apply\nconfig:\n  dir: ./src/env/${{ ctx.stage }}/terraform\n"
READ = "uses: tf-output\nas: tf-output\nconfig:\n  dir: ./src/env/${{ ctx.stage }}/terraform\n"
WRITE = hcl("fn__image").replace("env.auto.tfvars", "main.auto.tfvars")
POST = "uses: http\nas: migrate\nconfig:\n  url: https://hooks.example/migrate\n  method: POST\n"


def texts(*, acts: bool) -> Mapping[str, str]:
    """The configuration's files; with `acts` the task sends a request behind its push."""
    last = (POST, S) if acts else (S,)
    return {
        "project.yaml": shipped("config/project.yaml"),
        "warehouse.yaml": shipped("config/warehouse.yaml"),
        "promote.yaml": task((C, WRITE, APPLY, READ, values(TAG, OUTPUT), M, P, *last)),
        "stages.yaml": stage("dev"),
        "review.yaml": policy(),
    }


def freight(otel: int, function: int, now: datetime) -> Freight:
    """Freight of the two images."""
    name = hashlib.sha1(f"{otel} {function}".encode()).hexdigest()
    return Freight(
        name=FreightName(name),
        project="acme",
        alias=f"freight-{otel}-{function}",
        origin=FreightOrigin("otel"),
        discovered_at=now,
        images=(
            Image(OTEL, str(otel), "sha256:" + "a" * 64),
            Image(FUNCTION, str(function), "sha256:" + "b" * 64),
        ),
    )


def tag_in(values_text: str) -> str:
    """The image's tag in the values, without quotes."""
    return _value_of("  tag:", values_text)


def url_in(values_text: str) -> str:
    """The function's address in the values."""
    return _value_of("  LAMBDA_URL:", values_text)


def _value_of(key: str, text: str) -> str:
    line = next((line for line in text.splitlines() if line.startswith(key)), key)
    return line.removeprefix(key).strip().strip("\"'")


def without_release(values_text: str) -> list[str]:
    """The lines of the values that no promotion writes."""
    return [x for x in values_text.splitlines() if not x.startswith(("  tag:", "  LAMBDA_URL:"))]
