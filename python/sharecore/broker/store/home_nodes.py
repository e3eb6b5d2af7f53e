"""The brokers of a home in a bucket, and the cluster that they are to clients."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from sharecore.broker.cluster import NOBODY, Leader, Node, SingleBroker
from sharecore.clock import Clock
from sharecore.config import Listener
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Catalog
from sharecore.storage.bucket import BucketPlace, home_nodes
from sharecore.storage.described import ANNOUNCE_MS, CacheUse, Described, decode_described
from sharecore.storage.identity import Identity
from sharecore.waiting import Periodic

if TYPE_CHECKING:
    from sharecore.metrics.exposition import Exposition

logger = logging.getLogger("sharecore.broker")

_READ_MS = 30_000
_REST_MS = 120_000
"""The pause once nothing has changed for a while: a list costs as much as a write."""
_RETRY_MS = 1000
"""The pause while the leader has not described itself, or the one before has not come back."""
_EXPECTED_MS = 600_000
_FIRST_S = 5.0
_WITHDRAW_S = 1.0
_SUCCESSION_S = 2.0
"""A standby that works takes over sooner."""
_SUCCESSION_LOOK_S = 0.05
_EPOCH = b"leader-epoch"


class HomeNodes:
    """The brokers of a home: this one describes itself in the bucket, and reads of the others.

    Args:
        bucket: the home.
        node_id: this broker.
        listeners: its listeners, with their bound ports.
        rack: its rack.
        clock: the time.
        leader: returns the node that leads by the journal; its description counts however old it is.
        epoch: this broker's leader epoch; 0 if it stands by.
        cache: returns how it uses its local disk, if that has a bound.
    """

    def __init__(
        self,
        bucket: BucketPlace,
        node_id: int,
        listeners: Callable[[], Mapping[str, Listener]],
        rack: str | None,
        clock: Clock,
        leader: Callable[[], int] = lambda: NOBODY,
        epoch: int = 0,
        cache: Callable[[], CacheUse | None] = lambda: None,
    ) -> None:
        self._objects = home_nodes(bucket)
        self._node_id = node_id
        self._listeners = listeners
        self._rack = rack
        self._clock = clock
        self._leader = leader
        self._epoch = epoch
        self._cache = cache
        self._others: list[Described] = []
        self._announced_ms: float | None = None
        self._former: int | None = None
        self._has_taken_over = False
        self._began_ms = self._changed_ms = 0
        self._looked = asyncio.Event()
        self._announcing: asyncio.Future[None] | None = None
        self._rounds = Periodic(self._round, self._pause_ms, "the look at the brokers of the home")

    def start(self, former: int | None = None) -> None:
        """Describe this broker, and read of the others now and every 30 s, or 2 minutes if nothing changes;
        nothing waits for the bucket.

        Args:
            former: a broker that has ended, whose description is removed.
        """
        self._former = former
        self._has_taken_over = former is not None
        self._began_ms = self._changed_ms = self._clock.monotonic_ms()
        self._rounds.start()

    async def looked(self) -> None:
        """Wait for the first look, for 5 s at most."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._looked.wait(), _FIRST_S)

    async def _round(self) -> None:
        try:
            # first, as the former broker waits for the description of this one
            await self.look()
        finally:
            self._looked.set()
        if self._former is not None:
            former, self._former = self._former, None
            await self.withdraw(former)

    def _pause_ms(self) -> int:
        if not self._looked.is_set():
            return 0
        leader = self._leader()
        is_known = leader in (NOBODY, self._node_id) or any(each.node_id == leader for each in self._others)
        if not is_known or self._expects_another():
            return _RETRY_MS
        is_lately = self._clock.monotonic_ms() < self._changed_ms + _EXPECTED_MS
        return _READ_MS if is_lately else _REST_MS

    def _expects_another(self) -> bool:
        """Whether to look often, as the former leader may come back, which clients should know at once."""
        is_lately = self._clock.monotonic_ms() < self._began_ms + _EXPECTED_MS
        return self._has_taken_over and is_lately and not self._current()

    def stop(self) -> None:
        """Stop looking."""
        self._rounds.stop()

    async def withdraw(self, node_id: int | None = None) -> bool:
        """Remove a description: that broker, or this one, has ended.

        Returns:
            Whether the bucket confirmed it; otherwise the description is stale after a while.
        """
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            async with asyncio.timeout(_WITHDRAW_S):
                if self._announcing is not None:
                    # cancelling the round does not stop its thread, whose request must not arrive after this
                    # one
                    await asyncio.wait({self._announcing})
                gone = self._node_id if node_id is None else node_id
                await asyncio.to_thread(self._objects.withdraw, gone)
                return True
        return False

    async def look(self) -> None:
        """Read the descriptions, and renew the own one if it is old."""
        steady_ms = self._clock.monotonic_ms()
        try:
            if self._announced_ms is None or steady_ms >= self._announced_ms + ANNOUNCE_MS:
                own = self._own(self._clock.now_ms())
                announce = asyncio.to_thread(self._objects.announce, self._node_id, own)
                self._announcing = asyncio.ensure_future(announce)
                await asyncio.shield(self._announcing)
                self._announced_ms = steady_ms
            found = await self._learn()
        except OSError as error:
            logger.info("cannot learn of the other brokers of the home: %s", error)
            return
        if all(each.node_id != self._node_id for each in found):
            # the broker that took over has removed it: the next look writes it again
            self._announced_ms = None

    async def _learn(self) -> list[Described]:
        bodies = await asyncio.to_thread(self._objects.read)
        found = [each for node_body in bodies if (each := decode_described(*node_body)) is not None]
        # clients would keep trying a broker that has ended
        gone = (self._node_id, self._former)
        others = [each for each in found if each.node_id not in gone]
        if _epochs(others) != _epochs(self._others):
            self._changed_ms = self._clock.monotonic_ms()
        self._others = others
        return found

    @property
    def has_others(self) -> bool:
        """Whether another broker of the home is known; the one that led before probably comes back."""
        return self._expects_another() or bool(self._current())

    async def leave(self) -> bool:
        """Remove the own description; return whether another broker is there, which may take over."""
        self.stop()
        if not await self.withdraw():
            return False
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            async with asyncio.timeout(_WITHDRAW_S):
                await self._learn()
        return bool(self._current())

    async def succeeded(self) -> None:
        """Wait until another broker leads, as its description says, but only for a short time."""
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            async with asyncio.timeout(_SUCCESSION_S):
                while True:
                    if any(each.epoch > self._epoch for each in await self._learn()):
                        return
                    await asyncio.sleep(_SUCCESSION_LOOK_S)

    def _own(self, now_ms: int) -> bytes:
        listeners = {
            name: (each.advertised_host, each.advertised_port) for name, each in self._listeners().items()
        }
        cache = self._cache()
        return Described(self._node_id, listeners, self._rack, now_ms, self._epoch, cache).encode()

    def report(self, sheet: Exposition) -> None:
        """Put the number of the other brokers among the metrics."""
        # loaded only if metrics are requested
        from sharecore.metrics.bucket_families import BUCKET_STANDBYS

        sheet.add(BUCKET_STANDBYS, len(self._current()))

    def _current(self) -> list[Described]:
        now_ms, leader = self._clock.now_ms(), self._leader()
        return [each for each in self._others if each.node_id == leader or each.is_current(now_ms)]

    def others(self, listener: str) -> list[Node]:
        """Return the other brokers, with their addresses on a listener."""
        return [
            Node(each.node_id, *each.listeners[listener], each.rack)
            for each in self._current()
            if listener in each.listeners
        ]


def _epochs(nodes: list[Described]) -> dict[int, int]:
    return {each.node_id: each.epoch for each in nodes}


def leader_epoch(catalog: Catalog) -> int:
    """Return the leader epoch of all partitions; 0 if no home was served with this data."""
    kept = catalog.get(_EPOCH)
    return 0 if kept is None else int(kept)


async def next_leader_epoch(catalog: Catalog) -> int:
    """Begin a leader epoch: clients that know a later one do not return to this broker's predecessor.

    Raises:
        KafkaError: it cannot be written.
    """
    epoch = leader_epoch(catalog) + 1
    await catalog.put(_EPOCH, b"%d" % epoch)
    return epoch


class HomeCluster(SingleBroker):
    """The leader of a home, which leads everything, and the brokers that stand by.

    Args:
        epoch: its leader epoch.
        nodes: the other brokers.
        may_lease: whether no other broker can lead now.
    """

    leases_always = False

    def __init__(
        self,
        identity: Identity,
        listeners: Callable[[], Mapping[str, Listener]],
        rack: str | None,
        epoch: int,
        nodes: HomeNodes,
        may_lease: Callable[[], bool],
    ) -> None:
        super().__init__(identity, listeners, rack, epoch)
        self._others = nodes
        self._may_lease = may_lease

    def may_lease(self) -> bool:
        # asked as an answer with acquired records is written: the process may have stood still since they
        # were acquired. What else is answered waits for the bucket, which has another leader's claim then
        return self._may_lease()

    def nodes(self, listener: str) -> Sequence[Node]:
        return [*super().nodes(listener), *self._others.others(listener)]


class LobbyCluster:
    """The cluster that a standby names to clients: another broker leads everything.

    Args:
        identity: this broker.
        listeners: its listeners, with their bound ports.
        rack: its rack.
        nodes: the other brokers.
        leader: returns who leads.
    """

    leads_all = False
    leases_always = False

    def __init__(
        self,
        identity: Identity,
        listeners: Callable[[], Mapping[str, Listener]],
        rack: str | None,
        nodes: HomeNodes,
        leader: Callable[[], Leader],
    ) -> None:
        self._own = SingleBroker(identity, listeners, rack)
        self._nodes = nodes
        self._listeners = listeners
        self._leader = leader

    def nodes(self, listener: str) -> Sequence[Node]:
        return [*self._own.nodes(listener), *self._nodes.others(listener)]

    def controller(self) -> int:
        return self.leading().node_id

    def leading(self) -> Leader:
        """Return who leads everything; `NOBODY` while its address is not known."""
        leader = self._leader()
        names = self._listeners()
        known = any(each.node_id == leader.node_id for name in names for each in self._nodes.others(name))
        return leader if known else Leader(NOBODY, leader.epoch)

    def leader(self, topic_id: UUID, partition: int) -> Leader:
        return self.leading()

    def coordinator(self, group_id: str) -> int:
        return self.leading().node_id

    def may_lease(self) -> bool:
        return False

    def check_leader(self, topic_id: UUID, partition: int) -> None:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_coordinator(self, group_id: str) -> None:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    def check_asker(self, group_id: str, epoch: int) -> None:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)
