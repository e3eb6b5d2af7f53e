"""Settings of groups, users, rights and quotas: a compacted topic of one partition upstream.

Every node may write: the last value of a key counts, wherever it came from.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from sharecore._core import encode_batch
from sharecore.clock import Clock
from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.storage import Catalogue, Configs, ResourceType, Ticket
from sharecore.tier.claims import cut_batches, decode
from sharecore.tier.names import settings_topic
from sharecore.tier.replay import Reading, bounds_of, replay
from sharecore.tier.sources import Fetching, Subscription
from sharecore.tier.topics import OWN_SETTINGS
from sharecore.upstream import Fetched

logger = logging.getLogger(__name__)

_ROOM_BYTES = 1 << 20
_RETRY_S = 1.0

_SLOTS = b"tier/slots"

Send = Callable[[str, int, bytes], "asyncio.Future[int]"]


class SettingsCatalogue(Catalogue):
    """The catalogue of a tier.

    Args:
        topic: where it lies upstream.
        send: appends a record batch to a partition.
    """

    def __init__(self, topic: str, reading: Reading, send: Send, clock: Clock) -> None:
        super().__init__()
        self.topic = topic
        self._reading = reading
        self._send = send
        self._clock = clock
        self._end = 0
        self._offsets: dict[bytes, int] = {}
        """Where the value of each key stands: all nodes' writes count in the order of the log."""
        self._following: Subscription | None = None

    async def load(self) -> None:
        """Reads what is there.

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
        """How many slots the tier has; None where no node has said so yet."""
        value = self.get(_SLOTS)
        return None if value is None else int(value)

    async def check_slots(self, found: int) -> None:
        """Notes how many slots there are, or holds that against what was noted.

        Raises:
            ConfigError: the state topic has grown: everything would lie elsewhere.
            KafkaError: it could not be noted.
        """
        if self.slots is None:
            await self.put(_SLOTS, b"%d" % found)
        elif self.slots != found:
            raise ConfigError(
                f"the state topic of this tier has {found} partitions; allowed: the {self.slots} that it was "
                "made with, as what is kept is found by their number"
            )

    def follow(self, fetching: Fetching) -> None:
        """Takes in what other nodes set from now on, and tells those who watch."""
        self._following = fetching.subscribe(self.topic, 0, self._end, _ROOM_BYTES, self)

    def fetched(self, fetched: Fetched, /) -> None:
        """Takes what came; for whoever fetches."""
        try:
            keys = self._take(fetched.records)
        except ValueError as error:
            logger.error("settings of other nodes cannot be read: %s", error)
            keys = []
        self._end = fetched.end
        if self._following is not None:
            self._following.allow(_ROOM_BYTES)
        for key in keys:
            self._tell(key)

    def failed(self, error: KafkaError, /) -> None:
        """The fetching has stopped; for whoever fetches."""
        logger.warning("settings of other nodes are not seen now: %s", error)
        asyncio.get_running_loop().call_later(_RETRY_S, self._follow_again)

    def _follow_again(self) -> None:
        if self._following is not None:
            self._following.seek(self._end, _ROOM_BYTES)

    def _take(self, records: bytes) -> list[bytes]:
        """Takes records in; returns the keys that have another value now."""
        keys: dict[bytes, None] = {}
        for offset, _, key, value in decode(list(cut_batches(records)), self.topic) if records else ():
            if key is not None and self._put(offset, key, value):
                keys[key] = None
        return list(keys)

    def _put(self, offset: int, key: bytes, value: bytes | None) -> bool:
        """Whether a record is newer than what is known."""
        if self._offsets.get(key, -1) >= offset:
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
        data = encode_batch(records, now_ms=self._clock.now_ms(), producer=None)

        def sent(sending: asyncio.Future[int]) -> None:
            error = None if sending.cancelled() else sending.exception()
            if sending.cancelled() or error is not None:
                why = f"the settings were not written upstream: {error or 'the node stops'}"
                ticket.settle(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why))
            else:
                base = sending.result()
                for offset, (key, value) in enumerate(records, base):
                    self._put(offset, key, value)
                ticket.settle()
                for offset, (key, _) in enumerate(records, base):
                    if self._offsets[key] > offset:
                        # another node has set it since: whoever waited for the ticket took this value for it
                        self._tell(key)

        self._send(self.topic, 0, data).add_done_callback(sent)
        return ticket


class TierConfigs(Configs):
    """Dynamic configurations that the tier keeps; those of topics are the cluster's, but for some."""

    async def replace(self, resource_type: int, name: str, settings: Mapping[str, str]) -> None:
        theirs = settings.keys() - OWN_SETTINGS
        if resource_type == ResourceType.TOPIC and theirs:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{', '.join(sorted(theirs))}: set it on the cluster that this tier is in front of.",
            )
        await super().replace(resource_type, name, settings)


def topics_of(config: BrokerConfig) -> list[tuple[str, int, int, dict[str, str]]]:
    """The topics that a tier makes: name, partitions, replicas and settings of each."""
    common = {"min.insync.replicas": str(config.sharecore_tier_min_insync_replicas)}
    state = common | {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    settings = common | {"cleanup.policy": "compact"}
    topic, replicas = config.sharecore_tier_state_topic, config.sharecore_tier_replication_factor
    return [
        (topic, config.sharecore_tier_slots, replicas, state),
        (settings_topic(topic), 1, replicas, settings),
    ]
