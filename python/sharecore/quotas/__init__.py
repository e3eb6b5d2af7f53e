"""Client quotas and throttling."""

from __future__ import annotations

from sharecore.quotas.entity import (
    CLIENT_ID,
    IP,
    USER,
    Component,
    Entity,
    Match,
    entity_of,
    select,
)
from sharecore.quotas.keys import CONSUMER, CONTROLLER, IP_RATE, PRODUCER, REQUEST, check_value
from sharecore.quotas.limits import ClientQuotas, decode_entity
from sharecore.quotas.throttles import Mutations, Throttles

__all__ = [
    "CLIENT_ID",
    "CONSUMER",
    "CONTROLLER",
    "IP",
    "IP_RATE",
    "PRODUCER",
    "REQUEST",
    "USER",
    "ClientQuotas",
    "Component",
    "Entity",
    "Match",
    "Mutations",
    "Throttles",
    "check_value",
    "decode_entity",
    "entity_of",
    "select",
]
