"""The catalog of the compiled store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from sharecore._core import Ticket
from sharecore.storage.catalog import Catalog

if TYPE_CHECKING:
    from sharecore._core import Store


class StoreCatalog(Catalog):
    """The catalog of a data directory; logs are created and dropped with its entries."""

    def __init__(self, store: Store, ticket: Callable[[int], Ticket]) -> None:
        super().__init__(store.entries(b""))
        self._store = store
        self._ticket = ticket

    def change(
        self,
        puts: Iterable[tuple[bytes, bytes]] = (),
        deletes: Iterable[bytes] = (),
        *,
        create_logs: Iterable[int] = (),
        drop_logs: Iterable[int] = (),
    ) -> Ticket:
        """Change entries and logs, all or none."""
        puts, deletes = list(puts), list(deletes)
        sequence = self._store.change(puts, deletes, create_logs=list(create_logs), drop_logs=list(drop_logs))
        ticket = self._ticket(sequence)

        def durable(ended: Ticket) -> None:
            if ended.error is None:
                self._changed(puts, deletes)

        ticket.add_done_callback(durable)
        return ticket
