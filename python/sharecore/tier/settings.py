"""Settings of groups, users, rights and quotas: a compacted topic of one partition upstream.

Every node may write: the last value of a key counts, wherever it came from.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from sharecore._core import encode_batch
from sharecore.clock import Clock
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Catalogue, Configs, ResourceType, Ticket
from sharecore.storage.configs import decode_settings, resource_of
from sharecore.tier.claims import cut_batches, decode
from sharecore.tier.replay import Reading, bounds_of, replay
from sharecore.tier.sources import Fetching, Subscription
from sharecore.tier.topics import OWN_SETTINGS
from sharecore.upstream import Fetched

logger = logging.getLogger(__name__)

_ROOM_BYTES = 1 << 20
_RETRY_S = 1.0

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
        self._following: Subscription | None = None
        self._told: Callable[[bytes], object] = lambda key: None

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

    def follow(self, fetching: Fetching, told: Callable[[bytes], object]) -> None:
        """Takes in what other nodes set from now on.

        Args:
            told: called with each key that was set.
        """
        self._told = told
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
            self._told(key)

    def failed(self, error: KafkaError, /) -> None:
        """The fetching has stopped; for whoever fetches."""
        logger.warning("settings of other nodes are not seen now: %s", error)
        asyncio.get_running_loop().call_later(_RETRY_S, self._follow_again)

    def _follow_again(self) -> None:
        if self._following is not None:
            self._following.seek(self._end, _ROOM_BYTES)

    def _take(self, records: bytes) -> list[bytes]:
        keys = []
        for _, _, key, value in decode(list(cut_batches(records)), self.topic) if records else ():
            if key is not None:
                self._changed([] if value is None else [(key, value)], [key] if value is None else [])
                keys.append(key)
        return keys

    def change(self, puts: Iterable[tuple[bytes, bytes]] = (), deletes: Iterable[bytes] = ()) -> Ticket:
        puts, deletes = list(puts), list(deletes)
        ticket = Ticket(0)
        records: list[tuple[bytes | None, bytes | None]] = [*puts, *((key, None) for key in deletes)]
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
                self._changed(puts, deletes)
                ticket.settle()

        self._send(self.topic, 0, data).add_done_callback(sent)
        return ticket


class TierConfigs(Configs):
    """Dynamic configurations that the tier keeps; those of topics are the cluster's, but for some."""

    def told(self, key: bytes) -> None:
        """An entry of the catalogue was set, by whichever node."""
        resource = resource_of(key)
        if resource is not None:
            self.changed(*resource, decode_settings(self._catalogue.get(key)))

    async def replace(self, resource_type: int, name: str, settings: Mapping[str, str]) -> None:
        theirs = settings.keys() - OWN_SETTINGS
        if resource_type == ResourceType.TOPIC and theirs:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{', '.join(sorted(theirs))}: set it on the cluster that this tier is in front of.",
            )
        await super().replace(resource_type, name, settings)
