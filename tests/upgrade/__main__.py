"""Forth and back between the release before and this one: `python -m tests.upgrade OLD NEW`, two programs.

The older one fills a directory and is killed; the newer one serves that, fills it further and is killed;
where both know the format, the older one serves that again.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.harness.broker import QUICK_GROUPS, Broker
from tests.upgrade.contents import SETTINGS, check, fill


def format_of(data: Path) -> int:
    """Return the format of a directory; 1 where nothing says it."""
    kept = data / "format"
    return int(kept.read_text().splitlines()[0].removeprefix("format=")) if kept.exists() else 1


def started(home: Path, program: str) -> Broker:
    broker = Broker(home, settings=QUICK_GROUPS | SETTINGS, program=program)
    seconds = broker.start()
    print(f"{program} serves after {seconds:.2f} s, format {format_of(home / 'data')}", flush=True)
    return broker


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("older", help="the program of the release before")
    parser.add_argument("newer", help="this release's program")
    parser.add_argument("--padding", type=int, default=300_000, help="bytes of a record: several segments")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        broker = started(home, asked.older)
        first = fill(broker.bootstrap, "first", asked.padding)
        broker.kill()
        before = format_of(home / "data")
        broker = started(home, asked.newer)
        check(broker.bootstrap, "first", first)
        second = fill(broker.bootstrap, "second", asked.padding)
        broker.kill()
        if format_of(home / "data") > before:
            print("a new format: there is no way back")
            return 0
        broker = started(home, asked.older)
        check(broker.bootstrap, "second", second)
        broker.kill()
    print("forth and back: all of it is there")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
