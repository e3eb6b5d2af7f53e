"""Settings of groups, users, rights and quotas: a compacted topic of one partition upstream.

Every node may write: the last value of a key counts, wherever it came from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from sharecore._core import encode_batch
from sharecore.clock import Clock
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Catalogue, Configs, ResourceType, Ticket
from sharecore.tier.claims import cut_batches, decode
from sharecore.tier.replay import Reading, bounds_of, replay
from sharecore.tier.topics import OWN_SETTINGS

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

    async def load(self) -> None:
        """Reads what is there.

        Raises:
            KafkaError: the cluster cannot be read.
            ValueError: a record cannot be read.
        """
        start, end = await bounds_of(self._reading, self.topic, 0)
        async for records in replay(self._reading, self.topic, 0, start, end):
            for _, _, key, value in decode(list(cut_batches(records)), self.topic):
                if key is not None:
                    self._changed([] if value is None else [(key, value)], [key] if value is None else [])

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

    async def replace(self, resource_type: int, name: str, settings: Mapping[str, str]) -> None:
        theirs = settings.keys() - OWN_SETTINGS
        if resource_type == ResourceType.TOPIC and theirs:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{', '.join(sorted(theirs))}: set it on the cluster that this tier is in front of.",
            )
        await super().replace(resource_type, name, settings)
