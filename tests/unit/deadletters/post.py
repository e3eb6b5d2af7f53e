"""One share partition's outbox, a dead-letter topic, and time, stepped manually."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from tests.harness.batches import keyed_batch
from tests.unit.partition.logs import MemoryLog, Ticket, World

from sharecore._core import decode_records
from sharecore.config import BrokerConfig, GroupConfig, TopicConfig
from sharecore.deadletters import DeadLetter, DeadLetterService, Destinations
from sharecore.deadletters.outbox import Outbox
from sharecore.errors import KafkaError
from sharecore.storage import Log, Topics

NAME = "dlq.t"
TOPIC_ID = UUID(int=1)


class Source(MemoryLog):
    """Records `k0`, `k1`, ... in separate batches."""

    def fill(self, count: int) -> None:
        for number in range(count):
            data = keyed_batch([(f"k{number}".encode(), b"v")], base=number)
            self._batches.append((number, number, data))
        self.high_watermark = self.last_stable_offset = self._end = count


class Queue:
    """A partition of the dead-letter topic: accepts batches, or returns an error."""

    def __init__(self) -> None:
        self.refuse: list[KafkaError] = []
        self.batches: list[list[int]] = []
        self.keys: list[bytes | None] = []
        self.open: list[tuple[Ticket, list[int]]] = []
        self.hold = False

    def append(self, records: bytes, *, now_ms: int) -> Any:
        letters = decode_records(records, [(0, 1000, 1)], NAME, 0, None)[0]
        offsets = [int(dict(letter.headers)["__dlq.errors.offset"] or b"") for letter in letters]
        self.keys = [letter.key for letter in letters]
        if self.refuse:
            raise self.refuse.pop(0)
        ticket = Ticket()
        self.open.append((ticket, offsets))
        if not self.hold:
            self.settle()
        return SimpleNamespace(ticket=ticket)

    def settle(self, error: KafkaError | None = None) -> None:
        """Complete the pending writes."""
        under_way, self.open = self.open, []
        for ticket, offsets in under_way:
            if error is None:
                self.batches.append(offsets)
            ticket.settle(error)


class Post:
    """The outbox and its environment."""

    def __init__(self, records: int = 20, **group: Any) -> None:
        self.world = World()
        self.source = Source()
        self.source.fill(records)
        self.queue = Queue()
        self.group = GroupConfig(errors_deadletterqueue_topic_name=NAME, **group)
        self.broker = BrokerConfig()
        self.topic = TopicConfig(errors_deadletterqueue_group_enable=True)
        self.topics: dict[str, Any] = {NAME: SimpleNamespace(name=NAME, partitions=[self.queue])}
        self.create_errors: list[KafkaError] = []
        self.archived: list[tuple[int, int]] = []
        self.dead_letter_service = DeadLetterService(
            Destinations(
                cast(Topics, self.topics),
                lambda group_id: self.group,
                lambda name: self.topic,
                lambda: self.broker,
                self.create,
            ),
            lambda: True,
            self.world,
            self.world.call_later,
            lambda topic_id, index: self.leads,
        )
        self.leads = True
        self.outbox = self.another_outbox()

    def another_outbox(self) -> Outbox:
        """Add another share partition of the group, with the same records."""
        return self.dead_letter_service.outbox("g", TOPIC_ID, cast(Log, self.source), self.archived.extend)

    async def create(self, name: str, settings: dict[str, str]) -> None:
        await asyncio.sleep(0)
        if self.create_errors:
            raise self.create_errors.pop(0)
        self.topics[name] = SimpleNamespace(name=name, partitions=[self.queue])

    def send(self, *ranges: tuple[int, int], rejected: bool = True) -> None:
        self.outbox.send([DeadLetter(first, last, 1, rejected) for first, last in ranges])

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Dead-letter records, writes, failed writes, records without a dead-letter record."""
        found = self.dead_letter_service.counts["g"]
        return found.letters, found.writes, found.failed_writes, found.without_letter
