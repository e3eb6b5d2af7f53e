"""`sharecore groups peek`: the next records of a share group, without taking them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile, Timeout, over_transport
from sharecore.cli.clients import (
    BootstrapOfOne,
    UsageFailed,
    failures_in_one_line,
    usual_bootstrap,
)
from sharecore.cli.printable import shortened
from sharecore.cli.tables import Output, print_json, show

if TYPE_CHECKING:
    from sharecore.admin.peek import Peeked
    from sharecore.client.wire.transport import Transport

_WIDTH = 60


def peek(
    context: typer.Context,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Name of the share group.")],
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="A topic that it reads.")],
    partition: Annotated[
        Optional[list[int]],  # noqa: UP045 - typer evaluates the annotation
        typer.Option("--partition", metavar="N", help="Show only this partition; may be repeated."),
    ] = None,
    count: Annotated[
        int, typer.Option("--max", min=1, metavar="N", help="Maximum number of records per partition.")
    ] = 20,
    settled: Annotated[
        bool,
        typer.Option(
            "--settled", help="Also show acknowledged and archived records beyond the start offset."
        ),
    ] = False,
    output: Output = "table",
    lines: Annotated[
        str, typer.Option("--format", metavar="table|json", hidden=True, help="json: a record a line.")
    ] = "table",
    bootstrap: BootstrapOfOne = "",
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Show a share group's records in flight and its next records, without acquiring them.

    \b
    sharecore groups peek workers jobs
    sharecore groups peek workers jobs --partition 3 --max 100 --output json | jq .[].value

    \b
    new           never delivered (on Apache Kafka: or acquired for the first time)
    acquired      held by a member at this moment; only sharecore brokers show it
    available     delivered that often, then released or expired; will be redelivered
    acknowledged, archived     done (--settled)

    Records are read like any consumer reads them, their state from __share_group_state: nothing is acquired,
    no delivery is counted. Needs DESCRIBE on the group, READ on the topic, and READ on __share_group_state
    for the states; without it all records look new. Acquired records are not persisted: showing them needs
    DESCRIBE_CONFIGS on the group.
    """
    default, before, whole = context.obj or (usual_bootstrap(), None, None)
    with failures_in_one_line():
        if lines not in ("table", "json"):
            raise UsageFailed(f"--format {lines}: unknown; allowed: one of table, json")
        from sharecore.admin.peek import peek as look
        from sharecore.admin.waiting import Waiting, waiting_of

        async def work(transport: Transport) -> tuple[list[Peeked], Waiting]:
            peeked = await look(
                transport, group, topic, partitions=partition or (), max_records=count, settled=settled
            )
            places = [each.partition for each in peeked if each.records]
            return peeked, Waiting() if is_json else await waiting_of(transport, group, places)

        is_json = "json" in (lines, output)

        given = (before or []) + (setting or [])
        found, waiting = over_transport(
            Cluster(bootstrap or default, given, command_config or whole, timeout), work
        )
    if hidden := next((each.hidden for each in found if each.hidden is not None), None):
        typer.echo(f"all records look new, as their states cannot be read: {hidden}", err=True)
    if lines == "json":
        for record in _fields(found):
            typer.echo(json.dumps(record, ensure_ascii=False))
    elif output == "json":
        print_json(_fields(found))
    else:
        _print_table(found)
        for line in waiting.of_partitions():
            typer.echo(line)
        for line in [*waiting.of_group(), *(waiting.gaps() if any(each.records for each in found) else ())]:
            typer.echo(f"group {group}: {line}")


def _print_table(found: list[Peeked]) -> None:
    rows = [
        [
            f"{each.partition}@{seen.record.offset}",
            seen.state,
            str(seen.deliveries),
            shortened(seen.record.key, _WIDTH),
            shortened(seen.record.value, _WIDTH),
        ]
        for each in found
        for seen in each.records
    ]
    if rows:
        show(["RECORD", "STATE", "DELIVERIES", "KEY", "VALUE"], rows)
    else:
        typer.echo("nothing waits")
    for each in found:
        if each.start_offset is None:
            typer.echo(
                f"{each.partition}: the group has no state yet, nobody has asked for records", err=True
            )


def _fields(found: list[Peeked]) -> list[dict[str, object]]:
    return [
        {
            "topic": each.partition.topic,
            "partition": each.partition.partition,
            "offset": seen.record.offset,
            "state": seen.state,
            "deliveries": seen.deliveries,
            "timestamp_ms": seen.record.timestamp,
            "key": _whole(seen.record.key),
            "value": _whole(seen.record.value),
        }
        for each in found
        for seen in each.records
    ]


def _whole(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "backslashreplace")
