"""Share state as a table, or as JSON lines with the field names of Kafka's own formatter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

from sharecore.cli.tables import print_json, show
from sharecore.cli.times import show_time

if TYPE_CHECKING:
    from sharecore.admin import SharePartitionState, StateChange, StateProblem
    from sharecore.sharestate.records import Snapshot, StateBatch

FORMATS = ("table", "json")
_STATES = {0: "available", 2: "acknowledged", 3: "archiving", 4: "archived"}
_BATCHES_SHOWN = 4


def show_states(states: Iterable[SharePartitionState], output: str) -> None:
    """Print the current state, a share partition per line.

    Args:
        output: table, json for one array, or lines for an object of JSON a line.
    """
    from sharecore.sharestate.keys import topic_id_text

    if output != "table":
        found = [
            dict(
                key=each.key.coordinator_key(),
                **_named(each.key.group_id, each.topic, topic_id_text(each.key.topic_id), each.key.partition),
                snapshotEpoch=each.snapshot_epoch,
                stateEpoch=each.state_epoch,
                leaderEpoch=each.leader_epoch,
                startOffset=each.start_offset,
                deliveryCompleteCount=each.delivery_complete_count,
                createTimestamp=each.created_ms,
                writeTimestamp=each.snapshot_ms,
                stateBatches=_json_batches(each.batches),
            )
            for each in states
        ]
        _print(found, output)
        return
    show(
        ["KEY", "TOPIC", "START", "DONE", "EPOCHS", "SNAPSHOT", "IN FLIGHT"],
        [
            [
                each.key.coordinator_key(),
                each.topic or "-",
                str(each.start_offset),
                str(each.delivery_complete_count),
                f"{each.state_epoch}/{each.leader_epoch}/{each.snapshot_epoch}",
                show_time(each.snapshot_ms),
                _short(each.batches),
            ]
            for each in states
        ],
    )


def show_history(changes: Iterable[StateChange], output: str) -> None:
    """Print records, the oldest first; `output` as for `show_states`."""
    if output != "table":
        found = [
            dict(
                partition=change.partition,
                offset=change.offset,
                timestamp=change.timestamp_ms,
                type=_type(change),
                **_fields(change),
            )
            for change in changes
        ]
        _print(found, output)
        return
    rows = []
    for change in changes:
        fields = _fields(change)
        epochs = "/".join(
            str(fields.get(name, "-")) for name in ("stateEpoch", "leaderEpoch", "snapshotEpoch")
        )
        rows.append(
            [
                f"{change.partition}:{change.offset}",
                show_time(change.timestamp_ms),
                _type(change),
                str(fields.get("startOffset", "-")),
                str(fields.get("deliveryCompleteCount", "-")),
                epochs if fields else "-",
                _short(change.batches),
            ]
        )
    show(["OFFSET", "WRITTEN", "RECORD", "START", "DONE", "EPOCHS", "IN FLIGHT"], rows)


def show_problems(problems: Iterable[StateProblem]) -> None:
    """Print unreadable records and their places to stderr."""
    for each in problems:
        typer.echo(
            f"sharecore: __share_group_state-{each.partition} at offset {each.offset}: {each.reason}",
            err=True,
        )


def _fields(change: StateChange) -> dict[str, object]:
    """Return the fields of a record in the order of Kafka's schemas; none for a tombstone."""
    from sharecore.sharestate.records import Snapshot

    value = change.value
    if value is None:
        return {}
    whole = value if isinstance(value, Snapshot) else None
    return {
        "snapshotEpoch": value.snapshot_epoch,
        **({"stateEpoch": whole.state_epoch} if whole else {}),
        "leaderEpoch": value.leader_epoch,
        "startOffset": value.start_offset,
        "deliveryCompleteCount": value.delivery_complete_count,
        **_times(whole),
        "stateBatches": _json_batches(change.batches),
    }


def _times(snapshot: Snapshot | None) -> dict[str, int]:
    if snapshot is None:
        return {}
    return {"createTimestamp": snapshot.create_ms, "writeTimestamp": snapshot.write_ms}


def _type(change: StateChange) -> str:
    from sharecore.sharestate.records import SNAPSHOT

    if change.value is None:
        return "tombstone"
    return "ShareSnapshot" if change.kind == SNAPSHOT else "ShareUpdate"


def _named(group_id: str, topic: str | None, topic_id: str, partition: int) -> dict[str, object]:
    return {"groupId": group_id, "topic": topic, "topicId": topic_id, "partition": partition}


def _json_batches(batches: Iterable[StateBatch]) -> list[dict[str, int]]:
    return [
        {"firstOffset": first, "lastOffset": last, "deliveryState": state, "deliveryCount": count}
        for first, last, state, count in batches
    ]


def _short(batches: Sequence[StateBatch]) -> str:
    texts = [
        f"{first if first == last else f'{first}-{last}'} {_STATES.get(state, state)} x{count}"
        for first, last, state, count in batches[:_BATCHES_SHOWN]
    ]
    if len(batches) > _BATCHES_SHOWN:
        texts.append(f"and {len(batches) - _BATCHES_SHOWN} more")
    return ", ".join(texts) or "-"


def _print(found: list[dict[str, object]], output: str) -> None:
    if output == "json":
        print_json(found)
        return
    for each in found:
        typer.echo(json.dumps(each))
