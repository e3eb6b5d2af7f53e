"""Small durable facts under keys."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from sharecore.storage.ticket import Ticket
from sharecore.waiting import Done, settle

Value = TypeVar("Value")

PRODUCER_IDS = b"producer-ids"
"""The key of the first producer id that nobody has been given."""


class Catalogue(ABC):
    """Keys and values in memory, written through to what keeps them; a change shows once it is durable."""

    def __init__(self, entries: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self._entries = dict(entries)
        self._watching: list[tuple[bytes, Callable[[bytes], object]]] = []
        self._changing = asyncio.Lock()

    def get(self, key: bytes) -> bytes | None:
        """Return the value under `key`."""
        return self._entries.get(key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Entries whose keys begin with `prefix`, in the order of their keys."""
        for key in sorted(key for key in self._entries if key.startswith(prefix)):
            yield key, self._entries[key]

    def objects(self, prefix: bytes, read: Callable[[str], Value]) -> Objects[Value]:
        """Objects whose keys begin with `prefix`; `read` makes a value of theirs of what was read."""
        return Objects(self, prefix, read)

    def watch(self, prefix: bytes, told: Callable[[bytes], object]) -> None:
        """Call back with each key that begins so and was set or deleted by another broker."""
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
        """Call back once all that any broker had set by now shows here, or with why that cannot be known."""
        done(None)

    async def put(self, key: bytes, value: bytes) -> None:
        """Set one entry; raise KafkaError(KAFKA_STORAGE_ERROR) when it cannot be written."""
        await self.change([(key, value)])

    @abstractmethod
    def change(self, puts: Iterable[tuple[bytes, bytes]] = (), deletes: Iterable[bytes] = ()) -> Ticket:
        """Change entries, all of them or none."""

    def _tell(self, key: bytes) -> None:
        settle([told for prefix, told in self._watching if key.startswith(prefix)], key)

    def _changed(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        self._entries.update(puts)
        for key in deletes:
            self._entries.pop(key, None)


class Objects(Generic[Value]):
    """Objects with values by name, such as the settings of a topic; each lies in one record, as JSON.

    Args:
        catalogue: where they lie.
        prefix: what their keys begin with; the name of the object follows.
        read: makes a value of what was read.
    """

    def __init__(self, catalogue: Catalogue, prefix: bytes, read: Callable[[str], Value]) -> None:
        self._catalogue = catalogue
        self._prefix = prefix
        self._read = read
        self._all: dict[str, dict[str, Value]] = {}
        self._watching: list[Callable[[str], object]] = []
        for key, _ in catalogue.scan(prefix):
            self._take(self._name(key))
        catalogue.watch(prefix, self._told)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def get(self, name: str) -> Mapping[str, Value]:
        """Return the values of an object; empty when it has none."""
        return self._all.get(name, {})

    async def set(self, objects: Mapping[str, Mapping[str, Value]]) -> None:
        """Set all values of some objects, all of them or none; raise KafkaError(KAFKA_STORAGE_ERROR)."""
        await self._catalogue.change(
            [(self._key(name), encode_object(values)) for name, values in objects.items() if values],
            [self._key(name) for name, values in objects.items() if not values],
        )
        for name in objects:
            # what counts now, where somebody else has set it since
            self._take(name)

    def watch(self, told: Callable[[str], object]) -> None:
        """Call back with the name of each object that another broker has changed."""
        self._watching.append(told)

    def written(self, name: str, values: Mapping[str, Value]) -> None:
        """Note an object that has been written; for the storage alone."""
        if values:
            self._all[name] = dict(values)
        else:
            self._all.pop(name, None)

    def _told(self, key: bytes) -> None:
        self._take(self._name(key))
        self._tell(self._name(key))

    def _tell(self, name: str) -> None:
        settle(tuple(self._watching), name)

    def _take(self, name: str) -> None:
        self.written(name, self._kept(name))

    def _kept(self, name: str) -> dict[str, Value]:
        """Return what lies in the record of an object."""
        value = self._catalogue.get(self._key(name))
        kept = {} if value is None else json.loads(value)
        return {each: self._read(text) for each, text in kept.items()}

    def _key(self, name: str) -> bytes:
        return self._prefix + name.encode()

    def _name(self, key: bytes) -> str:
        return key.removeprefix(self._prefix).decode()


def encode_object(values: Mapping[str, Value]) -> bytes:
    """Return an object as it lies in one record."""
    return json.dumps(dict(values), sort_keys=True).encode()
