"""Small durable values by key."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from sharecore._core import Ticket
from sharecore.waiting import Done, settle

Value = TypeVar("Value")

PRODUCER_IDS = b"producer-ids"
"""Key of the first unassigned producer id."""


class Catalog(ABC):
    """In-memory keys and values with durable storage; a change is visible once durable."""

    def __init__(self, entries: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self._entries = dict(entries)
        self._watching: list[tuple[bytes, Callable[[bytes], object]]] = []
        self._changing = asyncio.Lock()

    def get(self, key: bytes) -> bytes | None:
        """Return the value under `key`."""
        return self._entries.get(key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Return entries by key prefix, in key order."""
        for key in sorted(key for key in self._entries if key.startswith(prefix)):
            yield key, self._entries[key]

    def objects(self, prefix: bytes, read: Callable[[str], Value]) -> Objects[Value]:
        """Return objects by key prefix; `read` converts their values."""
        return Objects(self, prefix, read)

    def watch(self, prefix: bytes, notify: Callable[[bytes], object]) -> None:
        """Call back with each key of this prefix that another broker has set or deleted."""
        self._watching.append((prefix, notify))

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        """Serialize read-modify-write changes, each after a refresh.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR: the current values are unknown.
        """
        async with self._changing:
            await self.refresh()
            yield

    async def refresh(self) -> None:  # noqa: B027 - a broker that is alone knows all
        """Wait until all changes made by any broker so far are visible.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR: the current values are unknown.
        """

    def when_current(self, done: Done) -> None:
        """Call back once all changes made by any broker so far are visible, or with an error."""
        done(None)

    async def put(self, key: bytes, value: bytes) -> None:
        """Set one entry; raise KafkaError(KAFKA_STORAGE_ERROR) if the write fails."""
        await self.change([(key, value)])

    @abstractmethod
    def change(self, puts: Iterable[tuple[bytes, bytes]] = (), deletes: Iterable[bytes] = ()) -> Ticket:
        """Change entries, all or none."""

    def _notify(self, key: bytes) -> None:
        settle([notify for prefix, notify in self._watching if key.startswith(prefix)], key)

    def _changed(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        self._entries.update(puts)
        for key in deletes:
            self._entries.pop(key, None)


class Objects(Generic[Value]):
    """Objects with named values, such as topic settings; each is one JSON record.

    Args:
        catalog: stores the objects.
        prefix: key prefix, followed by the object's name.
        read: converts a stored value.
    """

    def __init__(self, catalog: Catalog, prefix: bytes, read: Callable[[str], Value]) -> None:
        self._catalog = catalog
        self._prefix = prefix
        self._read = read
        self._all: dict[str, dict[str, Value]] = {}
        self._watching: list[Callable[[str], object]] = []
        for key, _ in catalog.scan(prefix):
            self._take(self._name(key))
        catalog.watch(prefix, self._on_change)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def get(self, name: str) -> Mapping[str, Value]:
        """Return the values of an object; empty without any."""
        return self._all.get(name, {})

    async def set(self, objects: Mapping[str, Mapping[str, Value]]) -> None:
        """Set all values of some objects, all or none; raise KafkaError(KAFKA_STORAGE_ERROR)."""
        await self._catalog.change(
            [(self._key(name), encode_object(values)) for name, values in objects.items() if values],
            [self._key(name) for name, values in objects.items() if not values],
        )
        for name in objects:
            # the current value, if another broker has set it since
            self._take(name)

    def watch(self, notify: Callable[[str], object]) -> None:
        """Call back with the name of each object that another broker has changed."""
        self._watching.append(notify)

    def written(self, name: str, values: Mapping[str, Value]) -> None:
        """Store the new values of a written object; for the storage only."""
        if values:
            self._all[name] = dict(values)
        else:
            self._all.pop(name, None)

    def _on_change(self, key: bytes) -> None:
        self._take(self._name(key))
        self._notify(self._name(key))

    def _notify(self, name: str) -> None:
        settle(tuple(self._watching), name)

    def _take(self, name: str) -> None:
        self.written(name, self._kept(name))

    def _kept(self, name: str) -> dict[str, Value]:
        """Return the stored values of an object."""
        value = self._catalog.get(self._key(name))
        kept = {} if value is None else json.loads(value)
        return {each: self._read(text) for each, text in kept.items()}

    def _key(self, name: str) -> bytes:
        return self._prefix + name.encode()

    def _name(self, key: bytes) -> str:
        return key.removeprefix(self._prefix).decode()


def encode_object(values: Mapping[str, Value]) -> bytes:
    """Encode an object as a record."""
    return json.dumps(dict(values), sort_keys=True).encode()
