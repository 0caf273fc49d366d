"""How long one evaluation of a typical expression takes, beside Jinja2's sandboxed expressions and Go's expr.

Run as `python -m tests.bench.bench_expressions`. Ours and Jinja2's are compiled beforehand and run in this process, in
turn, on the same names; the best of several rounds counts, so that other work on the machine disturbs less. Go's
evaluator is called over its Python binding (the package enchanter-golem), which keeps compiled programs and carries
names and results as JSON, in a process of its own; without the package its part is left out with a message.
"""

from __future__ import annotations

import json
import subprocess
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


ORACLE = """
import json, sys, time
import golem
engine = golem.Engine(strict_vars=False)
names, sources, rounds, calls = json.load(sys.stdin)
for source in sources:
    found = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(calls):
            engine.eval(source, names)
        found = min(found, time.perf_counter() - started)
    print(found / calls * 1e6)
"""


def ask_go(sources: list[str]) -> list[float] | str:
    """Microseconds per call of Go's expr for each expression, or why it cannot be asked."""
    asked = json.dumps([NAMES, sources, 3, CALLS // 10])
    ended = subprocess.run(
        [sys.executable, "-c", ORACLE], input=asked, capture_output=True, text=True, timeout=120, check=False
    )
    if ended.returncode != 0:
        last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
        return f"install the package enchanter-golem to compare with Go's expr ({last})"
    return [float(line) for line in ended.stdout.split()]


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
    # `map` and `filter` give lists, which the binding does not carry; `join` makes a text of them.
    go = ask_go([ours for ours, _ in PAIRS.values()])
    if isinstance(go, str):
        print(go)
    else:
        for name, micros in zip(PAIRS, go, strict=True):
            print(f"{name}: Go's expr over its binding {micros:.1f} us, programs cached")
    scope = Scope(NAMES, TEMPLATE_FUNCTIONS)
    whole = best(lambda: evaluate_template(CONFIG, scope))
    print(f"step configuration with three expressions: {whole:.1f} us")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
