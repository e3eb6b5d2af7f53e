"""Validation of records in the settings topic: unreadable records are skipped.

Any client with write permission can append arbitrary records. An unreadable one would otherwise stop every
node, at each start.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from sharecore.quotas import decode_entity
from sharecore.security.acls import decode_acl
from sharecore.security.scram import decode_credential
from sharecore.storage import PRODUCER_IDS, ResourceType

SLOTS = b"tier/slots"
PINS, DRAINED = b"tier/pin/", b"tier/drain/"

_Check = Callable[[bytes, bytes | None], object]
"""Parses the rest of a key and its value, unless deleted; raises for invalid ones."""
_SLOTS_MAX, _NODES_MAX = 1 << 20, 1 << 31
_ACL_PARTS = (int, str, int, str, str, int, int)


def flaw(key: bytes, value: bytes | None) -> str:
    """Return why a record is unreadable; empty if it is readable.

    Args:
        value: None for a tombstone.
    """
    for prefix, check in _CHECKS:
        if key.startswith(prefix):
            try:
                check(key.removeprefix(prefix), value)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                return str(error) or type(error).__name__
            return ""
    return ""


def _number(text: bytes, below: int) -> int:
    # int() accepts signs, spaces and underscores, so that two keys could mean one slot
    if not text.isdigit() or text != b"%d" % int(text[:20]):
        raise ValueError("it is not a number")
    if int(text) >= below:
        raise ValueError(f"the number is not below {below}")
    return int(text)


def _count(rest: bytes, value: bytes | None) -> None:
    if rest:
        raise ValueError("unknown key")
    if value is not None:
        _number(value, 1 << 62)


def _pin(rest: bytes, value: bytes | None) -> None:
    _number(rest, _SLOTS_MAX)
    if value is not None:
        _number(value, _NODES_MAX)


def _drained(rest: bytes, value: bytes | None) -> None:
    _number(rest, _NODES_MAX)


def _acl(rest: bytes, value: bytes | None) -> None:
    if [type(part) for part in decode_acl(rest)] != list(_ACL_PARTS):
        raise TypeError("the fields of an access control entry have wrong types")


def _user(rest: bytes, value: bytes | None) -> None:
    rest.decode()
    if value is not None and not isinstance(decode_credential(value).iterations, int):
        raise TypeError("the number of iterations is not a number")


def _entity(name: str) -> None:
    for kind, named in decode_entity(name):
        if not isinstance(kind, str) or not isinstance(named, str | None):
            raise TypeError("the fields of an entity have wrong types")


def _resource(name: str) -> None:
    ResourceType(int(name.partition("/")[0]))


def _object(named: Callable[[str], object], typed: Callable[[str], object]) -> _Check:
    """Check an object whose values are in one record."""

    def check(rest: bytes, value: bytes | None) -> None:
        named(rest.decode())
        for text in {} if value is None else json.loads(value).values():
            typed(text)

    return check


def _single(named: Callable[[str], object], typed: Callable[[str], object]) -> _Check:
    """Check one value of an object."""

    def check(rest: bytes, value: bytes | None) -> None:
        named(rest.decode().rpartition("/")[0])
        if value is not None:
            typed(value.decode())

    return check


def _features(rest: bytes, value: bytes | None) -> None:
    if value is not None:
        kept = json.loads(value)
        int(kept["epoch"])
        for level in kept["levels"].values():
            int(level)


_CHECKS: tuple[tuple[bytes, _Check], ...] = (
    (SLOTS, _count),
    (PINS, _pin),
    (DRAINED, _drained),
    (b"acl/", _acl),
    (b"scram/", _user),
    (b"quota/", _object(_entity, float)),
    (b"limit/", _single(_entity, float)),
    (b"config/", _object(_resource, str)),
    (b"setting/", _single(_resource, str)),
    (b"features", _features),
    (PRODUCER_IDS, _count),
)
