"""Quota entities: users, client ids and addresses, by name or as defaults (KIP-546)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from sharecore.errors import ErrorCode, KafkaError

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"
TYPES = (USER, CLIENT_ID, IP)

Entity = tuple[tuple[str, str | None], ...]
"""Pairs of type and name, ordered by type; a name of None is the default."""


class Match(IntEnum):
    """Match type of a filter component, numbered as on the wire."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


class Component(NamedTuple):
    """Filter component for one entity type."""

    entity_type: str
    match_type: int
    match: str | None


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """Return an entity of its parts; if a type repeats, the last entry wins."""
    return tuple(sorted(dict(parts).items()))


def check_entity(entity: Entity) -> None:
    """Raise KafkaError unless an entity is valid; its host is not resolved."""
    if not entity:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in TYPES:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Empty {kind} not supported")
    kinds = dict(entity)
    if IP in kinds and len(kinds) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        )


def select(entities: Iterable[Entity], components: Sequence[Component], *, strict: bool) -> list[Entity]:
    """Return the entities matching a filter.

    Args:
        entities: all entities.
        components: filter of each type; entities may have other types, too.
        strict: whether entities may have only the types of components.

    Raises:
        KafkaError: the filter is invalid.
    """
    wanted: dict[str, Component] = {}
    for each in components:
        _check_component(each, wanted)
        wanted[each.entity_type] = each
    if IP in wanted and len(wanted) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user "
            "or clientId filter component.",
        )
    return [each for each in entities if _matches(dict(each), wanted, strict=strict)]


def _check_component(asked: Component, wanted: Mapping[str, Component]) -> None:
    kind, how, name = asked
    if not kind:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
    if kind in wanted:
        text = f"Entity type {kind} cannot appear more than once in the filter."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if kind not in TYPES:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    if how not in list(Match):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown match type {how}")
    if how == Match.EXACT and name is None:
        text = "Request specified MATCH_TYPE_EXACT, but set match string to null."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if how != Match.EXACT and name is not None:
        text = f"Request specified MATCH_TYPE_{Match(how).name}, but also specified a match string."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)


def _matches(entity: Mapping[str, str | None], wanted: Mapping[str, Component], *, strict: bool) -> bool:
    if strict and entity.keys() != wanted.keys():
        return False
    return all(
        kind in entity and (each.match_type == Match.SPECIFIED or entity[kind] == each.match)
        for kind, each in wanted.items()
    )
