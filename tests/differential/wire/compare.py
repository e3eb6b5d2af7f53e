"""Where two masked answers differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.differential.wire.masks import without_ids

MISSING = "<missing>"
IN_ORDER = {"acquired_records", "synonyms", "replica_nodes", "isr_nodes", "state_batches"}
"""Lists whose order says something; all others are compared item by item of the same name."""

_IDENTITY = (
    "key", "api_key", "feature", "log_dir",
    "resource_type", "resource_name", "group_id", "member_id", "topic_id", "topic", "topic_name",
    "name", "partition", "partition_index", "index", "node_id", "transactional_id", "producer_id",
)  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """One field; `path` names lists without their items' numbers."""

    path: str
    where: str
    apache: Any
    ours: Any

    def __str__(self) -> str:
        apache, ours = json.dumps(self.apache), json.dumps(self.ours)
        return f"{self.where}\n    apache:    {apache}\n    sharecore: {ours}"


def differences(apache: Any, ours: Any) -> list[Difference]:
    """Return the fields in which two answers differ, whatever the order of lists that are sets."""
    return list(_walk("", "", apache, ours))


def same_order(apache: Any, ours: Any) -> bool:
    """Whether two answers that do not differ have their lists in the same order too."""
    return json.dumps(apache) == json.dumps(ours)


def _walk(path: str, where: str, apache: Any, ours: Any) -> Iterator[Difference]:
    if isinstance(apache, dict) and isinstance(ours, dict):
        for name in dict.fromkeys([*apache, *ours]):
            yield from _walk(
                f"{path}.{name}" if path else name,
                f"{where}.{name}" if where else name,
                apache.get(name, MISSING),
                ours.get(name, MISSING),
            )
    elif isinstance(apache, list) and isinstance(ours, list):
        in_order = path.rpartition(".")[2] in IN_ORDER
        for name, left, right in _pairs(apache, ours, in_order=in_order):
            yield from _walk(f"{path}[]", f"{where}[{name}]", left, right)
    elif apache != ours or type(apache) is not type(ours):
        yield Difference(path, where, apache, ours)


def _pairs(apache: list[Any], ours: list[Any], *, in_order: bool) -> Iterator[tuple[str, Any, Any]]:
    """Items that belong together, each with its name; MISSING stands for one that has no partner."""
    if in_order:
        for at in range(max(len(apache), len(ours))):
            yield (
                str(at),
                apache[at] if at < len(apache) else MISSING,
                ours[at] if at < len(ours) else MISSING,
            )
        return
    left, right = _by_name(apache), _by_name(ours)
    for name in dict.fromkeys([*left, *right]):
        yield name, left.get(name, MISSING), right.get(name, MISSING)


def _by_name(items: list[Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for item in items:
        name = _name(item)
        number = 2
        unique = name
        while unique in named:
            unique = f"{name} #{number}"
            number += 1
        named[unique] = item
    return named


def _name(item: Any) -> str:
    if not isinstance(item, dict):
        return without_ids(json.dumps(item))
    return " ".join(
        f"{name}={without_ids(str(item[name]))}" for name in _IDENTITY if item.get(name) is not None
    )
