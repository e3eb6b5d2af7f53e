"""Requests of every API in every version, from the schemas: about what exists, and about what does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tests.differential.access.case import MISSING, Case, Ids
from tests.harness.kafka_versions import SINCE_4_4
from tests.harness.plausible import Message, Names, message, variants

from sharecore.broker.handlers import SERVED, TELEMETRY
from sharecore.protocol import ApiKey

_LEFT_OUT = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
"""What needs no right; `strangers` has it."""


def generated(*, every_version: bool = True) -> Iterator[Case]:
    """All requests, in the order of the APIs; else those of the newest and the oldest version."""
    for api, served in sorted({**SERVED, **TELEMETRY}.items()):
        if api in _LEFT_OUT:
            continue
        versions = range(served.min_version, SINCE_4_4.get(api, served.max_version + 1))
        for version in versions if every_version else sorted({versions[0], versions[-1]}):
            for fixed in variants(api):
                for word in ("shut", "absent"):
                    about = ", ".join(f"{name}={value}" for name, value in fixed.items())
                    name = f"{api.name} v{version} {about} of what is {word}"
                    yield Case(name, api, version, partial(_fields, api, version, fixed, word))


def _fields(api: ApiKey, version: int, fixed: Mapping[str, Any], word: str, ids: Ids, user: str) -> Message:
    # share coordinator keys contain a topic id, which differs between the brokers
    topic_id = MISSING if api is ApiKey.FIND_COORDINATOR else ids.get(f"{word}-t", MISSING)
    names = Names(f"{word}-t", topic_id, f"{word}-g", f"{word}-x", f"{word}-u")
    return message(api, version, names, fixed)
