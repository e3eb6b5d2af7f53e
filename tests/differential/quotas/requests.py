"""Requests that set and describe quotas, right ones and wrong ones, in the order in which they are sent."""

from __future__ import annotations

from collections.abc import Iterator

from tests.differential.access.steps import Step

from sharecore.protocol import ApiKey

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
Part = tuple[str, str | None]


def _alter(name: str, *entries: tuple[list[Part], dict[str, float | None]], validate: bool = False) -> Step:
    wanted = [
        {
            "entity": [{"entity_type": kind, "entity_name": who} for kind, who in entity],
            "ops": [
                {"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops.items()
            ],
        }
        for entity, ops in entries
    ]
    return Step(name, ApiKey.ALTER_CLIENT_QUOTAS, 1, {"entries": wanted, "validate_only": validate})


def _describe(name: str, *asked: tuple[str, int, str | None], strict: bool = False) -> Step:
    components = [{"entity_type": kind, "match_type": how, "match": match} for kind, how, match in asked]
    fields = {"components": components, "strict": strict}
    return Step(name, ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, fields)


def steps() -> Iterator[Step]:
    """All of them."""
    yield from _entities()
    yield from _values()
    yield from _filters()
    yield from _removals()


def _entities() -> Iterator[Step]:
    rate: dict[str, float | None] = {"producer_byte_rate": 1000.0}
    yield _describe("nothing is there")
    yield _alter("a user", ([("user", "ann")], rate))
    yield _alter("a client", ([("client-id", "app")], {"consumer_byte_rate": 2000.0}))
    yield _alter("a user's client", ([("user", "ann"), ("client-id", "app")], {"request_percentage": 0.5}))
    yield _alter("the other way round", ([("client-id", "b"), ("user", "ann")], rate))
    yield _alter("every user", ([("user", None)], {"controller_mutation_rate": 1.25}))
    yield _alter("every client", ([("client-id", None)], rate))
    yield _alter("every client of every user", ([("user", None), ("client-id", None)], rate))
    yield _alter("every client of a user", ([("user", "bob"), ("client-id", None)], rate))
    yield _alter("an address", ([("ip", "10.0.0.1")], {"connection_creation_rate": 5.0}))
    yield _alter("every address", ([("ip", None)], {"connection_creation_rate": 500.0}))
    yield _alter("a host", ([("ip", "localhost")], {"connection_creation_rate": 50.0}))
    yield _alter("no such host", ([("ip", "no.such.host.invalid")], {"connection_creation_rate": 5.0}))
    yield _alter("an address of a user", ([("ip", "10.0.0.1"), ("user", "ann")], rate))
    yield _alter("nobody", ([], rate))
    yield _alter("a type that is not there", ([("group", "g")], rate))
    yield _alter("an empty type", ([("", "g")], rate))
    yield _alter("a user without a name", ([("user", "")], rate))
    yield _alter("a client without a name", ([("client-id", "")], rate))
    yield _alter("a user twice", ([("user", "ann"), ("user", "ann")], rate))
    yield _alter("two users", ([("user", "ann"), ("user", "bob")], rate))
    yield _alter("an odd name", ([("user", "a*n/ ü%,=:")], rate))
    yield _alter(
        "the same entity twice", ([("user", "eve")], rate), ([("user", "eve")], {"request_percentage": 1.0})
    )
    yield _alter("a good one and a bad one", ([("user", "fay")], rate), ([("user", "")], rate))
    yield _alter("nothing to change", ([("user", "gus")], {}))
    yield _alter("no entry")
    yield _alter("only looked at", ([("user", "hal")], rate), validate=True)
    yield _alter("only looked at, and wrong", ([("user", "")], rate), validate=True)
    yield _describe("all that is there")


def _values() -> Iterator[Step]:
    for key in (
        "producer_byte_rate",
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
        "connection_creation_rate",
    ):
        for value in (0.0, -1.0, 0.5, 1.0, 3.7, 1e-9, 2.0**31, 2.0**40, 1e300, float("inf")):
            yield _alter(f"{key}={value}", ([("user", "values")], {key: value}))
            yield _alter(f"{key}={value} of an address", ([("ip", "10.0.0.9")], {key: value}))
    for key in ("", "no.such.key", "Producer_Byte_Rate", "SCRAM-SHA-256"):
        yield _alter(f"key {key!r}", ([("user", "values")], {key: 1.0}))
        yield _alter(f"key {key!r} is taken away", ([("user", "values")], {key: None}))
    yield _alter(
        "a good key and a bad one", ([("user", "partly")], {"producer_byte_rate": 10.0, "made_up": 1.0})
    )
    yield _describe("values", ("user", EXACT, "values"))
    yield _describe("partly", ("user", EXACT, "partly"))


def _filters() -> Iterator[Step]:
    for strict in (False, True):
        where = "and nothing else" if strict else "and others"
        for kind in ("user", "client-id", "ip"):
            yield _describe(f"any {kind} {where}", (kind, SPECIFIED, None), strict=strict)
            yield _describe(f"every {kind} {where}", (kind, DEFAULT, None), strict=strict)
        yield _describe(f"ann {where}", ("user", EXACT, "ann"), strict=strict)
        yield _describe(f"app {where}", ("client-id", EXACT, "app"), strict=strict)
        yield _describe(
            f"ann's app {where}", ("user", EXACT, "ann"), ("client-id", EXACT, "app"), strict=strict
        )
        yield _describe(
            f"any user's any client {where}",
            ("user", SPECIFIED, None),
            ("client-id", SPECIFIED, None),
            strict=strict,
        )
        yield _describe(f"no component {where}", strict=strict)
        yield _describe(f"nobody {where}", ("user", EXACT, "nobody"), strict=strict)
    yield _describe("a user twice", ("user", EXACT, "ann"), ("user", SPECIFIED, None))
    yield _describe("a type that is not there", ("group", EXACT, "g"))
    yield _describe("an empty type", ("", EXACT, "g"))
    yield _describe("exactly nothing", ("user", EXACT, None))
    yield _describe("exactly an empty name", ("user", EXACT, ""))
    yield _describe("every user of a name", ("user", DEFAULT, "ann"))
    yield _describe("any user of a name", ("user", SPECIFIED, "ann"))
    yield _describe("another way to match", ("user", 3, "ann"))
    yield _describe("addresses of users", ("ip", SPECIFIED, None), ("user", SPECIFIED, None))


def _removals() -> Iterator[Step]:
    yield _alter("taken away", ([("user", "ann")], {"producer_byte_rate": None}))
    yield _alter("taken away again", ([("user", "ann")], {"producer_byte_rate": None}))
    yield _alter("taken from nobody", ([("user", "zoe")], {"producer_byte_rate": None}))
    yield _alter("what an address cannot have", ([("ip", "10.0.0.1")], {"producer_byte_rate": None}))
    yield _alter("the address", ([("ip", "10.0.0.1")], {"connection_creation_rate": None}))
    yield _alter(
        "one for another", ([("client-id", "app")], {"consumer_byte_rate": None, "producer_byte_rate": 7.0})
    )
    yield _describe("what is left")
