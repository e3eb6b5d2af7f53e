"""Settings of groups, users, ACLs and quotas: a compacted upstream topic of one partition.

Every node may write; the last value of a key wins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from sharecore.clock import Clock
from sharecore.config import BrokerConfig
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ConfigError, ConfigUnavailable, ErrorCode, KafkaError
from sharecore.logs import shorten
from sharecore.storage import Catalog, Configs, Objects, ResourceType, Ticket, Value
from sharecore.tier.names import settings_topic
from sharecore.tier.settings.own_topics import MESSAGE_BYTES_MIN, state_record_bytes
from sharecore.tier.settings.records import SLOTS, flaw
from sharecore.tier.settings.single_values import SingleValues
from sharecore.tier.upstream.batches import cut_batches, decode
from sharecore.tier.upstream.replay import Reading, bounds_of, replay
from sharecore.tier.upstream.sources import Fetching, Subscription
from sharecore.tier.upstream.topics import OWN_SETTINGS, Making
from sharecore.upstream import Fetched, Trouble
from sharecore.waiting import Done, settle

logger = logging.getLogger("sharecore.tier")

_ROOM_BYTES = 1 << 20
_RETRY_S = 1.0
_KEY_SHOWN_MAX = 100
_PATIENCE_S = 5.0
"""How long a new share partition waits for the settings of its group."""
_ANEW = frozenset({ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_ID})
"""Errors that mean different upstream contents: after an unclean election, or in a recreated topic."""

_SINGLE = {b"config/": b"setting/", b"quota/": b"limit/"}
"""Key prefixes of single-value records, by the prefixes of object records."""

Send = Callable[[str, int, bytes], "asyncio.Future[int]"]
Write = Callable[[str, int, Sequence[Record], int], "asyncio.Future[int]"]


class SettingsCatalog(Catalog):
    """The catalog of a tier.

    Args:
        topic: its upstream topic.
        write: appends records with a timestamp to a partition, once and in call order.
    """

    def __init__(self, topic: str, reading: Reading, write: Write, clock: Clock) -> None:
        super().__init__()
        self.topic = topic
        self._reading = reading
        self._write = write
        self._clock = clock
        self._end = 0
        self._offsets: dict[bytes, int] = {}
        """Offset of each key's value: writes of all nodes count in log order."""
        self._fetching: Fetching | None = None
        self._following: Subscription | None = None
        self._following_again: asyncio.Task[None] | None = None
        self._waiting: list[Done] = []
        self._asking: asyncio.Task[None] | None = None
        self._reads = asyncio.Lock()
        self._is_lost = False
        self._trouble = Trouble(
            logger,
            f"no share partition starts until {topic} can be read upstream, since it may set its group's "
            "share.auto.offset.reset: check that the topic exists, has a leader, and that this node's user "
            "may read it",
        )

    async def load(self) -> None:
        """Read the topic.

        Raises:
            KafkaError: the cluster cannot be read.
            ValueError: a record cannot be read.
        """
        start, end = await bounds_of(self._reading, self.topic, 0)
        async for records in replay(self._reading, self.topic, 0, start, end):
            self._take(records)
        self._end = end

    @property
    def slots(self) -> int | None:
        """Number of slots of the tier; None if it is not stored yet."""
        value = self.get(SLOTS)
        return None if value is None else int(value)

    async def check_slots(self, found: int) -> None:
        """Store the number of slots, or compare it with the stored one.

        Raises:
            ConfigError: the number of partitions has changed, so that all state would map to other slots.
            KafkaError: it cannot be stored.
        """
        if self.slots is None:
            await self.put(SLOTS, b"%d" % found)
        elif self.slots != found:
            raise ConfigError(
                f"the state topic of this tier has {found} partitions; allowed: the {self.slots} that it was "
                "created with, since their number determines where state is found"
            )

    def objects(self, prefix: bytes, read: Callable[[str], Value]) -> Objects[Value]:
        return SingleValues(self, prefix, _SINGLE[prefix], read)

    def follow(self, fetching: Fetching) -> None:
        """Follow changes of other nodes, and notify watchers."""
        self._fetching = fetching
        self._following = fetching.subscribe(self.topic, 0, self._end, _ROOM_BYTES, self)

    def close(self) -> None:
        """Stop following, and leave pending callers unanswered."""
        for task in (self._asking, self._following_again):
            if task is not None:
                task.cancel()

    def fetched(self, fetched: Fetched, /) -> None:
        """Process fetched records; called by the fetcher."""
        try:
            self._apply(fetched.records)
        except ValueError as error:
            logger.error("cannot read settings of other nodes: %s", error)
        self._end = max(self._end, fetched.end)
        if self._following is not None:
            self._following.allow(_ROOM_BYTES)

    def failed(self, error: KafkaError, /) -> None:
        """Handle the end of fetching; called by the fetcher."""
        logger.warning("%s: cannot follow settings of other nodes: %s", self.topic, error)
        self._is_lost = self._is_lost or error.code in _ANEW
        if self._following is not None:
            self._following.close()
            self._following = None
        loop = asyncio.get_running_loop()
        self._following_again = loop.create_task(self._follow_again(), name=f"follow {self.topic}")

    async def _follow_again(self) -> None:
        assert self._fetching is not None
        said = ""
        while self._following is None:
            await asyncio.sleep(_RETRY_S)
            try:
                await self._read_on()
                self.follow(self._fetching)
            except (KafkaError, ValueError) as error:
                if said != (said := str(error)):
                    logger.info("%s: still cannot follow settings of other nodes: %s", self.topic, error)

    # the current value

    def when_current(self, done: Done) -> None:
        """Read the topic to its end, as followed changes may be late; see `Catalog`.

        A failure is reported as KAFKA_STORAGE_ERROR: ignoring a setting would be permanent where a group
        starts.
        """
        self._waiting.append(done)
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask(), name=f"read {self.topic}")

    async def _ask(self) -> None:
        try:
            # each read serves all callers that waited when it began
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                settle(waiting, await self._look())
        finally:
            self._asking = None

    async def refresh(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._read_on()
        except (KafkaError, ValueError, TimeoutError) as error:
            raise self._unknown(str(error) or f"no answer within {_PATIENCE_S:.0f} s") from None

    async def _look(self) -> KafkaError | None:
        try:
            await self.refresh()
            if self.slots is not None:
                self._trouble.is_over()
                return None
            raise self._unknown("it is empty; restore the settings of groups, then restart this node")
        except KafkaError as error:
            self._trouble.goes_on(error.message)
            await asyncio.sleep(_RETRY_S)
            return error

    def _unknown(self, why: str) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the settings in {self.topic} are not known: {why}")

    async def _read_on(self) -> None:
        """Read the topic up to its current end.

        Raises:
            KafkaError: the cluster cannot be read.
            ValueError: a record cannot be read.
        """
        async with self._reads:
            start, end = await bounds_of(self._reading, self.topic, 0)
            if self._is_lost or end < self._end:
                await self._read_anew(start, end)
                return
            async for records in replay(self._reading, self.topic, 0, max(start, self._end), end):
                self._apply(records)
            self._end = max(self._end, end)

    async def _read_anew(self, start: int, end: int) -> None:
        """Replace all settings after offsets have gone back."""
        self._is_lost = True
        self._offsets.clear()
        before = {key for key, _ in self.scan(b"")}
        async for records in replay(self._reading, self.topic, 0, start, end):
            self._apply(records)
        gone = before - self._offsets.keys()
        self._changed([], gone)
        for key in gone:
            self._notify(key)
        self._end, self._is_lost = end, False
        if self._following is not None:
            self._following.seek(end, _ROOM_BYTES)
        logger.error("upstream contents of %s have changed: %d settings are lost", self.topic, len(gone))

    def _apply(self, records: bytes) -> None:
        """Apply records, and notify watchers."""
        for key in self._take(records):
            self._notify(key)

    def _take(self, records: bytes) -> list[bytes]:
        """Apply records; return the keys with changed values."""
        keys: dict[bytes, None] = {}
        for offset, _, key, value in decode(list(cut_batches(records)), self.topic) if records else ():
            if key is not None and self._put(offset, key, value):
                keys[key] = None
        return list(keys)

    def _put(self, offset: int, key: bytes, value: bytes | None) -> bool:
        """Apply a record if it is newer; return whether it is."""
        if self._offsets.get(key, -1) >= offset:
            return False
        if why := flaw(key, value):
            logger.warning(
                "%s, offset %d: ignoring the record %s, which no node has written (%s); let only the "
                "nodes' user write to this topic",
                self.topic,
                offset,
                shorten(repr(key)[1:], _KEY_SHOWN_MAX),
                why,
            )
            return False
        self._offsets[key] = offset
        self._changed([] if value is None else [(key, value)], [key] if value is None else [])
        return True

    def change(self, puts: Iterable[tuple[bytes, bytes]] = (), deletes: Iterable[bytes] = ()) -> Ticket:
        puts, deletes = list(puts), list(deletes)
        ticket = Ticket(0)
        records: list[tuple[bytes, bytes | None]] = [*puts, *((key, None) for key in deletes)]
        if not records:
            ticket.settle()
            return ticket

        def sent(sending: asyncio.Future[int]) -> None:
            error = None if sending.cancelled() else sending.exception()
            if sending.cancelled() or error is not None:
                why = f"cannot write the settings upstream: {error or 'the node stops'}"
                ticket.settle(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why))
            else:
                base = sending.result()
                for offset, (key, value) in enumerate(records, base):
                    self._put(offset, key, value)
                ticket.settle()
                for offset, (key, _) in enumerate(records, base):
                    if self._offsets.get(key, -1) > offset:
                        # another node has set it since: waiting callers see this value
                        self._notify(key)

        self._write(self.topic, 0, records, self._clock.now_ms()).add_done_callback(sent)
        return ticket


class TierConfigs(Configs):
    """Dynamic configurations stored by the tier; most topic settings belong to the cluster."""

    async def replace(self, resource_type: int, name: str, settings: Mapping[str, str]) -> None:
        theirs = settings.keys() - OWN_SETTINGS
        if resource_type == ResourceType.TOPIC and theirs:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{', '.join(sorted(theirs))}: set it on the cluster that this tier is in front of.",
            )
        await super().replace(resource_type, name, settings)


def topics_of(config: BrokerConfig) -> list[tuple[str, int, int, dict[str, str]]]:
    """Return the tier's topics: name, partitions, replicas and settings of each."""
    common = {"min.insync.replicas": str(config.sharecore_tier_min_insync_replicas)}
    state = common | {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    if (wanted := state_record_bytes(config)) > MESSAGE_BYTES_MIN:
        state["max.message.bytes"] = str(wanted)
    settings = common | {"cleanup.policy": "compact"}
    topic, replicas = config.sharecore_tier_state_topic, config.sharecore_tier_replication_factor
    return [
        (topic, config.sharecore_tier_slots, replicas, state),
        (settings_topic(topic), 1, replicas, settings),
    ]


async def make_own_topic(
    making: Making, name: str, partitions: int, replicas: int, settings: Mapping[str, str]
) -> None:
    """Create one of the tier's topics.

    Raises:
        ConfigUnavailable: the cluster has too few brokers for the replicas.
        KafkaError: it refused for another reason.
    """
    try:
        await making.create_topic(name, partitions, replicas, settings)
    except KafkaError as error:
        if error.code is not ErrorCode.INVALID_REPLICATION_FACTOR:
            raise
        raise ConfigUnavailable(
            f"sharecore.tier.replication.factor={replicas}: {error.message}; allowed: as many as brokers "
            "upstream, and sharecore.tier.min.insync.replicas at most as many"
        ) from None
