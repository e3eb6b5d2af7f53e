"""Valid handlers, and errors that say what to write instead."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from sharecore.client import Backoff, Record, Retry, worker
from sharecore.client.workers.handlers import is_coroutine_handler, name_of
from sharecore.errors import ConfigError


def plain(record: Record) -> None: ...


async def coroutine(record: Record) -> None: ...


def generator(record: Record) -> Iterator[None]:
    yield


async def async_generator(record: Record) -> AsyncIterator[None]:
    yield


class Plain:
    def __call__(self, record: Record) -> None: ...
    def method(self, record: Record) -> None: ...
    def two(self, first: str, record: Record) -> None: ...
    async def coroutine(self, record: Record) -> None: ...
    def generator(self, record: Record) -> Iterator[None]:
        yield

    @staticmethod
    def static(record: Record) -> None: ...


class Coroutine:
    async def __call__(self, record: Record) -> None: ...


class Generator:
    def __call__(self, record: Record) -> Iterator[None]:
        yield


class NoArgument:
    def __call__(self) -> None: ...


def two(first: object, record: object) -> None: ...
def keyword(record: Record, *, needed: str) -> None: ...
def optional(record: Record, times: int = 1) -> None: ...


@pytest.mark.parametrize(
    ("handler", "is_coroutine"),
    [
        (plain, False),
        (coroutine, True),
        (optional, False),
        (Plain(), False),
        (Plain().method, False),
        (Plain.static, False),
        (Plain().coroutine, True),
        (Coroutine(), True),
        (functools.partial(two, "a"), False),
        (functools.partial(Plain().two, "a"), False),
        (functools.partial(coroutine), True),
        (functools.partial(Coroutine()), True),
        (functools.partial(keyword, needed="a"), False),
        (lambda record: None, False),
        (print, False),
    ],
)
def test_what_takes_one_record_may_be_a_handler(handler: Callable[..., Any], is_coroutine: bool) -> None:
    assert worker("topic")(handler).handler is handler
    assert is_coroutine_handler(handler) is is_coroutine
    assert name_of(handler)


@pytest.mark.parametrize(
    "handler",
    [
        generator,
        async_generator,
        Generator(),
        Plain().generator,
        functools.partial(generator),
        functools.partial(functools.partial(async_generator)),
    ],
)
def test_a_generator_function_is_refused(handler: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match=r"has a `yield` in it.*take the `yield` out"):
        worker("topic")(handler)


@pytest.mark.parametrize(
    "handler", [two, keyword, lambda: None, NoArgument(), Plain().two, functools.partial(two, "a", "b")]
)
def test_what_does_not_take_one_argument_is_refused(handler: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match=r"cannot be called with one argument, the record.*write `def"):
        worker("topic")(handler)


@pytest.mark.parametrize("handler", ["jobs:resize", None, 7])
def test_what_cannot_be_called_is_refused(handler: Any) -> None:
    with pytest.raises(ConfigError, match="cannot be called: decorate a function"):
        worker("topic")(handler)


def test_a_worker_is_decorated_once() -> None:
    with pytest.raises(ConfigError, match="is a worker already"):
        worker("topic")(worker("topic")(plain))


def test_calling_a_worker_calls_its_handler() -> None:
    assert worker("topic")(lambda record: (record, "called"))("a record") == ("a record", "called")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"concurrency": 0}, "concurrency=0"),
        ({"on_error": "drop"}, "on_error='drop'"),
        ({"topics": []}, "needs a topic"),
        ({"retry": Retry(), "backoff": Backoff()}, "pass one of them"),
        ({"handler_timeout": 0}, "handler_timeout=0"),
        ({"drain_seconds": -1}, "drain_seconds=-1"),
        ({"max_deliveries": 0}, "max_deliveries=0"),
        ({"dead_letters": ""}, "dead_letters"),
        ({"topics": print}, r"write `@worker\('jobs'\)`"),
        ({"topics": None}, "topic=None"),
        ({"topics": b"jobs"}, "topic=b'jobs'"),
        ({"topics": ["jobs", 1]}, "topic=1"),
        ({"topics": ""}, "topic=''"),
        ({"concurrency": "8"}, "concurrency='8': must be a whole number"),
        ({"concurrency": 2.5}, "concurrency=2.5: must be a whole number"),
        ({"concurrency": True}, "concurrency=True: must be a whole number"),
        ({"on_error": ["reject"]}, "on_error="),
        ({"retry": 3}, r"retry=3: must be a Retry or a Backoff"),
        ({"backoff": 3}, "backoff=3: must be a Backoff"),
        ({"handler_timeout": "5"}, "handler_timeout='5': must be a finite number"),
        ({"handler_timeout": float("nan")}, "handler_timeout=nan: must be a finite number"),
        ({"drain_seconds": timedelta(seconds=5)}, "drain_seconds=.*must be a finite number"),
        ({"max_deliveries": "3"}, "max_deliveries='3': must be a whole number"),
        ({"dead_letters": True}, "dead_letters=True: must be a non-empty string"),
        ({"create_topics": "no"}, "create_topics='no': must be True or False"),
        ({"from_beginning": "no"}, "from_beginning='no': must be True or False"),
        ({"health_port": "80"}, "health_port='80': must be a whole number from 0 to 65535"),
    ],
)
def test_arguments_are_checked_when_a_worker_is_made(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        worker(**({"topics": "topic"} | arguments))(plain)


@pytest.mark.parametrize(
    "arguments",
    [
        {"first_seconds": -1},
        {"first_seconds": 30, "max_seconds": 20},
        {"factor": 0.5},
        {"jitter": 2},
        {"give_up_seconds": -1},
        {"attempts": 0},
        {"max_waiting": 0},
        {"max_seconds": float("inf")},
        {"give_up_seconds": float("nan")},
    ],
)
def test_a_retry_policy_is_checked(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Retry(**arguments)


def test_rejecting_at_an_error_means_at_the_first_one_unless_retries_are_asked_for() -> None:
    assert worker("topic", on_error="reject")(plain).retry.attempts == 1
    assert worker("topic", on_error="reject", retry=Retry())(plain).retry.attempts is None
    assert worker("topic")(plain).retry == Retry()


@pytest.mark.parametrize(
    ("made", "values", "complaint"),
    [
        (Retry, {"first_seconds": "1"}, "first_seconds='1': must be a finite number"),
        (Retry, {"attempts": 2.5}, "attempts=2.5: must be a whole number"),
        (Retry, {"attempts": 0}, "attempts=0: must be a whole number"),
        (Retry, {"max_waiting": None}, "max_waiting=None: must be a whole number"),
        (Backoff, {"first_ms": 1.5}, "first_ms=1.5: must be a whole number"),
        (Backoff, {"last_ms": None}, "last_ms=None: must be a whole number"),
        (Backoff, {"factor": "2"}, "factor='2': must be a finite number"),
    ],
)
def test_waits_of_a_wrong_type_are_refused_by_name(
    made: Callable[..., Any], values: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        made(**values)
