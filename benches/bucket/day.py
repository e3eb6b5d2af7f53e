"""An idle home for a day of simulated time: `make bench-bucket-day`.

The leader, its standby and their stores are real, with default settings. Time, the network and the bucket are
simulated, so that each request to the bucket is counted.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from rich import box
from rich.console import Console
from rich.table import Table
from tests.simulation.home import world as worlds
from tests.simulation.home.bucket import SimulatedBucket
from tests.simulation.home.machines import HomeLoop, HomeMachine, HomeProcess
from tests.simulation.home.plan import HomePlan
from tests.simulation.home.seams import in_simulation
from tests.simulation.home.world import HomeWorld
from tests.simulation.life import lived, quiet

from sharecore import _core

DOLLARS = {"create": 5.0e-6, "put": 5.0e-6, "list": 5.0e-6, "get": 0.4e-6, "delete": 0.0}
"""Of a request to S3 Standard in us-east-1."""
_HOURS_A_MONTH = 730
_HOUR_S = 3600.0
_START_S = 60.0
_FOREVER = 1 << 60
_DEFAULTS = {
    "sharecore.durability": "bucket",
    "sharecore.bucket.url": "file:///bucket",
    # the world's groups, which nobody joins, have short locks
    "group.share.min.record.lock.duration.ms": "1000",
}
_STORE = {
    "segment_bytes": 64 << 20,
    "cache_bytes": 32 << 20,
    "object_bytes": 4 << 20,
    "part_bytes": 8 << 20,
    "objects_max": 4096,
    "history_ms": 86_400_000,
    "linger_ms": 20,
    "puts_per_second": 10,
}


class CountingBucket(SimulatedBucket):
    """A bucket that counts requests.

    Attributes:
        asked_by: requests by node and kind.
    """

    def __init__(self, world: HomeWorld) -> None:
        super().__init__(world)
        self.asked_by: Counter[tuple[int, str]] = Counter()

    def send(self, machine: HomeMachine, process: HomeProcess, call: _core.BucketCall) -> None:
        """Count one request of a store."""
        self.asked_by[machine.node_id, call.kind] += 1
        super().send(machine, process, call)

    def asked(self, machine: HomeMachine, requests: Sequence[tuple[str, str]]) -> list[str | None]:
        """Count the requests of a thread."""
        for kind, _ in requests:
            self.asked_by[machine.node_id, kind] += 1
        return super().asked(machine, requests)


class Hour(NamedTuple):
    """What is in the bucket at the end of an hour."""

    objects: int
    bytes: int


class Day(HomeWorld):
    """A home that nobody uses.

    Args:
        brokers: one, or two: the second one stands by.
        hours: how long.

    Attributes:
        hours: those that have passed.
    """

    def __init__(self, loop: HomeLoop, directory: Path, brokers: int, hours: int) -> None:
        super().__init__(HomePlan(1, _FOREVER, frozenset()), loop, directory)
        self.store_options = dict(_STORE)
        self.bucket = self.counting = CountingBucket(self)
        self.brokers = brokers
        self.hours: list[Hour] = []
        self._ends_after = hours

    async def run(self) -> None:
        """Start the brokers, and look at the bucket each hour."""
        self.machines[0].start()
        assert await self.leader_within(_START_S), "nobody leads"
        if self.brokers > 1:
            self.machines[1].start()
            await asyncio.sleep(_START_S)
        self.counting.asked_by.clear()
        for _ in range(self._ends_after):
            await asyncio.sleep(_HOUR_S)
            sizes = [size for _, size in self.bucket.memory.objects()]
            self.hours.append(Hour(len(sizes), sum(sizes)))


def simulate(brokers: int, hours: int) -> Day:
    """Let a home idle."""
    with (
        tempfile.TemporaryDirectory() as directory,
        quiet(1),
        mock.patch.object(worlds, "_SETTINGS", _DEFAULTS),
    ):
        loop = HomeLoop(1)
        day = Day(loop, Path(directory), brokers, hours)
        outcome = lived(day.plan, loop, day, [in_simulation(day)], events_after=_FOREVER, close=day.close)
    if outcome.violations:
        raise RuntimeError("\n".join([*outcome.lines[-20:], *map(str, outcome.violations)]))
    return day


def dollars(requests: Counter[tuple[int, str]]) -> float:
    """Return what requests cost."""
    return sum(DOLLARS[kind] * count for (_, kind), count in requests.items())


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-bucket-day", description=__doc__.partition("\n")[0])
    parser.add_argument("--hours", type=int, default=48)
    parser.add_argument("--brokers", type=int, nargs="+", choices=(1, 2), default=[1, 2])
    chosen = parser.parse_args()
    days = [simulate(brokers, chosen.hours) for brokers in chosen.brokers]
    console = Console(width=max(120, Console().width))
    shown = Table(box=box.MARKDOWN)
    shown.add_column(f"idle for {chosen.hours} hours", no_wrap=True)
    for day in days:
        shown.add_column("home" if day.brokers == 1 else "home with standby", justify="right")
    shown.add_row("most objects", *(f"{max(each.objects for each in day.hours):,}" for day in days))
    shown.add_row("most bytes, MB", *(f"{max(each.bytes for each in day.hours) / 1e6:.2f}" for day in days))
    for kind in DOLLARS:
        each_day = (sum(n for (_, each), n in day.counting.asked_by.items() if each == kind) for day in days)
        shown.add_row(f"{kind}s a day", *(f"{count * 24 / chosen.hours:,.0f}" for count in each_day))
    month = _HOURS_A_MONTH / chosen.hours
    costs = [dollars(day.counting.asked_by) * month for day in days]
    shown.add_row("requests of a month on S3 Standard", *(f"${cost:.2f}" for cost in costs))
    console.print(shown)


if __name__ == "__main__":
    main()
