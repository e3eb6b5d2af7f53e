"""All access control entries: stored in the catalog, indexed by resource."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator

from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import WILDCARD, Acl, AclFilter, PatternType, ResourceType
from sharecore.security.acl_selection import AclSelection
from sharecore.storage import Catalog, Ticket

_PREFIX = b"acl/"
SELECTED_MAX = 100_000
"""Limit on the entries selected by a request's filters, counting repeated ones."""


class Acls:
    """Unique entries.

    Args:
        catalog: stores the entries.
        changed: called after entries were added or deleted.
    """

    def __init__(self, catalog: Catalog, changed: Callable[[], None] = lambda: None) -> None:
        self._catalog = catalog
        self._changed = changed
        self._all: dict[Acl, None] = {}
        self._literal: dict[tuple[int, str], dict[Acl, None]] = {}
        self._prefixed: dict[tuple[int, str], dict[Acl, None]] = {}
        self._lengths: dict[int, dict[int, int]] = {}
        for key, _ in catalog.scan(_PREFIX):
            self._add(decode_acl(key))
        catalog.watch(_PREFIX, self._on_change)

    def __len__(self) -> int:
        return len(self._all)

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call `changed` after entries were added or deleted."""
        self._changed = changed

    def select(self, wanted: AclFilter) -> list[Acl]:
        """Return the entries matching a filter, through the index if it names a resource."""
        return [acl for acl in self._candidates(wanted) if wanted.matches(acl)]

    def _candidates(self, wanted: AclFilter) -> Iterable[Acl]:
        kind, name, pattern = wanted.resource_type, wanted.name, wanted.pattern_type
        if name is None or kind == ResourceType.ANY:
            return self._all
        if pattern == PatternType.MATCH:
            return self.of(kind, name)
        return (*self._literal.get((kind, name), ()), *self._prefixed.get((kind, name), ()))

    def of(self, resource_type: int, name: str) -> Iterator[Acl]:
        """Yield the entries that apply to a resource."""
        yield from self._literal.get((resource_type, name), ())
        if name != WILDCARD:
            yield from self._literal.get((resource_type, WILDCARD), ())
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name):
                yield from self._prefixed.get((resource_type, name[:length]), ())

    async def delete(
        self, wanted: Iterable[AclFilter], step: Callable[[], Awaitable[None]]
    ) -> list[list[Acl]]:
        """Delete the entries matching filters, whichever broker has added them; return them by filter.

        Args:
            wanted: the filters.
            step: awaited after each filter and each examined entry.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, or POLICY_VIOLATION: the filters select too many entries.
        """
        async with self._catalog.changing():
            selection = AclSelection(list(self._all), self._lengths)
            found, selected = [], 0
            for each in wanted:
                for _ in selection.prepare(each):
                    await step()
                found.append(selection.select(each))
                selected += len(found[-1])
                if selected > SELECTED_MAX:
                    text = f"The filters select more than {SELECTED_MAX} entries in all; send fewer."
                    raise KafkaError(ErrorCode.POLICY_VIOLATION, text)
                await step()
            if gone := dict.fromkeys(acl for some in found for acl in some):
                await self.change(deletes=gone)
        return found

    def change(self, puts: Iterable[Acl] = (), deletes: Iterable[Acl] = ()) -> Ticket:
        """Add and delete entries, all or none; they take effect once the ticket has succeeded."""
        puts, deletes = list(puts), list(deletes)
        ticket = self._catalog.change([(_key(acl), b"") for acl in puts], map(_key, deletes))

        def durable(ended: Ticket) -> None:
            if ended.error is None:
                for acl in puts:
                    self._add(acl)
                for acl in deletes:
                    self._remove(acl)
                self._changed()

        ticket.add_done_callback(durable)
        return ticket

    def _on_change(self, key: bytes) -> None:
        if self._catalog.get(key) is None:
            self._remove(decode_acl(key))
        else:
            self._add(decode_acl(key))
        self._changed()

    def _add(self, acl: Acl) -> None:
        if acl in self._all:
            return
        self._all[acl] = None
        self._index(acl).setdefault((acl.resource_type, acl.name), {})[acl] = None
        if acl.pattern_type == PatternType.PREFIXED:
            lengths = self._lengths.setdefault(acl.resource_type, {})
            lengths[len(acl.name)] = lengths.get(len(acl.name), 0) + 1

    def _remove(self, acl: Acl) -> None:
        if self._all.pop(acl, acl) is not None:
            return
        index, place = self._index(acl), (acl.resource_type, acl.name)
        index[place].pop(acl)
        if not index[place]:
            del index[place]
        if acl.pattern_type == PatternType.PREFIXED:
            lengths = self._lengths[acl.resource_type]
            lengths[len(acl.name)] -= 1
            if not lengths[len(acl.name)]:
                del lengths[len(acl.name)]

    def _index(self, acl: Acl) -> dict[tuple[int, str], dict[Acl, None]]:
        return self._prefixed if acl.pattern_type == PatternType.PREFIXED else self._literal


def decode_acl(key: bytes) -> Acl:
    """Return the entry of a catalog key; raise ValueError or TypeError if it is invalid."""
    return Acl(*json.loads(key.removeprefix(_PREFIX)))


def _key(acl: Acl) -> bytes:
    return _PREFIX + json.dumps([int(part) if isinstance(part, int) else part for part in acl]).encode()
