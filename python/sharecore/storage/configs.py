"""Dynamic configurations of topics, brokers and groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum

from sharecore.storage.catalogue import Catalogue
from sharecore.waiting import Done, settle

_PREFIX = b"config/"


class ResourceType(IntEnum):
    """What a configuration belongs to, numbered as on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


Listener = Callable[[ResourceType, str], object]


class Configs:
    """Settings that were altered at run time, by resource; names and values as Kafka has them."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._listeners: list[Listener] = []
        self._objects = catalogue.objects(_PREFIX, str)
        self._objects.watch(self._told)

    def get(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Return the settings of a resource; empty when it has none of its own."""
        return self._objects.get(_written(resource_type, name))

    def when_current(self, done: Done) -> None:
        """Call back once all that any broker had set by now shows here, or with why that cannot be known."""
        self._catalogue.when_current(done)

    def names(self, resource_type: int) -> list[str]:
        """Resources of a type that have settings."""
        prefix = _written(resource_type, "")
        return [each.removeprefix(prefix) for each in self._objects if each.startswith(prefix)]

    async def alter(self, resource_type: int, name: str, settings: Callable[[], Mapping[str, str]]) -> None:
        """Set all settings of a resource to what is made of those that count; one change after the other.

        Args:
            settings: called once all shows that was set before; what it raises ends the change.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        async with self._catalogue.changing():
            await self.replace(resource_type, name, settings())

    async def replace(self, resource_type: int, name: str, settings: Mapping[str, str]) -> None:
        """Set all settings of a resource at once; raise KafkaError(KAFKA_STORAGE_ERROR)."""
        written = _written(resource_type, name)
        await self._objects.set({written: settings})
        self._told(written)

    def changed(self, resource_type: int, name: str, settings: Mapping[str, str]) -> None:
        """Note settings that have been written; for the storage alone."""
        written = _written(resource_type, name)
        self._objects.written(written, settings)
        self._told(written)

    def _told(self, written: str) -> None:
        kind, _, name = written.partition("/")
        settle(tuple(self._listeners), ResourceType(int(kind)), name)

    def on_change(self, listener: Listener) -> None:
        """Call back with type and name after the settings of a resource have changed."""
        self._listeners.append(listener)


def config_key(resource_type: int, name: str) -> bytes:
    """Where the settings of a resource lie in the catalogue."""
    return _PREFIX + _written(resource_type, name).encode()


def _written(resource_type: int, name: str) -> str:
    return f"{int(resource_type)}/{name}"
