"""Plain consumers that read everything, and the cluster's own view of logs and groups."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from sharecore.verify.workload.journal import Journal

_BATCH = 500
_COMMIT_EVERY = 20
_FINAL_SECONDS_MAX = 120.0


class Reader:
    """Reads all partitions from the beginning, commits offsets and fetches them.

    Args:
        isolation: read_committed or read_uncommitted.
    """

    def __init__(self, journal: Journal, isolation: str, settings: Mapping[str, object]) -> None:
        self._journal, self._isolation = journal, isolation
        self._name = f"reader-{isolation}"
        self._group = journal.plan.reader_group(isolation)
        self._consumer = Consumer(
            {
                "log_level": 0,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 500,
                "group.id": self._group,
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                **settings,
            }
        )
        self._positions = dict.fromkeys(journal.plan.places, 0)
        self._committed: dict[tuple[str, int], int] = {}

    def run(self) -> None:
        """Read until the end of the run, and then to the ends of the logs, in a thread."""
        self._consumer.assign([TopicPartition(*place, 0) for place in self._positions])
        polls = 0
        try:
            while not self._journal.stopped.is_set():
                self._read(0.5)
                polls += 1
                if not polls % _COMMIT_EVERY:
                    self._commit()
            self._finish()
        finally:
            self._consumer.close()

    def _read(self, seconds: float) -> None:
        began = self._journal.now_ms()
        came: dict[tuple[str, int], list[list[int]]] = {}
        ends: dict[tuple[str, int], int] = {}
        for message in self._consumer.consume(_BATCH, seconds):
            place = (message.topic() or "", message.partition() or 0)
            offset = message.offset() or 0
            error = message.error()
            if error is None:
                came.setdefault(place, []).append([offset, self._journal.ident(message.value())])
            elif error.code() == KafkaError._PARTITION_EOF:
                ends[place] = offset
            else:
                self._journal.trouble(self._name, error)
        for place in came.keys() | ends.keys():
            records = came.get(place, [])
            first = self._positions.get(place, 0)
            following = records[-1][0] + 1 if records else first
            following = max(following, ends.get(place, 0))
            if following == first:
                continue
            self._positions[place] = following
            span: dict[str, object] = {"from": first, "next": following, "records": records}
            self._journal.write("read", began, isolation=self._isolation, **self._place(place), **span)

    def _place(self, place: tuple[str, int]) -> dict[str, str | int]:
        return {"client": self._name, "topic": place[0], "partition": place[1]}

    def _commit(self) -> None:
        """Commit the position in one partition, and fetch it."""
        ahead = [place for place, offset in self._positions.items() if offset > self._committed.get(place, 0)]
        if not ahead:
            return
        place = ahead[0]
        offset = self._committed[place] = self._positions[place]
        fields = {"group": self._group, **self._place(place)}
        began = self._journal.now_ms()
        try:
            self._consumer.commit(offsets=[TopicPartition(*place, offset)], asynchronous=False)
            self._journal.write("commit", began, **fields, offset=offset)
        except KafkaException as error:
            self._journal.trouble(self._name, error)
            self._journal.write("commit", began, "unknown", **fields, offset=offset)
        began = self._journal.now_ms()
        try:
            found = self._consumer.committed([TopicPartition(*place)], 10)[0]
        except KafkaException as error:
            self._journal.trouble(self._name, error)
            return
        if found.error is None:
            self._journal.write("committed", began, **fields, offset=max(-1, found.offset))

    def _finish(self) -> None:
        """Read to the ends of the logs."""
        until = time.monotonic() + _FINAL_SECONDS_MAX
        ends = {}
        for place in self._positions:
            while place not in ends and time.monotonic() < until:
                began = self._journal.now_ms()
                try:
                    _, ends[place] = self._consumer.get_watermark_offsets(TopicPartition(*place), 10)
                except KafkaException as error:
                    self._journal.trouble(self._name, error)
                else:
                    if self._isolation == "read_uncommitted":
                        self._journal.write("ends", began, **self._place(place), offset=ends[place])
        while time.monotonic() < until and any(self._positions[place] < end for place, end in ends.items()):
            self._read(0.5)
