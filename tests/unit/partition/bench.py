"""Share partitions of one topic over logs in memory, and fetches of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from tests.unit.partition.logs import TOPIC, MemoryLog, World

from sharecore._core import Partition, PartitionFetch, ShareLook, ShareSession, Timeouts, WaitingShareFetch
from sharecore.config import GroupConfig
from sharecore.errors import KafkaError
from sharecore.partition import SharePartition, SharePartitions
from sharecore.persister import MemoryPersister, SharePartitionKey
from sharecore.storage import Log
from sharecore.waiting import Done

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


class FetchLimits(NamedTuple):
    """The limits of a ShareFetch."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    record_limit: bool = False


LIMITS = FetchLimits(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, max_records=500, batch_size=500)
EARLIEST = GroupConfig(share_auto_offset_reset="earliest")


class Bench:
    """Share partitions of one topic, a clock, and fetches answered into a list.

    Attributes:
        connected: members with a share session, for extended locks.
        unconfigured: callbacks waiting for the configuration; None if it is always known.
    """

    def __init__(self, config: GroupConfig = EARLIEST, *, partitions: int = 1) -> None:
        self.world = World()
        self.timeouts = Timeouts(self.world.monotonic_ms, self.world.call_later)
        self.config = config
        self.logs = [MemoryLog(index=number) for number in range(partitions)]
        self.persister = MemoryPersister()
        self.ends: list[KafkaError | None] = []
        self.answers: dict[str, list[PartitionFetch]] = {}
        self.stateless: list[SharePartitionKey] = []
        self.connected: set[str] = set()
        self.unconfigured: list[Done] | None = None
        for number in range(partitions):
            self.persister.initialize(SharePartitionKey("g", TOPIC, number), 0, -1, lambda error: None)
        self.leaders = self.fresh()

    def fresh(self) -> SharePartitions:
        return SharePartitions(
            lambda topic_id, index: cast(Log, self.logs[index]),
            lambda group_id: self.config,
            persister=self.persister,
            clock=self.world,
            call_later=self.world.call_later,
            stateless=self.stateless.append,
            is_connected=lambda group_id, member_id: member_id in self.connected,
            when_configured=self._when_configured,
        )

    def _when_configured(self, done: Done) -> None:
        if self.unconfigured is None:
            done(None)
        else:
            self.unconfigured.append(done)

    def leader(self, index: int = 0) -> SharePartition:
        return self.leaders.get("g", TOPIC, index)

    def engine(self, index: int = 0) -> Partition:
        """Return the engine of a share partition with a ready leader."""
        engine = self.leader(index).engine
        assert engine is not None
        return engine

    def begin(
        self,
        session: ShareSession,
        found: list[SharePartition],
        limits: FetchLimits,
        ended: Callable[[list[PartitionFetch]], object],
        first: int = 0,
    ) -> WaitingShareFetch:
        """Start a fetch as the broker does."""
        max_wait_ms, *others = limits
        asked = dict(zip(FetchLimits._fields[1:], others, strict=True))
        look = ShareLook(session, found, first=first, **cast(Any, asked))
        fetch = WaitingShareFetch(look, self.timeouts, ended)
        results = look.begin(max_wait_ms)
        if results is None:
            fetch.wait(max_wait_ms)
        else:
            ended(results)
        return fetch

    def fetch(
        self, member: str, limits: FetchLimits = LIMITS, order: list[int] | None = None
    ) -> WaitingShareFetch:
        """Start a fetch; its response goes to `answers`."""
        leaders = [self.leader(index) for index in order or range(len(self.logs))]

        def ended(results: list[PartitionFetch]) -> None:
            self.answers[member] = results

        session = ShareSession("g", member, None)
        session.add(leader.id for leader in leaders)
        return self.begin(session, leaders, limits, ended)

    def take(self, member: str, limits: FetchLimits = LIMITS, **kwargs: Any) -> list[tuple[int, int, int]]:
        """Return what a fetch acquires at once in all partitions."""
        self.answers.pop(member, None)
        fetch = self.fetch(member, limits, **kwargs)
        results = self.answers.pop(member, [])
        fetch.cancel()
        return [range_ for result in results for range_ in result.acquired]

    def settle(self, member: str, *batches: tuple[int, int, int]) -> None:
        """Acknowledge ranges, each with one type."""
        self.leader().acknowledge(
            member, [(first, last, bytes([kind])) for first, last, kind in batches], self.ends.append
        )
