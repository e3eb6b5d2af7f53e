"""`python -m tests.differential.access`: the whole matrix, or a part of it."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.differential.access.case import twice
from tests.differential.access.cases import cases
from tests.differential.access.generated_cases import generated
from tests.differential.access.matrix import OFFERED, allow, guarded, play, principals


def main() -> int:
    """Give 1 when there is a difference without a name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="requests whose names hold this")
    parser.add_argument("--principals", default="", help="principals whose names hold this")
    parser.add_argument("--kinds", nargs=2, default=("apache", "sharecore"), help="which brokers")
    parser.add_argument("--twice", action="store_true", help="name all that the requests name twice")
    chosen = parser.parse_args()
    wanted = [case for case in cases() if chosen.only in case.name]
    if chosen.twice:
        wanted = [doubled for case in wanted if (doubled := twice(case)) is not None]
    entries = {name: some for name, some in principals().items() if chosen.principals in name}
    with (
        tempfile.TemporaryDirectory(prefix="access-") as home,
        guarded(Path(home), principals(), tuple(chosen.kinds)) as brokers,
    ):
        for broker in brokers:
            allow(broker, principals())
        began = time.monotonic()
        say = partial(print, flush=True)
        seen = play(brokers, wanted, entries, say)
        about_nothing = [case for case in generated() if chosen.only in case.name]
        if "nobody" in entries:
            seen.add(play(brokers, about_nothing, {"nobody": []}, say))
    print(f"{seen.cases} cases, {len(seen.differing)} differ, {time.monotonic() - began:.0f} s")
    for name, times in sorted(seen.known.items()):
        print(f"kept on purpose: {name}, {times} times")
    offered = set.intersection(*(set(OFFERED[kind]) for kind in chosen.kinds))
    for name in sorted({case.key.name for case in wanted if case.key not in offered}):
        print(f"not served here, and not compared: {name}")
    return bool(seen.differing)


if __name__ == "__main__":
    sys.exit(main())
