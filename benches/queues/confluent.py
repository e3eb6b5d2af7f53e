"""confluent-kafka's share consumers under measurement: NAME=VALUE..., as QueueClient.java; a thread each."""

from __future__ import annotations

import sys
import threading
import time
from array import array
from pathlib import Path

from confluent_kafka import ShareConsumer
from tests.harness.clients import ACCEPT, QUIET, RELEASE


class Members:
    """Share consumers that work off records until enough are accepted, or the time is over.

    Args:
        named: words of the command line.
    """

    def __init__(self, named: dict[str, str]) -> None:
        self._named = named
        self._records, self._fails = int(named["records"]), int(named["fails"])
        self._work_s = int(named["work_us"]) / 1e6
        self._rows: list[array[int]] = []
        self._accepted: list[int] = []
        self._end_ns = 0

    def run(self) -> None:
        """Run all of them, and write the trail."""
        threads = []
        for worker in range(int(self._named["workers"])):
            self._rows.append(array("q"))
            self._accepted.append(0)
            threads.append(threading.Thread(target=self._member, args=(worker,)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        whole = array("q")
        for rows in self._rows:
            whole += rows
        if sys.byteorder == "little":
            whole.byteswap()
        Path(self._named["trail"]).write_bytes(whole.tobytes())

    def _is_over(self) -> bool:
        return sum(self._accepted) >= self._records or (self._end_ns > 0 and time.time_ns() > self._end_ns)

    def _member(self, worker: int) -> None:
        named, rows = self._named, self._rows[worker]
        consumer = ShareConsumer(
            {
                "bootstrap.servers": named["bootstrap"],
                "group.id": named["group"],
                "share.acknowledgement.mode": "explicit",
                "max.poll.records": int(named["poll"]),
                **QUIET,
            }
        )
        consumer.subscribe(named["topics"].split(","))
        while not self._is_over():
            messages = consumer.poll(0.2)
            for message in messages:
                error = message.error()
                if error is not None:
                    raise RuntimeError(str(error))
                began = time.time_ns()
                if not self._end_ns:
                    self._end_ns = began + int(named["seconds"]) * 1_000_000_000
                if self._work_s:
                    time.sleep(self._work_s)
                delivery = message.delivery_count() or 1
                record = int.from_bytes((message.value() or b"")[:8], "big")
                rows.extend((record, began, time.time_ns(), delivery))
                is_good = delivery > self._fails
                consumer.acknowledge(message, ACCEPT if is_good else RELEASE)
                self._accepted[worker] += is_good
            if messages:
                consumer.commit_async()
        consumer.close()


if __name__ == "__main__":
    Members(dict(word.split("=", 1) for word in sys.argv[1:])).run()
