"""Instructions that the hot operations take, by callgrind: they don't depend on what else the machine does.

`make callgrind` compares them with benches/engine/callgrind.json; ARGS=--record writes it anew.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benches.engine.traces import ROOT

RECORD = Path(__file__).with_name("callgrind.json")
# the functions of rust/engine/benches/hot.rs that are counted
OPERATIONS = {
    "acquire": "measured_acquire",
    "acknowledge_batch": "measured_acknowledge",
    "acknowledge_single": "measured_acknowledge",
    "advance": "measured_advance",
}
TIMES = 1000
TOLERANCE = 0.03


def build() -> Path:
    """Return the bench's program, as cargo says where it is."""
    command = ["cargo", "bench", "--locked", "-p", "sharecore-engine", "--bench", "hot", "--no-run"]
    done = subprocess.run(
        [*command, "--message-format=json"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    artifacts = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    paths = [a["executable"] for a in artifacts if a.get("target", {}).get("name") == "hot"]
    return Path(paths[-1])


def count(program: Path, operation: str) -> int:
    """Instructions that one operation takes, of many."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        options = [
            f"--callgrind-out-file={out}",
            f"--toggle-collect={OPERATIONS[operation]}",
            "--collect-atstart=no",
        ]
        subprocess.run(
            ["valgrind", "-q", "--tool=callgrind", *options, str(program), operation, str(TIMES)], check=True
        )
        found = re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.MULTILINE)
    if found is None or found[1] == "0":
        raise SystemExit(f"callgrind counted nothing for {operation}")
    return int(found[1]) // TIMES


def main() -> int:
    parser = argparse.ArgumentParser(prog="make callgrind", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the counts down as the new measure")
    chosen = parser.parse_args()
    compiler = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True)
    program = build()
    now = {operation: count(program, operation) for operation in OPERATIONS}
    if chosen.record:
        record = {"compiler": compiler.stdout.strip(), "instructions": now}
        RECORD.write_text(json.dumps(record, indent=2) + "\n")
    before = json.loads(RECORD.read_text())
    if before["compiler"] != compiler.stdout.strip():
        print(f"recorded with {before['compiler']}, this is {compiler.stdout.strip()}: counts may differ")
    worse = False
    for operation, instructions in now.items():
        change = instructions / before["instructions"][operation] - 1
        worse |= abs(change) > TOLERANCE
        print(f"{operation:20} {instructions:8,} instructions  {change:+7.1%}")
    if worse:
        print(f"more than {TOLERANCE:.0%} from the record: find out why, or ARGS=--record where it is meant")
    return int(worse)


if __name__ == "__main__":
    sys.exit(main())
