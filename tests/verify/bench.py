"""Time and memory of the checker on a made history: `python -m tests.verify.bench --operations 10000000`."""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

from sharecore.verify.check import check

_PLACES = [(f"t{topic}", partition) for topic in range(3) for partition in range(4)]
_BURST = 10


def make(file: TextIO, operations: int) -> None:
    """Write a clean history: each record is sent, read, delivered and accepted, each by a call of its own."""
    group = {"delivery_limit": 5, "isolation": "read_uncommitted", "from": "earliest"}
    now, written, ident = 1, 1, 0

    def put(op: str, client: str, took: int = 2, /, **fields: Any) -> None:
        line = {"op": op, "client": client, "start": now, "end": now + took, "outcome": "ok", **fields}
        file.write(json.dumps(line, separators=(",", ":")) + "\n")

    put("history", "", 0, format=1, groups={"g": group})
    ends = dict.fromkeys(_PLACES, 0)
    while written < operations:
        for number, (topic, partition) in enumerate(_PLACES):
            place: dict[str, Any] = {"topic": topic, "partition": partition}
            first = ends[topic, partition]
            some = [(first + each, ident + each) for each in range(_BURST)]
            for offset, each in some:
                put("send", f"p{number % 8}", id=each, offset=offset, **place)
                now += 1
            for offset, each in some:
                records = [[offset, each, 1]]
                put("take", f"w{offset % 32}", group="g", lock_ms=1000, records=records, **place)
                now += 1
            now += 3
            for offset, _ in some:
                offsets = [[offset, offset]]
                put("settle", f"w{offset % 32}", group="g", kind="accept", offsets=offsets, **place)
                now += 1
            span = {"from": first, "next": first + _BURST, "records": some}
            put("read", "r", isolation="read_uncommitted", **span, **place)
            ends[topic, partition] += _BURST
            ident += _BURST
            written += 3 * _BURST + 1


def main() -> None:
    """Make a history, check it, and print what that took."""
    parser = argparse.ArgumentParser(prog="python -m tests.verify.bench", description=__doc__)
    parser.add_argument("--operations", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="verify-bench-") as directory:
        path = Path(directory) / "history.jsonl"
        with path.open("w") as file:
            make(file, options.operations)
        size = path.stat().st_size
        began, cpu = time.monotonic(), time.process_time()
        result = check([path])
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    assert not result.counts, result.counts
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{sum(result.operations.values()):,} operations, {size / 1e6:,.0f} MB: "
        f"{seconds:.0f} s ({cpu:.0f} s of CPU), {resident:,.0f} MB of memory"
    )


if __name__ == "__main__":
    main()
