"""Users of SCRAM: set, described and deleted, rightly and wrongly; and elections of leaders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.differential.access.steps import Step

from sharecore.protocol import ApiKey as A


def users() -> Iterator[Step]:
    """All of them, on a broker without users."""
    yield _describe("nobody is there", None)
    yield _alter("a user", puts=[_put()])
    for size in (0, 1, 8):
        yield _alter(f"a salt of {size} bytes", puts=[_put(salt=b"s" * size)])
    for size in (1, 20, 32, 64):
        for mechanism in (1, 2):
            changed = _put(mechanism=mechanism, salted_password=b"p" * size)
            yield _alter(f"a password of {size} bytes for {mechanism}", puts=[changed])
    for count in (-1, 0, 1, 4095, 4097, 16384, 16385, 2**31 - 1):
        yield _alter(f"{count} iterations", puts=[_put(iterations=count)])
    for mechanism in (-1, 0, 3):
        yield _alter(f"mechanism {mechanism}", puts=[_put(mechanism=mechanism)])
        yield _alter(f"mechanism {mechanism} is deleted", deletes=[_named("x", mechanism)])
    yield _alter("no name", puts=[_put(name="")])
    yield _alter("no name is deleted", deletes=[_named("", 1)])
    yield _alter("twice", puts=[_put(), _put()])
    yield _alter("both mechanisms", puts=[_put(), _put(mechanism=2)])
    yield _alter("set and deleted", puts=[_put()], deletes=[_named("x", 1)])
    yield _alter("one set and one deleted", puts=[_put()], deletes=[_named("x", 2)])
    yield _alter("deleted twice", deletes=[_named("x", 1), _named("x", 1)])
    yield _alter("two users", puts=[_put(name="a"), _put(name="b")])
    yield _alter("one of two", puts=[_put(name="c"), _put(name="d", iterations=1)])
    yield _alter("an odd name", puts=[_put(name="a,=b ü\t")])
    yield _alter("nothing")
    yield _alter("nobody is deleted", deletes=[_named("nobody", 1)])
    yield _alter("a mechanism that the user has not", deletes=[_named("a", 2)])
    for name, asked in (("all", None), ("all by an empty list", [])):
        yield _describe(name, asked)
    for names in (["x"], ["x", "x"], ["nobody"], [""], ["a", "nobody", "b"]):
        yield _describe(f"described {names}", names)
    yield _alter("deleted", deletes=[_named("a", 1), _named("b", 1)])
    yield _describe("what is left", None)


def elections(topic: str) -> Iterator[Step]:
    """Of the leaders of a topic with one partition, and of some that are not there."""
    asked = [
        {"topic": topic, "partitions": [0, 7, -1]},
        {"topic": "no-such-topic", "partitions": [0]},
        {"topic": "no topic's name", "partitions": [0]},
    ]
    for version in range(3):
        for kind in (0, 1) if version else (0,):
            yield _elect(f"preferred or any, {kind}", version, kind, asked)
            yield _elect(f"the same twice, {kind}", version, kind, [asked[0], asked[0]])
            yield _elect(f"of nothing, {kind}", version, kind, [])
    yield _elect("of another kind", 2, 2, asked)


def _elect(name: str, version: int, kind: int, asked: list[dict[str, Any]]) -> Step:
    fields = {"election_type": kind, "topic_partitions": asked, "timeout_ms": 1000}
    return Step(f"{name} v{version}", A.ELECT_LEADERS, version, fields)


def _put(name: str = "x", **changed: Any) -> dict[str, Any]:
    usual = {"mechanism": 1, "iterations": 4096, "salt": b"salt of bytes", "salted_password": b"p" * 32}
    return {"name": name, **usual, **changed}


def _named(name: str, mechanism: int) -> dict[str, Any]:
    return {"name": name, "mechanism": mechanism}


def _alter(name: str, *, puts: Sequence[Any] = (), deletes: Sequence[Any] = ()) -> Step:
    fields = {"deletions": list(deletes), "upsertions": list(puts)}
    return Step(name, A.ALTER_USER_SCRAM_CREDENTIALS, 0, fields)


def _describe(name: str, names: Sequence[str] | None) -> Step:
    asked = None if names is None else [{"name": each} for each in names]
    return Step(name, A.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": asked})
