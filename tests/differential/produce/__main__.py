"""Compares Produce of lying batches with Apache Kafka: python -m tests.differential.produce"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.differential.produce.both import both, compare
from tests.differential.produce.cases import cases


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.produce", description=__doc__)
    parser.add_argument(
        "--seed", type=int, default=time.time_ns() % 10**6, help="of the bytes that are changed"
    )
    parser.add_argument("--flips", type=int, default=400, help="batches a codec with a byte that is wrong")
    parser.add_argument("--compression", default="producer", help="compression.type of the topics")
    asked = parser.parse_args()
    print(f"seed {asked.seed}")
    with tempfile.TemporaryDirectory() as home, both(Path(home), asked.compression) as sides:
        counted, different = compare(sides, cases(int(time.time() * 1000), asked.seed, asked.flips))
    for name, count in counted.most_common():
        print(f"{count:6} {name}")
    print(f"{len(different):6} different", *different, sep="\n")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
