"""How long one evaluation of a typical expression takes, beside Jinja2's sandboxed expressions doing the same.

Run as `python -m tests.bench.bench_expressions`. Both are compiled beforehand and run in this process, in turn, on
the same names; the best of several rounds counts, so that other work on the machine disturbs less.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

from jinja2.sandbox import SandboxedEnvironment

from bot.domain.values import Json
from bot.expressions.evaluator import compile_expression
from bot.expressions.functions import TEMPLATE_FUNCTIONS
from bot.expressions.templates import Scope, evaluate_template

ROUNDS = 7
CALLS = 2_000
LIMIT_US = 50.0

NAMES: dict[str, Json] = {
    "ctx": {"project": "shop", "stage": "staging", "meta": {"promotion": {"actor": "ann"}}},
    "vars": {"repo": "https://git.example/shop/app", "tag": "1.20.3", "regions": ["eu-1", "us-1", "ap-1"]},
    "outputs": {"apply": {"url": "https://lambda.example/x"}, "push": {"commit": "abc123", "branch": "main"}},
}

PAIRS: dict[str, tuple[str, str]] = {
    "member": ("outputs.apply.url", "outputs.apply.url"),
    "text": (
        "vars.repo + '/' + ctx.stage + ':' + vars.tag",
        "vars.repo + '/' + ctx.stage + ':' + vars.tag",
    ),
    "condition": (
        "ctx.stage == 'staging' && outputs.push.commit != '' && vars.tag startsWith '1.'",
        "ctx.stage == 'staging' and outputs.push.commit != '' and vars.tag.startswith('1.')",
    ),
    "loop": (
        "join(map(filter(vars.regions, # != 'us-1'), upper(#)), ',')",
        "vars.regions | reject('equalto', 'us-1') | map('upper') | join(',')",
    ),
}

CONFIG: Json = {
    "path": "./src/env/${{ ctx.stage }}",
    "updates": [
        {"key": "image.tag", "value": "${{ quote(vars.tag) }}"},
        {"key": "lambda.url", "value": "${{ outputs.apply.url }}"},
    ],
}


def best(call: Callable[[], object]) -> float:
    """Microseconds per call in the best round."""
    found = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(CALLS):
            call()
        found = min(found, time.perf_counter() - started)
    return found / CALLS * 1e6


def main() -> int:
    """Prints every measurement; 1 if a bar is missed or the two sides disagree."""
    jinja = SandboxedEnvironment()
    failed = False
    for name, (ours, theirs) in PAIRS.items():
        expression, other = compile_expression(ours), jinja.compile_expression(theirs)
        if expression.evaluate(NAMES, TEMPLATE_FUNCTIONS) != other(**NAMES):
            print(f"{name}: the two sides disagree")
            return 1
        mine = best(partial(expression.evaluate, NAMES, TEMPLATE_FUNCTIONS))
        baseline = best(partial(other, **NAMES))
        failed |= mine > LIMIT_US
        print(
            f"{name}: {mine:.1f} us (bar {LIMIT_US:.0f} us), jinja2 sandbox {baseline:.1f} us, "
            f"{baseline / mine:.1f}x faster"
        )
    scope = Scope(NAMES, TEMPLATE_FUNCTIONS)
    whole = best(lambda: evaluate_template(CONFIG, scope))
    print(f"step configuration with three expressions: {whole:.1f} us")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
