"""A worker's rate when no record fails: TREE KIND CONCURRENCY BOOTSTRAP GROUP TOPIC RECORDS.

TREE is a directory with the package `sharecore` in it; KIND is coroutine or thread. Prints one object of
JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

TREE, KIND, CONCURRENCY, BOOTSTRAP, GROUP, TOPIC, RECORDS = sys.argv[1:]
if TREE != "installed":
    sys.path.insert(0, TREE)

from sharecore.client import Record, Worker, worker  # noqa: E402 - of the tree that was named


class Measure:
    """Counts from a tenth of the records on, so that joining is left out."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.first, self.seen = wanted, wanted // 10, 0
        self.began = self.cpu = 0.0
        self.figures: dict[str, float] = {}

    def handled(self) -> bool:
        """Note a record; whether it was the last."""
        self.seen += 1
        if self.seen == self.first:
            self.began, self.cpu = time.perf_counter(), time.process_time()
        if self.seen != self.wanted:
            return False
        count = self.wanted - self.first
        self.figures = {
            "records/s": count / (time.perf_counter() - self.began),
            "CPU s a million": (time.process_time() - self.cpu) * 1e6 / count,
        }
        return True


def make(measure: Measure, stop: asyncio.Event, loop: asyncio.AbstractEventLoop) -> Worker:
    made = worker(TOPIC, group_id=GROUP, concurrency=int(CONCURRENCY))
    if KIND == "coroutine":

        async def handle(_: Record) -> None:
            if measure.handled():
                stop.set()

        return made(handle)

    def handle_in_thread(_: Record) -> None:
        if measure.handled():
            loop.call_soon_threadsafe(stop.set)

    return made(handle_in_thread)


async def main() -> None:
    measure, stop = Measure(int(RECORDS)), asyncio.Event()
    work = make(measure, stop, asyncio.get_running_loop())
    running = asyncio.create_task(work.run({"bootstrap.servers": BOOTSTRAP}))
    await stop.wait()
    work.stop()
    await running
    print(json.dumps(measure.figures), flush=True)


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())
