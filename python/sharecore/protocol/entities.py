"""The classes in which kio has its schemas, read for their fields alone.

To import them makes a data class of each: methods that are compiled as text, a millisecond a class, for
objects that nobody here makes. The first request of an API would keep the event loop from everything else for
as long as that takes for some forty of them. Their types would import hypothesis where it is installed, for a
second and 20 MB, to say how to draw them at random; so plain ones stand in for them.
"""

from __future__ import annotations

import builtins
import dataclasses
import importlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from importlib.machinery import PathFinder
from types import CodeType, SimpleNamespace
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

import kio.schema

if TYPE_CHECKING:
    from importlib.abc import InspectLoader

_CLASS_VARIABLE = "__"
"""What names begin with that are no fields'."""


class _Header(Protocol):
    __version__: int


@runtime_checkable
class Entity(Protocol):
    """A class of kio's: a message, or a part of one."""

    __name__: str
    __version__: int
    __flexible__: bool
    __annotations__: dict[str, object]
    __header_schema__: _Header


def entity(module: str, name: str) -> Entity:
    """Return a class of one of kio's modules, which is read anew each time.

    Args:
        module: its whole name, of three parts below `kio.schema`.
        name: the class.
    """
    found: Entity = getattr(_run(module), name)
    return found


def fields_of(entity: Entity) -> Iterator[dataclasses.Field[object]]:
    """Yield the fields of a class in order, each with its name and type."""
    for name, annotation in entity.__annotations__.items():
        if not name.startswith(_CLASS_VARIABLE):
            field = vars(entity).get(name)
            if field is None:
                field = dataclasses.field()
            field.name, field.type = name, annotation
            yield field


def _run(module: str) -> SimpleNamespace:
    """Return a module's contents, as an import would."""
    names: dict[str, object] = {"__name__": module, "__builtins__": _BUILTINS}
    exec(_code(module), names)
    return SimpleNamespace(**names)


_shared = cache(_run)
"""The modules that others import: headers, errors, nominal types."""


def _code(module: str) -> CodeType:
    """Return a module's code, without importing its packages."""
    _, _, *folders, last = module.split(".")
    places = ["/".join((place, *folders)) for place in kio.schema.__path__]
    spec = PathFinder.find_spec(last, places)
    if spec is None or spec.loader is None:
        raise ImportError(f"{module} is not there", name=module)
    loader = cast("InspectLoader", spec.loader)
    code = loader.get_code(last)
    assert code is not None
    return code


def _import(
    name: str,
    names: Mapping[str, object] | None = None,
    local: Mapping[str, object] | None = None,
    wanted: Sequence[str] = (),
    level: int = 0,
) -> object:
    if name in _STAND_INS:
        return _STAND_INS[name]
    return _shared(name) if name.startswith("kio.schema.") else __import__(name, names, local, wanted, level)


class _Duration(timedelta):
    @staticmethod
    def parse(duration: timedelta) -> timedelta:
        return duration


class _Primitives(SimpleNamespace):
    def __getattr__(self, name: str) -> object:
        """Return a type that a newer kio has."""
        found: object = getattr(importlib.import_module(_PRIMITIVES), name)
        return found


_PRIMITIVES = "kio.static.primitive"
_STAND_INS: dict[str, object] = {
    "dataclasses": SimpleNamespace(dataclass=lambda **_: lambda entity: entity, field=dataclasses.field),
    _PRIMITIVES: _Primitives(
        **dict.fromkeys(("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"), int),
        **dict.fromkeys(("i32Timedelta", "i64Timedelta"), _Duration),
        f64=float,
        PhantomStr=str,
        Records=bytes,
        TZAware=datetime,
    ),
}
_BUILTINS = {**vars(builtins), "__import__": _import}
