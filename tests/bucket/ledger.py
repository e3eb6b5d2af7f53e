"""What clients of a broker were answered, and when: held against what is restored from its bucket.

All times are of one monotonic clock. A scrape that began at `t` and says that the oldest write which is not
in the bucket has waited `w` proves that all that was answered before `t - w` is in the bucket.
"""

from __future__ import annotations

import re
import threading
import time
import urllib.request

from confluent_kafka import Message, Producer

from sharecore.client.blocking import ShareConsumer
from sharecore.errors import KafkaError

GROUP = "workers"
_BEHIND = re.compile(r"^sharecore_bucket_behind_seconds (\S+)$", re.MULTILINE)
_LEADING = re.compile(r'^sharecore_bucket_state\{state="leading"\} 1', re.MULTILINE)


class Ledger:
    """One producer, one member of a share group, and one who looks at the metrics, while a broker lives.

    Args:
        bootstrap: the broker's address.
        topic: that exists.
        metrics: URL of the broker's metrics.
        first: number of the first record.
    """

    def __init__(self, bootstrap: str, topic: str, metrics: str, first: int = 0) -> None:
        self.answered: dict[int, float] = {}
        """Records by their number, and when they were answered."""
        self.settled: dict[int, float] = {}
        """Records whose acknowledgement was answered, and when."""
        self.received: set[int] = set()
        self.copied_until = 0.0
        """All that was answered before is in the bucket."""
        self.next = first
        self._bootstrap, self._topic, self._metrics = bootstrap, topic, metrics
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=work, daemon=True)
            for work in (self._produce, self._consume, self._scrape)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def copied(self) -> tuple[set[int], set[int]]:
        """Return the records that the bucket has, and those whose acknowledgement it has."""
        until = self.copied_until
        answered = {number for number, at in self.answered.copy().items() if at < until}
        return answered, {number for number, at in self.settled.copy().items() if at < until}

    def _produce(self) -> None:
        # unconfirmed records are not sent again: no one waits for them
        producer = Producer(
            {"bootstrap.servers": self._bootstrap, "linger.ms": 2, "message.timeout.ms": 2000, "log_level": 0}
        )

        def answered(number: int, error: object) -> None:
            if error is None:
                self.answered[number] = time.monotonic()

        while not self._ends.is_set():
            number = self.next
            self.next += 1

            def done(error: object, _: Message, number: int = number) -> None:
                answered(number, error)

            try:
                producer.produce(self._topic, b"%d" % number, on_delivery=done)
            except BufferError:
                time.sleep(0.01)
            producer.poll(0)
            if number % 20 == 0:
                time.sleep(0.005)

    def _consume(self) -> None:
        consumer = ShareConsumer(bootstrap_servers=self._bootstrap, group_id=GROUP)
        try:
            consumer.subscribe([self._topic])
            while not self._ends.is_set():
                try:
                    records = consumer.poll(timeout=0.2)
                    numbers = [int(record.value or b"") for record in records]
                    self.received.update(numbers)
                    refused = consumer.commit_sync()
                except (KafkaError, OSError):
                    continue
                now = time.monotonic()
                if all(error is None for error in refused.values()):
                    self.settled.update((number, now) for number in numbers)
        finally:
            consumer.close(0)

    def _scrape(self) -> None:
        while not self._ends.is_set():
            began = time.monotonic()
            try:
                with urllib.request.urlopen(self._metrics, timeout=5) as page:
                    text = page.read().decode()
            except OSError:
                continue
            behind = _BEHIND.search(text)
            if behind is not None and _LEADING.search(text):
                self.copied_until = max(self.copied_until, began - float(behind[1]))
            time.sleep(0.02)
