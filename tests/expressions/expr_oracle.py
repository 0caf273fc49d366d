"""expr-lang's own evaluator as a child process: a line of JSON in, a line of JSON out.

It runs Go's runtime with threads and signal handlers of its own, which has no place in the process of the tests.
In: `[source, names]`. Out: `["value", text]` or `["error", message]`.
"""

from __future__ import annotations

import json
import sys

import golem


def main() -> None:
    """Answer until the input ends."""
    engine = golem.Engine(strict_vars=False)
    for line in sys.stdin:
        source, names = json.loads(line)
        try:
            answer = ["value", engine.eval(source, names)]
        except golem.GolemError as error:
            answer = ["error", str(error)]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
