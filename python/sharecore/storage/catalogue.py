"""Small durable facts under keys: the catalogue of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from sharecore.storage.ticket import Ticket

if TYPE_CHECKING:
    from sharecore._core import Store


class Catalogue:
    """Keys and values in memory, written through to the store; a change shows once it is durable."""

    def __init__(self, store: Store, ticket: Callable[[int], Ticket]) -> None:
        self._store = store
        self._ticket = ticket
        self._entries = dict(store.entries(b""))

    def get(self, key: bytes) -> bytes | None:
        """The value under `key`."""
        return self._entries.get(key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Entries whose keys begin with `prefix`, in the order of their keys."""
        for key in sorted(key for key in self._entries if key.startswith(prefix)):
            yield key, self._entries[key]

    async def put(self, key: bytes, value: bytes) -> None:
        """Sets one entry; raises KafkaError(KAFKA_STORAGE_ERROR) when it cannot be written."""
        await self.change([(key, value)])

    def change(
        self,
        puts: Iterable[tuple[bytes, bytes]] = (),
        deletes: Iterable[bytes] = (),
        *,
        create_logs: Iterable[int] = (),
        drop_logs: Iterable[int] = (),
    ) -> Ticket:
        """Changes entries and logs, all of them or none."""
        puts, deletes = list(puts), list(deletes)
        sequence = self._store.change(puts, deletes, create_logs=list(create_logs), drop_logs=list(drop_logs))
        ticket = self._ticket(sequence)

        def durable(ended: Ticket) -> None:
            if ended.error is None:
                self._entries.update(puts)
                for key in deletes:
                    self._entries.pop(key, None)

        ticket.add_done_callback(durable)
        return ticket
