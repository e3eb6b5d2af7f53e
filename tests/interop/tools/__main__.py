"""Apache Kafka's tools for groups on sharecore and on Apache Kafka itself, side by side.

    python -m tests.interop.tools [--keep DIRECTORY] [SCENARIO ...]

Prints the lines that differ, and ends with status 1 when there are some.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.interop.tools.compare import compare
from tests.interop.tools.scenarios import SCENARIOS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interop.tools", description=__doc__)
    parser.add_argument(
        "scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; default: all"
    )
    parser.add_argument("--keep", type=Path, help="write the transcripts into this directory")
    arguments = parser.parse_args()
    differences = 0
    for name in arguments.scenarios or SCENARIOS:
        with tempfile.TemporaryDirectory() as home:
            found = compare(Path(home), SCENARIOS[name].scenario(), SCENARIOS[name].settings)
        if arguments.keep:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            for kind, told in (("apache", found.apache), ("sharecore", found.sharecore)):
                (arguments.keep / f"{name}.{kind}.txt").write_text("\n".join(told) + "\n")
        commands = sum(line.startswith("$") for line in found.apache)
        differing = found.differing()
        print(f"{name}: {commands} commands, {len(found.apache)} lines, {len(differing)} commands differ")
        for known, count in sorted(found.known().items()):
            print(f"  known: {known}, {count} commands")
        for line in found.difference():
            print(line)
        differences += len(differing)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
