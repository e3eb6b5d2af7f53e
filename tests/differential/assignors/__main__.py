"""Our assignors against Apache Kafka's own classes, on random groups that change.

    python -m tests.differential.assignors [--lives N] [--seed N] [ASSIGNOR ...]

A difference is printed with the group as JSON and the seed of its life; the status is then 1.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.differential.assignors.apache import ApacheAssignors
from tests.differential.assignors.check import check


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.assignors", description=__doc__)
    parser.add_argument("assignors", nargs="*", default=["simple", "uniform", "range"], metavar="ASSIGNOR")
    parser.add_argument(
        "--lives", type=int, default=2000, help="groups that live nine steps each; default: 2000"
    )
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000_000, help="of the first life")
    arguments = parser.parse_args()
    failed = False
    with ApacheAssignors() as apache:
        for assignor in arguments.assignors:
            groups = wrong = 0
            for seed in range(arguments.seed, arguments.seed + arguments.lives):
                for group, difference in check(apache, assignor, seed):
                    groups += 1
                    if difference is not None:
                        wrong += 1
                        print(f"--seed {seed} {assignor}: {group.as_json(assignor)}\n{difference}")
            print(f"{assignor}: {groups} groups from seed {arguments.seed} on, {wrong} differ")
            failed = failed or wrong > 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
