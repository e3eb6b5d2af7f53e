"""Dynamic configurations of topics, brokers and groups."""

from __future__ import annotations

import json
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
        self._settings: dict[tuple[int, str], dict[str, str]] = {}
        for key, value in catalogue.scan(_PREFIX):
            resource = resource_of(key)
            assert resource is not None
            self._settings[resource] = decode_settings(value)
        catalogue.watch(_PREFIX, self._told)

    def get(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The settings of a resource; empty when it has none of its own."""
        return self._settings.get((int(resource_type), name), {})

    def when_current(self, done: Done) -> None:
        """Calls back once all that any broker had set by now shows here, or with why that cannot be known."""
        self._catalogue.when_current(done)

    def names(self, resource_type: int) -> list[str]:
        """Resources of a type that have settings."""
        return [name for kind, name in self._settings if kind == resource_type]

    async def alter(self, resource_type: int, name: str, settings: Callable[[], Mapping[str, str]]) -> None:
        """Sets all settings of a resource to what is made of those that count; one change after the other.

        Args:
            settings: called once all shows that was set before; what it raises ends the change.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        async with self._catalogue.changing():
            await self.replace(resource_type, name, settings())

    async def replace(self, resource_type: int, name: str, settings: Mapping[str, str]) -> None:
        """Sets all settings of a resource at once; raises KafkaError(KAFKA_STORAGE_ERROR)."""
        key = config_key(resource_type, name)
        if settings:
            await self._catalogue.change([(key, encode_settings(settings))])
        else:
            await self._catalogue.change(deletes=[key])
        # what counts now, where somebody else has set it since
        self._told(key)

    def changed(self, resource_type: int, name: str, settings: Mapping[str, str]) -> None:
        """Notes settings that have been written; for the storage alone."""
        if settings:
            self._settings[int(resource_type), name] = dict(settings)
        else:
            self._settings.pop((int(resource_type), name), None)
        settle(tuple(self._listeners), ResourceType(resource_type), name)

    def _told(self, key: bytes) -> None:
        resource = resource_of(key)
        assert resource is not None
        self.changed(*resource, decode_settings(self._catalogue.get(key)))

    def on_change(self, listener: Listener) -> None:
        """Calls back with type and name after the settings of a resource have changed."""
        self._listeners.append(listener)


def config_key(resource_type: int, name: str) -> bytes:
    """Where the settings of a resource lie in the catalogue."""
    return _PREFIX + f"{int(resource_type)}/{name}".encode()


def resource_of(key: bytes) -> tuple[int, str] | None:
    """The resource whose settings lie under a key of the catalogue; None where it is another key."""
    if not key.startswith(_PREFIX):
        return None
    kind, _, name = key.removeprefix(_PREFIX).decode().partition("/")
    return int(kind), name


def decode_settings(value: bytes | None) -> dict[str, str]:
    """Settings as they lie in the catalogue; none without a value."""
    return {} if value is None else json.loads(value)


def encode_settings(settings: Mapping[str, str]) -> bytes:
    """Settings as they lie in the catalogue."""
    return json.dumps(dict(settings), sort_keys=True).encode()
