"""Dead letters on Apache Kafka 4.4.0 and on sharecore: topics, letters, states, progress and answers.

python -m tests.differential.dlq [SCENARIO ...]
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.differential.dlq.registry import ALONE, SCENARIOS, SLOW
from tests.differential.dlq.run import brokers, compare
from tests.differential.dlq.side import LIBS


def main() -> int:
    """Give 1 when there is a difference without a name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", choices=[*SCENARIOS, []], metavar="SCENARIO")
    parser.add_argument("--kinds", nargs=2, default=("apache", "sharecore"), help="which brokers")
    chosen = parser.parse_args()
    if not LIBS.is_dir():
        print(f"no {LIBS}: make jars-4.4.0", file=sys.stderr)
        return 2
    wanted = chosen.scenarios or list(SCENARIOS)
    began = time.monotonic()
    with brokers(chosen.kinds) as sides:
        exclusive = ALONE | SLOW
        quick = [name for name in wanted if name not in exclusive]
        differing, counts = compare(sides, quick, _say, together=2)
        more, others = compare(sides, [name for name in wanted if name in exclusive], _say)
    differing |= more
    counts += others
    for name, times in sorted(counts.items()):
        print(f"kept on purpose: {name}, {times} times")
    print(f"{len(wanted)} scenarios, {len(differing)} differ, {time.monotonic() - began:.0f} s")
    return bool(differing)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
