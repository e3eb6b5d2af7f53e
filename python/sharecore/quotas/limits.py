"""All quotas: stored in the catalog, found by a request's user and client id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from sharecore.errors import ErrorCode, KafkaError
from sharecore.quotas.entity import CLIENT_ID, IP, USER, Entity, check_entity
from sharecore.quotas.keys import IP_RATE
from sharecore.storage import Catalog
from sharecore.waiting import HostAddresses

_PREFIX = b"quota/"
_REMEMBERED_MAX = 10_000
_NAMES_MAX = 1_000
"""Longer names are not cached: clients choose them."""

Scope = tuple[str | None, str | None]
"""Clients that share a quota: of a user, a client id, or a user with one client id."""


class Limit(NamedTuple):
    """Quota of a request: its scope and value."""

    scope: Scope
    bound: float


class ClientQuotas:
    """Quotas of entities, each a number under a key.

    Args:
        catalog: stores the quotas.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._objects = catalog.objects(_PREFIX, float)
        self._entries: dict[Entity, Mapping[str, float]] = {}
        self._found: dict[tuple[str, str, str], Limit | None] = {}
        self._listeners: list[Callable[[], None]] = []
        self._hosts = HostAddresses(self._read_addresses)
        for name in self._objects:
            self._take(decode_entity(name))
        self._read()
        self._objects.watch(self._entry_changed)

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call `changed` after a change of quotas, in the order of registration."""
        self._listeners.append(changed)

    def _changed(self) -> None:
        for changed in self._listeners:
            changed()

    @property
    def keys(self) -> frozenset[str]:
        """Keys with at least one quota."""
        return self._keys

    def __iter__(self) -> Iterator[Entity]:
        return iter(sorted(self._entries, key=_written))

    def of(self, entity: Entity) -> Mapping[str, float]:
        """Return an entity's quotas."""
        return self._entries.get(entity, {})

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """Return the most specific quota of a request; None without one."""
        if len(user) + len(client_id) > _NAMES_MAX:
            return self._look_up(key, user, client_id)
        try:
            return self._found[key, user, client_id]
        except KeyError:
            if len(self._found) >= _REMEMBERED_MAX:
                self._found.clear()
            found = self._found[key, user, client_id] = self._look_up(key, user, client_id)
            return found

    def connection_rate(self, address: str) -> float | None:
        """Return an address's connection rate limit in 1/s; None for no limit."""
        return self._addresses.get(address, self._addresses.get(None))

    async def check(self, entity: Entity) -> None:
        """Raise KafkaError unless an entity is valid and its host can be resolved."""
        check_entity(entity)
        host = dict(entity).get(IP)
        if host is not None and await self._hosts.find(host) is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{host} is not a valid IP or resolvable host.")

    async def change(self, changes: Mapping[Entity, Mapping[str, float | None]]) -> None:
        """Set quotas, and delete those with a value of None; changes are serialized.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        async with self._catalog.changing():
            after: dict[Entity, dict[str, float]] = {}
            for entity, some in changes.items():
                values = {**self.of(entity), **some}
                after[entity] = {key: value for key, value in values.items() if value is not None}
            await self._objects.set({_written(entity): values for entity, values in after.items()})
            for entity in after:
                self._take(entity)
        self._read()
        self._changed()

    def _entry_changed(self, name: str) -> None:
        self._take(decode_entity(name))
        self._read()
        self._changed()

    def _take(self, entity: Entity) -> None:
        if values := self._objects.get(_written(entity)):
            self._entries[entity] = values
        else:
            self._entries.pop(entity, None)

    def _read(self) -> None:
        self._found.clear()
        self._keys = frozenset(key for values in self._entries.values() for key in values)
        self._read_addresses()

    def _read_addresses(self) -> None:
        rates: dict[str | None, float] = {}
        for entity, values in self._entries.items():
            kinds = dict(entity)
            if IP in kinds and IP_RATE in values:
                rates[kinds[IP]] = values[IP_RATE]
        known = self._hosts.of(host for host in rates if host is not None)
        self._addresses = {
            host if host is None else known.get(host, host): rate for host, rate in rates.items()
        }

    def _look_up(self, key: str, user: str, client_id: str) -> Limit | None:
        for entity, scope in _candidates(user, client_id):
            bound = self._entries.get(entity, {}).get(key)
            if bound is not None:
                return Limit(scope, bound)
        return None


def _candidates(user: str, client_id: str) -> Iterable[tuple[Entity, Scope]]:
    """Yield the entities whose quota may apply to a request, most specific first, with their scopes."""
    scope = _shortened(user), _shortened(client_id)
    users, clients = ((USER, user), (USER, None)), ((CLIENT_ID, client_id), (CLIENT_ID, None))
    for who in users:
        for what in clients:
            yield (what, who), scope
        yield (who,), (scope[0], None)
    for what in clients:
        yield (what,), (None, scope[1])


def _shortened(name: str) -> str:
    """Return a name as used in scopes, which are kept for long."""
    if len(name) <= _NAMES_MAX:
        return name
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()


def _written(entity: Entity) -> str:
    return json.dumps(entity)


def decode_entity(written: str) -> Entity:
    """Return the entity of a name in the catalog; raise ValueError or TypeError if it is invalid."""
    return tuple((kind, name) for kind, name in json.loads(written))
