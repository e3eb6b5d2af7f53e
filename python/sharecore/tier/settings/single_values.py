"""Objects in a tier's settings with one record per value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sharecore.storage import Objects, Value

if TYPE_CHECKING:
    from sharecore.storage import Catalog


class SingleValues(Objects[Value]):
    """Objects with individually written values, so that nodes that set different values do not conflict.

    Objects in a single record, as on a broker, are read, and split by the next change.

    Args:
        single: key prefix of values; followed by the object's name, which may contain slashes, and the
            value's name, which contains none.
    """

    def __init__(self, catalog: Catalog, prefix: bytes, single: bytes, read: Callable[[str], Value]) -> None:
        self._single = single
        super().__init__(catalog, prefix, read)
        for key, _ in catalog.scan(single):
            self._take_value(key)
        catalog.watch(single, self._single_changed)

    async def set(self, objects: Mapping[str, Mapping[str, Value]]) -> None:
        puts: list[tuple[bytes, bytes]] = []
        gone: list[bytes] = []
        wholes: list[bytes] = []
        for name, values in objects.items():
            is_whole = self._catalog.get(self._key(name)) is not None
            if is_whole:
                wholes.append(self._key(name))
            before = self.get(name)
            puts += [
                (self._key_of(name, each), str(value).encode())
                for each, value in values.items()
                if is_whole or before.get(each) != value
            ]
            gone += [self._key_of(name, each) for each in before if each not in values]
        await self._catalog.change(puts, [*gone, *wholes])
        for key in (*(key for key, _ in puts), *gone):
            # the current value, if another node has set it since
            self._take_value(key)

    def _kept(self, name: str) -> dict[str, Value]:
        kept = super()._kept(name)
        for key, value in self._catalog.scan(self._key_of(name, "")):
            if self._parts(key)[0] == name:
                kept[self._parts(key)[1]] = self._read(value.decode())
        return kept

    def _single_changed(self, key: bytes) -> None:
        self._take_value(key)
        self._notify(self._parts(key)[0])

    def _take_value(self, key: bytes) -> None:
        name, each = self._parts(key)
        values, value = dict(self.get(name)), self._catalog.get(key)
        if value is None:
            values.pop(each, None)
        else:
            values[each] = self._read(value.decode())
        self.written(name, values)

    def _key_of(self, name: str, each: str) -> bytes:
        return self._single + f"{name}/{each}".encode()

    def _parts(self, key: bytes) -> tuple[str, str]:
        """Return the object and the name of a value."""
        name, _, each = key.removeprefix(self._single).decode().rpartition("/")
        return name, each
