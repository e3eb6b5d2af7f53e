"""Small durable facts under keys."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager

from sharecore.storage.ticket import Ticket
from sharecore.waiting import Done, settle

PRODUCER_IDS = b"producer-ids"
"""The key of the first producer id that nobody has been given."""


class Catalogue(ABC):
    """Keys and values in memory, written through to what keeps them; a change shows once it is durable."""

    def __init__(self, entries: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self._entries = dict(entries)
        self._watching: list[tuple[bytes, Callable[[bytes], object]]] = []
        self._changing = asyncio.Lock()

    def get(self, key: bytes) -> bytes | None:
        """The value under `key`."""
        return self._entries.get(key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Entries whose keys begin with `prefix`, in the order of their keys."""
        for key in sorted(key for key in self._entries if key.startswith(prefix)):
            yield key, self._entries[key]

    def watch(self, prefix: bytes, told: Callable[[bytes], object]) -> None:
        """Calls back with each key that begins so and was set or deleted by another broker."""
        self._watching.append((prefix, told))

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        """For a change that is made of what counts: one after the other, each once all set before shows.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR: that cannot be known.
        """
        async with self._changing:
            await self.refresh()
            yield

    async def refresh(self) -> None:  # noqa: B027 - a broker that is alone knows all
        """Has all show here that any broker had set by now.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR: that cannot be known.
        """

    def when_current(self, done: Done) -> None:
        """Calls back once all that any broker had set by now shows here, or with why that cannot be known."""
        done(None)

    async def put(self, key: bytes, value: bytes) -> None:
        """Sets one entry; raises KafkaError(KAFKA_STORAGE_ERROR) when it cannot be written."""
        await self.change([(key, value)])

    @abstractmethod
    def change(self, puts: Iterable[tuple[bytes, bytes]] = (), deletes: Iterable[bytes] = ()) -> Ticket:
        """Changes entries, all of them or none."""

    def _tell(self, key: bytes) -> None:
        settle([told for prefix, told in self._watching if key.startswith(prefix)], key)

    def _changed(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        self._entries.update(puts)
        for key in deletes:
            self._entries.pop(key, None)
