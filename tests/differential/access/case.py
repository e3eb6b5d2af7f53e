"""A request, with names and ids that each principal's turn fills in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sharecore.protocol import ApiKey as A

Ids = dict[str, UUID]
Fields = Callable[[Ids, str], dict[str, Any]]
TOPICS = ("open-t", "shut-t")
GROUPS = ("open-g", "shut-g")
CONSUMERS = ("open-c", "shut-c")
SHARES = ("open-s", "shut-s")
MISSING = UUID(int=0xABCD << 64 | 1)
SENSELESS = "create entries that make no sense"
_NEVER_TWICE = {A.JOIN_GROUP, A.ALTER_CONFIGS, A.SHARE_FETCH, A.SHARE_ACKNOWLEDGE}
CREATES = "metadata creates"
"""The request that has topics made that it asks for."""


@dataclass(frozen=True)
class Case:
    """One request.

    Attributes:
        name: what a report calls it.
        before: topics that the request deletes, and that are made again each time.
    """

    name: str
    key: A
    version: int
    fields: Fields
    before: tuple[str, ...] = ()

    @property
    def may_create(self) -> bool:
        """Whether it may make topics by asking for them; the first versions of Metadata always do."""
        return self.name.startswith(CREATES) or (self.key is A.METADATA and self.version < 4)


def make(name: str, api: A, version: int, before: tuple[str, ...] = (), /, **fields: Any) -> Case:
    """Return a request; in its fields `~` is the principal's name, and `#name` the id of a topic."""
    return Case(name, api, version, lambda ids, user: _filled(fields, ids, user), before)


def twice(case: Case) -> Case | None:
    """The same request with twice the items in every list; None where Apache Kafka's answer to that is no
    measure (docs/decisions/differences-from-apache.md).
    """
    if case.key in _NEVER_TWICE:
        return None
    return replace(
        case, name=f"{case.name}, all twice", fields=lambda ids, user: _doubled(case.fields(ids, user))
    )


def _doubled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _doubled(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_doubled(each) for each in value] * 2
    return value


def _filled(value: Any, ids: Ids, user: str) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each, ids, user) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(each, ids, user) for each in value]
    if isinstance(value, str):
        if value.startswith("#"):
            return ids.get(value[1:], MISSING)
        return value.replace("~", user)
    return value
