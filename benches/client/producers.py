"""Python's producers under measurement: CLIENT BOOTSTRAP TOPIC RECORDS. Prints one object of JSON.

All send the same records with the same settings and wait until each is confirmed; confluent-kafka is used as
its documentation says, with a callback for each record.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer as ConfluentProducer

from sharecore.client import BlockingProducer, Producer

RECORD_BYTES = 100
WARM_UP = 1_000


class Measure:
    """Takes the time and the CPU time of `count` records."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def report(self) -> None:
        elapsed, cpu = time.perf_counter() - self._began, time.process_time() - self._cpu
        figures = {"records/s": self.count / elapsed, "CPU s a million": cpu * 1e6 / self.count}
        print(json.dumps(figures), flush=True)


def settings(bootstrap: str) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True}


def values(count: int) -> list[bytes]:
    return [bytes(RECORD_BYTES)] * count


def ours(bootstrap: str, topic: str, count: int) -> None:
    async def run() -> None:
        async with Producer(settings(bootstrap)) as producer:
            await producer.send_many(topic, values(WARM_UP))
            measure = Measure(count)
            await producer.send_many(topic, values(count))
            measure.report()

    asyncio.run(run())


def ours_blocking(bootstrap: str, topic: str, count: int) -> None:
    with BlockingProducer(settings(bootstrap)) as producer:
        producer.send_many(topic, values(WARM_UP))
        measure = Measure(count)
        producer.send_many(topic, values(count))
        measure.report()


def confluents(bootstrap: str, topic: str, count: int) -> None:
    producer = ConfluentProducer(
        {**settings(bootstrap), "partitioner": "murmur2_random", "queue.buffering.max.kbytes": 65_536}
    )
    failed = confirmed = 0

    def answered(error: object, _: object) -> None:
        nonlocal failed, confirmed
        if error is None:
            confirmed += 1
        else:
            failed += 1

    def send(each: list[bytes]) -> None:
        for value in each:
            while True:
                try:
                    producer.produce(topic, value, on_delivery=answered)
                    break
                except BufferError:
                    producer.poll(0.02)
            producer.poll(0)
        producer.flush(60)

    send(values(WARM_UP))
    measure = Measure(count)
    send(values(count))
    measure.report()
    assert (confirmed, failed) == (count + WARM_UP, 0)


CLIENTS: dict[str, Callable[[str, str, int], None]] = {
    "sharecore": ours,
    "sharecore-blocking": ours_blocking,
    "confluent": confluents,
}


if __name__ == "__main__":
    CLIENTS[sys.argv[1]](sys.argv[2], sys.argv[3], int(sys.argv[4]))
