"""How long one edit of a large file takes, beside what a round trip through the usual library costs.

Run as `python -m tests.bench.bench_editors`. Both sides of a ratio run in this process, in turn, on the same text;
the best of several rounds counts, so that other work on the machine disturbs less.
"""

from __future__ import annotations

import difflib
import io
import sys
import time
from collections.abc import Callable

import hcl2
from ruamel.yaml import YAML

from bot.editors.hcl import update_hcl
from bot.editors.keys import Update
from bot.editors.yaml import update_yaml

ROUNDS = 5
YAML_LIMIT_MS = 40.0
YAML_LIMIT_RATIO = 15.0
HCL_LIMIT_MS = 25.0


def values_file(lines: int) -> str:
    """A Helm values file of many services with comments, quotes, flow collections and anchors."""
    text: list[str] = ["# values of all services", "defaults: &defaults", "  pullPolicy: IfNotPresent"]
    number = 0
    while len(text) < lines:
        number += 1
        text += [
            f"service-{number}:",
            "  image:",
            f"    repository: registry.example/team/service-{number}  # pushed by CI",
            f'    tag: "1.{number}.0"',
            f"  replicas: {number % 7}",
            "  env:",
            f"    - name: URL_{number}",
            f"      value: 'https://service-{number}.example/'",
            f"  resources: {{requests: {{cpu: 100m, memory: {number}Mi}}, limits: {{memory: 1Gi}}}}",
            "  # below: what the service shares",
            "  shared: *defaults",
        ]
    return "\n".join(text[:lines]) + "\n"


def variables_file(lines: int) -> str:
    """A Terraform file of many functions with comments, tags and lists."""
    text: list[str] = ["# all functions", ""]
    number = 0
    while len(text) < lines:
        number += 1
        text += [
            f'resource "aws_lambda_function" "app{number}" {{',
            f'  image_uri     = "123456789012.example/app{number}:1.{number}.0" # written by promotions',
            f'  function_name = "${{var.prefix}}-app{number}"',
            "  tags = {",
            f'    version = "1.{number}.0"',
            '    team    = "platform"',
            "  }",
            f"  memory_size = {128 * (number % 4 + 1)}",
            '  layers      = ["a", "b", aws_lambda_layer_version.c.arn]',
            "}",
            "",
        ]
    return "\n".join(text) + "\n"


def best(work: Callable[[], object]) -> float:
    """The shortest of several runs, in milliseconds."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    return min(times)


def changed_lines(before: str, after: str) -> int:
    """How many lines differ."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return sum(1 for line in lines if line.startswith("+") and not line.startswith("+++"))


def round_trip(text: str) -> str:
    """The same edit with ruamel.yaml's round trip."""
    editor = YAML()
    editor.preserve_quotes = True
    editor.width = 1 << 30
    document = editor.load(text)
    document["service-300"]["image"]["tag"] = "2.0.0"
    out = io.StringIO()
    editor.dump(document, out)
    return out.getvalue()


def main() -> int:
    """Print times and ratios; 1 if a bar is missed."""
    values = values_file(5_000)
    updates = [Update("service-300.image.tag", "2.0.0")]
    ours = best(lambda: update_yaml(values, updates))
    theirs = best(lambda: round_trip(values))
    differing = changed_lines(values, update_yaml(values, updates))
    print(
        f"yaml-update, 5,000 lines: {ours:.1f} ms, ruamel round trip {theirs:.1f} ms, ratio {theirs / ours:.1f}"
    )
    print(f"  lines changed: {differing} (ruamel: {changed_lines(values, round_trip(values))})")
    functions = variables_file(2_000)
    changes = [Update("resource.aws_lambda_function.app150.image_uri", "123456789012.example/app150:2.0.0")]
    hcl = best(lambda: update_hcl(functions, changes))
    hcl2.loads(functions)
    reading = best(lambda: hcl2.loads(functions))
    lines = changed_lines(functions, update_hcl(functions, changes))
    print(
        f"hcl-update, 2,000 lines: {hcl:.1f} ms, python-hcl2 reading {reading:.1f} ms, ratio {reading / hcl:.1f}"
    )
    print(f"  lines changed: {lines}")
    reached = ours <= YAML_LIMIT_MS and theirs / ours >= YAML_LIMIT_RATIO and hcl <= HCL_LIMIT_MS
    return 0 if reached and differing == lines == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
