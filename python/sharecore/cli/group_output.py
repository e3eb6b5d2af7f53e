"""A share group as `sharecore groups describe` shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from sharecore.cli.tables import known, show

if TYPE_CHECKING:
    from sharecore.admin import PartitionOffset, ShareGroup
    from sharecore.admin.waiting import Waiting


def describe_group(
    group: ShareGroup, offsets: Sequence[PartitionOffset], waiting: Waiting, letters: str
) -> None:
    """Print a group: members, progress, reasons for waiting records, and dead letters."""
    from sharecore.admin.waiting import describe_reason

    epochs = f"epoch {group.epoch}, assignment epoch {group.assignment_epoch}"
    typer.echo(f"share group {group.group_id}: {group.state}, {epochs}")
    if waiting.paused:
        typer.echo(f"{waiting.paused}: its members get no records")
    typer.echo()
    if group.members:
        rows = [
            [
                each.client_id,
                each.member_id,
                each.host,
                str(each.epoch),
                " ".join(map(str, each.assignment)) or "-",
            ]
            for each in group.members
        ]
        show(["CLIENT", "MEMBER", "HOST", "EPOCH", "PARTITIONS"], sorted(rows))
    else:
        typer.echo("no members")
    if offsets:
        typer.echo()
        show(
            ["PARTITION", "START OFFSET", "LAG"],
            [[str(each.partition), known(each.start_offset), known(each.lag)] for each in offsets],
        )
    has_lag = any(each.lag != 0 for each in offsets)
    if waits := [
        *map(describe_reason, waiting.fetches),
        *waiting.of_partitions(),
        *(waiting.gaps() if has_lag else ()),
    ]:
        typer.echo()
        typer.echo("\n".join(waits))
    if letters:
        typer.echo(f"\n{letters}")


def group_fields(
    group: ShareGroup, offsets: Sequence[PartitionOffset], waiting: Waiting
) -> dict[str, object]:
    """Return a group as an object of JSON."""
    return {
        "group": group.group_id,
        "state": group.state,
        "epoch": group.epoch,
        "assignmentEpoch": group.assignment_epoch,
        "assignor": group.assignor,
        "paused": bool(waiting.paused),
        "pausedUntilMs": waiting.pause.until_ms or None,
        "heldBack": waiting.fetches,
        "reasonsMissing": waiting.missing or None,
        "members": [
            {
                "member": each.member_id,
                "client": each.client_id,
                "host": each.host,
                "epoch": each.epoch,
                "rack": each.rack_id,
                "topics": [*each.subscribed],
                "partitions": [
                    {"topic": place.topic, "partition": place.partition} for place in each.assignment
                ],
            }
            for each in group.members
        ],
        "partitions": [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "startOffset": each.start_offset,
                "lag": each.lag,
                "error": None if each.error is None else str(each.error),
                "waits": waiting.partitions.get(each.partition, []),
            }
            for each in offsets
        ],
    }
