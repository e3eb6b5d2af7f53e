"""The classes in which kio has its schemas, read for their fields alone.

To import them makes a data class of each: methods that are compiled as text, a millisecond a class, for
objects that nobody here makes. The first request of an API would keep the event loop from everything else for
as long as that takes for some forty of them.
"""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Iterator
from importlib.machinery import PathFinder
from types import SimpleNamespace
from typing import Any

import kio.schema

_CLASS_VARIABLE = "__"
"""What names begin with that are no fields'."""


def entity(module: str, name: str) -> Any:
    """A class of one of kio's modules, which is read anew each time.

    Args:
        module: its whole name, of three parts below `kio.schema`.
        name: the class.
    """
    names: dict[str, Any] = {"__name__": module, "__builtins__": _BUILTINS}
    exec(_code(module), names)
    return names[name]


def fields_of(entity: Any) -> Iterator[dataclasses.Field[Any]]:
    """The fields of such a class, in their order, each with its name and type."""
    for name, annotation in entity.__annotations__.items():
        if not name.startswith(_CLASS_VARIABLE):
            field = vars(entity).get(name)
            if field is None:
                field = dataclasses.field()
            field.name, field.type = name, annotation
            yield field


def _code(module: str) -> Any:
    """What importing it would run. The packages that it lies in would import more, and are passed by."""
    _, _, *folders, last = module.split(".")
    places = ["/".join((place, *folders)) for place in kio.schema.__path__]
    spec = PathFinder.find_spec(last, places)
    if spec is None or spec.loader is None:
        raise ImportError(f"{module} is not there", name=module)
    loader: Any = spec.loader
    return loader.get_code(last)


def _import(name: str, *rest: Any) -> Any:
    return _DATACLASSES if name == "dataclasses" else __import__(name, *rest)


_DATACLASSES = SimpleNamespace(dataclass=lambda **_: lambda entity: entity, field=dataclasses.field)
_BUILTINS = {**vars(builtins), "__import__": _import}
