"""Entries matching many filters, without comparing every entry with every filter."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sharecore.security.acl import WILDCARD, Acl, AclFilter, Operation, PatternType, Permission, ResourceType

_OPEN: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("resource_type", (ResourceType.ANY,)),
    ("name", (None,)),
    ("pattern_type", (PatternType.ANY, PatternType.MATCH)),
    ("principal", (None,)),
    ("host", (None,)),
    ("operation", (Operation.ANY,)),
    ("permission", (Permission.ANY,)),
)
"""The fields of a filter and of an entry, each with the values that match everything."""

_Fields = tuple[str, ...]


class AclSelection:
    """Select from a fixed set of entries.

    Entries are indexed by the fields set in filters: there are few such combinations, however many filters.

    Args:
        entries: all entries.
        prefix_lengths: name lengths of prefixed entries, by resource type.
    """

    def __init__(self, entries: Collection[Acl], prefix_lengths: Mapping[int, Collection[int]]) -> None:
        self._entries = entries
        self._lengths = prefix_lengths
        self._indexes: dict[_Fields, dict[tuple[object, ...], list[Acl]]] = {}

    def prepare(self, wanted: AclFilter) -> Iterator[None]:
        """Index the entries for a filter if needed; yield after each entry."""
        for exact in self._exact(wanted):
            fields = _fields(exact)
            if fields in self._indexes:
                continue
            index: dict[tuple[object, ...], list[Acl]] = {}
            for acl in self._entries:
                index.setdefault(_values(acl, fields), []).append(acl)
                yield
            self._indexes[fields] = index

    def select(self, wanted: AclFilter) -> list[Acl]:
        """Return the entries matching a filter, after `prepare` for it has ended."""
        found: list[Acl] = []
        for exact in self._exact(wanted):
            fields = _fields(exact)
            found += self._indexes[fields].get(_values(exact, fields), ())
        return found

    def _exact(self, wanted: AclFilter) -> Iterator[AclFilter]:
        """Yield exact-name filters that together select the same entries as a MATCH filter."""
        name = wanted.name
        if name is None or wanted.pattern_type != PatternType.MATCH:
            yield wanted
            return
        yield wanted._replace(pattern_type=PatternType.LITERAL)
        if name != WILDCARD:
            yield wanted._replace(name=WILDCARD, pattern_type=PatternType.LITERAL)
        kind = wanted.resource_type
        of_kind = self._lengths.values() if kind == ResourceType.ANY else (self._lengths.get(kind, ()),)
        for length in sorted({length for some in of_kind for length in some if length <= len(name)}):
            yield wanted._replace(name=name[:length], pattern_type=PatternType.PREFIXED)


def _fields(wanted: AclFilter) -> _Fields:
    """Return the fields set in a filter."""
    return tuple(name for name, open_values in _OPEN if getattr(wanted, name) not in open_values)


def _values(item: Acl | AclFilter, fields: _Fields) -> tuple[object, ...]:
    return tuple(getattr(item, name) for name in fields)
