"""Which settings a broker starts with, and which topics and groups take: ours against Apache Kafka's reading.

    python -m tests.differential.configs [--several N] [--seed N] [--kafka VERSION]

A difference that is not named is printed; the status is then 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from itertools import chain

from tests.differential.configs.apache import ApacheConfigs
from tests.differential.configs.cases import several, single
from tests.differential.configs.compare import compare
from tests.harness.broker import ROOT


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.configs", description=__doc__)
    parser.add_argument("--several", type=int, default=20_000, help="cases of related keys; default: 20000")
    parser.add_argument(
        "--seed", type=int, default=time.time_ns() % 1_000_000_000, help="of the first of them"
    )
    parser.add_argument("--kafka", default="4.4.0", help="4.4.0 (default) or 4.3.1")
    arguments = parser.parse_args()
    seen: Counter[str] = Counter()
    with ApacheConfigs(ROOT / f"build/jars/kafka-{arguments.kafka}") as apache:
        seeds = range(arguments.seed, arguments.seed + arguments.several)
        for case in chain(single(), map(several, seeds)):
            found = compare(case, apache.judge(case))
            seen[found.name] += 1
            if found.name == "differs":
                print(found.text)
    total = sum(seen.values())
    named = ", ".join(
        f"{name} {count}" for name, count in seen.most_common() if name not in ("same", "differs")
    )
    print(
        f"{total} sets of settings from seed {arguments.seed} on, {seen['differs']} differ; by name: {named}"
    )
    return int(seen["differs"] > 0)


if __name__ == "__main__":
    sys.exit(main())
