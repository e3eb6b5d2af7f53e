"""Checks of a handler when the worker is defined."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable

from sharecore._core import Record
from sharecore.errors import ConfigError

Handler = Callable[[Record], Awaitable[object] | object]
_AWAITED_MAX = 10


def name_of(handler: object) -> str:
    """Return the name under which a handler is logged."""
    inner = _innermost(handler)
    name = getattr(inner, "__qualname__", None)
    return name if isinstance(name, str) else type(inner).__name__


def is_coroutine_handler(handler: object) -> bool:
    """Return whether calling the handler returns a coroutine; such a handler runs in the event loop."""
    return any(map(inspect.iscoroutinefunction, _called(handler)))


def check_handler(handler: object) -> None:
    """Refuse objects that a worker cannot call with a record.

    Raises:
        ConfigError: it is not callable, is a generator function, or does not take one argument.
    """
    name = name_of(handler)
    if not callable(handler):
        raise ConfigError(
            f"{handler!r} cannot be called: decorate a function that takes a record, "
            f"as in `def {name}(record): ...`"
        )
    functions = _called(handler)
    if any(map(inspect.isgeneratorfunction, functions)) or any(map(inspect.isasyncgenfunction, functions)):
        raise ConfigError(
            f"{name} has a `yield` in it, so calling it runs none of its lines: take the `yield` out, or put "
            "it into a function of its own that the handler loops over"
        )
    try:
        signature = inspect.signature(handler)
    except (TypeError, ValueError):
        return  # some functions written in C have none
    try:
        signature.bind(None)
    except TypeError as error:
        raise ConfigError(
            f"{name}{signature} cannot be called with one argument, the record ({error}): write "
            f"`def {name}(record): ...`, and bind what else it needs with functools.partial"
        ) from None


async def finish(result: object) -> None:
    """Await an awaitable result; a forgotten `await` must not lose a job.

    Raises:
        TypeError: it returned a generator, none of whose lines have run.
    """
    for _ in range(_AWAITED_MAX):
        if not inspect.isawaitable(result):
            break
        result = await result
    check_result(result)


def check_result(result: object) -> None:
    """Refuse results that show that the handler did not run.

    Raises:
        TypeError: the result is a generator, none of whose lines have run, or another awaitable.
    """
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError(
            "the handler returned a generator, none of whose lines have run: loop over it in the handler"
        )
    if inspect.isawaitable(result):
        raise TypeError("the handler returned an awaitable that only returned another awaitable")


def _innermost(handler: object) -> object:
    while isinstance(handler, functools.partial):
        handler = handler.func
    return handler


def _called(handler: object) -> tuple[object, ...]:
    """Return the function behind a handler, and the method name for a callable object."""
    inner = _innermost(handler)
    if inspect.isfunction(inner) or inspect.ismethod(inner) or isinstance(inner, type):
        return (inner,)
    return inner, _innermost(getattr(type(inner), "__call__", None))  # noqa: B004 - it is the method that is asked for
