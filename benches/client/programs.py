"""Python's share consumers under measurement: CLIENT MODE BOOTSTRAP GROUP TOPIC RECORDS.

MODE is batch (what was polled is accepted as a whole), each (every record is accepted by itself) or latency
(as each; values are the moments at which they were sent). Prints one object of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable

from confluent_kafka import AcknowledgeType
from confluent_kafka import ShareConsumer as ConfluentConsumer

from sharecore.client import ShareConsumer
from sharecore.client.blocking import ShareConsumer as BlockingConsumer

Figures = dict[str, float]


class Measure:
    """Counts records from the end of the first poll on, that joining is left out."""

    def __init__(self, mode: str, wanted: int) -> None:
        self.explicit = mode != "batch"
        self.latency = mode == "latency"
        self.wanted = wanted
        self.seen = self.first = 0
        self.began = self.cpu = 0.0
        self.took: list[int] = []

    def polled(self, values: list[bytes | None] | None, count: int) -> None:
        """Take the values of a poll where latency is measured, else their number."""
        self.seen += count
        if values is not None:
            now = time.monotonic_ns()
            self.took += [now - int(value or 0) for value in values]
        if not self.began and self.seen:
            self.began, self.cpu, self.first = time.perf_counter(), time.process_time(), self.seen

    @property
    def more(self) -> bool:
        return self.seen < self.wanted

    def figures(self) -> Figures:
        elapsed = time.perf_counter() - self.began
        if self.latency:
            took = sorted(self.took[self.wanted // 5 :])
            return {"p50 ms": took[len(took) // 2] / 1e6, "p99 ms": took[len(took) * 99 // 100] / 1e6}
        count = self.seen - self.first
        return {
            "records/s": count / elapsed,
            "CPU s a million": (time.process_time() - self.cpu) * 1e6 / count,
        }


def settings(mode: str, bootstrap: str, group: str) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "share.acknowledgement.mode": "implicit" if mode == "batch" else "explicit",
    }


def ours(measure: Measure, config: dict[str, str], topic: str) -> None:
    async def run() -> None:
        async with ShareConsumer(config) as consumer:
            consumer.subscribe([topic])
            while measure.more:
                batch = await consumer.poll(timeout=1)
                values = [record.value for record in batch] if measure.latency else None
                measure.polled(values, len(batch))
                if measure.explicit:
                    for record in batch:
                        consumer.accept(record)
                    consumer.commit_async()
            await consumer.commit_sync()
            report(measure)

    try:
        import uvloop
    except ImportError:
        asyncio.run(run())
    else:
        uvloop.run(run())


def ours_blocking(measure: Measure, config: dict[str, str], topic: str) -> None:
    with BlockingConsumer(config) as consumer:
        consumer.subscribe([topic])
        while measure.more:
            batch = consumer.poll(timeout=1)
            values = [record.value for record in batch] if measure.latency else None
            measure.polled(values, len(batch))
            if measure.explicit:
                for record in batch:
                    consumer.accept(record)
                consumer.commit_async()
        consumer.commit_sync()
        report(measure)


def confluents(measure: Measure, config: dict[str, str], topic: str) -> None:
    consumer = ConfluentConsumer({**config, "log_level": 0})
    consumer.subscribe([topic])
    while measure.more:
        messages = consumer.poll(1)
        values = [message.value() for message in messages] if measure.latency else None
        measure.polled(values, len(messages))
        if measure.explicit:
            for message in messages:
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)
            consumer.commit_async()
    consumer.commit_sync(30)
    report(measure)
    consumer.close()


def report(measure: Measure) -> None:
    print(json.dumps(measure.figures()), flush=True)


CLIENTS: dict[str, Callable[[Measure, dict[str, str], str], None]] = {
    "sharecore": ours,
    "sharecore-blocking": ours_blocking,
    "confluent": confluents,
}


def main(client: str, mode: str, bootstrap: str, group: str, topic: str, records: str) -> None:
    CLIENTS[client](Measure(mode, int(records)), settings(mode, bootstrap, group), topic)


if __name__ == "__main__":
    main(*sys.argv[1:])
