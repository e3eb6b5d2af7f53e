"""Answers without what two brokers cannot share: ids become aliases, addresses and clusters their names."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from tests.differential.wire.batches import masked
from tests.differential.wire.names import Names
from tests.differential.wire.producers import name_of
from tests.differential.wire.script import Ask

_UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIMES = {"log_append_time_ms", "last_timestamp", "transaction_start_time_ms", "timestamp"}
_SPACE = {"total_bytes", "usable_bytes"}
INTERNAL = "__"


def plain(answer: Any, names: Names, port: int) -> Any:
    """Return an answer as dictionaries and lists, in a script's words."""
    if isinstance(answer, tuple) and hasattr(answer, "_fields"):
        return {
            name: _field(name, value, names, port) for name, value in zip(answer._fields, answer, strict=True)
        }
    if isinstance(answer, list | tuple):
        return [plain(value, names, port) for value in answer]
    if isinstance(answer, UUID):
        return names.alias(answer) or str(answer)
    if isinstance(answer, bytes):
        return {"hex": answer.hex()}
    return names.from_broker(answer) if isinstance(answer, str) else answer


def _field(name: str, value: Any, names: Names, port: int) -> Any:
    if name == "port" and value == port:
        return "<port>"
    if name == "cluster_id" and value:
        return "<cluster>"
    if name in _TIMES:
        return names.time(value)
    if name == "log_dir":
        return "<data>"
    if name in _SPACE and value > 0:
        return "<bytes>"
    if name == "session_id":
        return names.session(value)
    if name == "producer_id":
        return names.producers.alias(value)
    if name == "records" and isinstance(value, bytes):
        value = masked(value, names.producers)
    return plain(value, names, port)


def learn_topics(answer: Any, names: Names) -> None:
    """Remembers the ids of the topics that an answer names."""
    if isinstance(answer, tuple) and hasattr(answer, "_fields"):
        topic = getattr(answer, "name", None) or getattr(answer, "topic_name", None)
        if isinstance(topic, str) and hasattr(answer, "topic_id"):
            names.learn(topic, answer.topic_id)
        for value in answer:
            learn_topics(value, names)
    elif isinstance(answer, list):
        for value in answer:
            learn_topics(value, names)


def learn_producers(ask: Ask, answer: Any, names: Names) -> None:
    """Remembers the id that a producer is given."""
    if ask.api in ("INIT_PRODUCER_ID", "END_TXN") and hasattr(answer, "producer_id"):
        names.producers.learn(name_of(ask), answer.producer_id)


def own_only(ask: Ask, answer: Any, prefix: str) -> Any:
    """Return an answer without what other scripts left behind on the broker."""
    kept = {
        "LIST_GROUPS": ("groups", "group_id", (prefix,)),
        "METADATA": ("topics", "name", (prefix, INTERNAL)),
        "LIST_CONFIG_RESOURCES": ("config_resources", "resource_name", (prefix,)),
        "LIST_TRANSACTIONS": ("transaction_states", "transactional_id", (prefix,)),
    }
    if ask.api not in kept or (ask.api == "METADATA" and ask.fields.get("topics")):
        return answer
    items, name, own = kept[ask.api]
    return answer._replace(
        **{
            items: [
                item for item in getattr(answer, items) if (getattr(item, name) or prefix).startswith(own)
            ]
        }
    )


def unknown_ids(text: str) -> list[str]:
    """Ids in a text that no alias stands for."""
    return _UUID_TEXT.findall(text)


def without_ids(text: str) -> str:
    return _UUID_TEXT.sub("<id>", text)
