"""Dynamic configurations of topics, brokers and groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum

from sharecore.storage.catalog import Catalog
from sharecore.waiting import Done, settle

_PREFIX = b"config/"


class ResourceType(IntEnum):
    """The resource type of a configuration, numbered as on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


Listener = Callable[[ResourceType, str], object]


class Configs:
    """Dynamic settings by resource, with Kafka's names and values."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._listeners: list[Listener] = []
        self._objects = catalog.objects(_PREFIX, str)
        self._objects.watch(self._on_change)

    def get(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Return the settings of a resource; empty if it has none."""
        return self._objects.get(_written(resource_type, name))

    def when_current(self, done: Done) -> None:
        """Call back once all settings that any broker made before are visible here, or with an error."""
        self._catalog.when_current(done)

    def names(self, resource_type: int) -> list[str]:
        """Resources of a type that have settings."""
        prefix = _written(resource_type, "")
        return [each.removeprefix(prefix) for each in self._objects if each.startswith(prefix)]

    async def alter(self, resource_type: int, name: str, settings: Callable[[], Mapping[str, str]]) -> None:
        """Replace all settings of a resource with a function of the current ones; changes are serialized.

        Args:
            settings: called once all earlier settings are visible; an exception cancels the change.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        async with self._catalog.changing():
            await self.replace(resource_type, name, settings())

    async def replace(self, resource_type: int, name: str, settings: Mapping[str, str]) -> None:
        """Set all settings of a resource at once; raise KafkaError(KAFKA_STORAGE_ERROR)."""
        written = _written(resource_type, name)
        await self._objects.set({written: settings})
        self._on_change(written)

    def changed(self, resource_type: int, name: str, settings: Mapping[str, str]) -> None:
        """Record settings that have been written; for the storage only."""
        written = _written(resource_type, name)
        self._objects.written(written, settings)
        self._on_change(written)

    def _on_change(self, written: str) -> None:
        kind, _, name = written.partition("/")
        settle(tuple(self._listeners), ResourceType(int(kind)), name)

    def on_change(self, listener: Listener) -> None:
        """Call back with type and name after a resource's settings change."""
        self._listeners.append(listener)


def config_key(resource_type: int, name: str) -> bytes:
    """Return the catalog key of a resource's settings."""
    return _PREFIX + _written(resource_type, name).encode()


def _written(resource_type: int, name: str) -> str:
    return f"{int(resource_type)}/{name}"
