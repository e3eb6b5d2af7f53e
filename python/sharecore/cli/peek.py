"""`sharecore groups peek`: the next records of a share group, without taking them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import API_TIMEOUT_MS, Settings, SettingsFile, client_settings, run_with
from sharecore.cli.clients import (
    BootstrapOfOne,
    UsageFailed,
    failures_in_one_line,
    usual_bootstrap,
)
from sharecore.cli.printable import shortened
from sharecore.cli.tables import show

if TYPE_CHECKING:
    from sharecore.admin.peek import Peeked

_WIDTH = 60


def peek(
    context: typer.Context,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Name of the share group.")],
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="A topic that it reads.")],
    partition: Annotated[
        Optional[list[int]],  # noqa: UP045 - typer evaluates the annotation
        typer.Option("--partition", metavar="N", help="Only this partition; may be repeated."),
    ] = None,
    count: Annotated[
        int, typer.Option("--max", min=1, metavar="N", help="Records of each partition at most.")
    ] = 20,
    settled: Annotated[
        bool, typer.Option("--settled", help="Show settled records too, behind one that is not.")
    ] = False,
    output: Annotated[
        str, typer.Option("--format", metavar="table|json", help="json: a record a line, values in full.")
    ] = "table",
    bootstrap: BootstrapOfOne = "",
    setting: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """Show what is in flight and what comes next for a share group, and take none of it.

    \b
    sharecore groups peek workers jobs
    sharecore groups peek workers jobs --partition 3 --max 100 --format json | jq .value

    \b
    new           never given back: it comes next, or is leased for the first time
    available     was delivered that often and given back, or its lock ran out; it comes again
    acknowledged, archived     settled (--settled)

    Records are read as any consumer reads them, their state out of __share_group_state: nothing is leased,
    no delivery is counted. It needs DESCRIBE on the group, READ on the topic, and READ on
    __share_group_state for the states; without that all records look new. Who holds a lease is not durable.
    """
    default, before, whole = context.obj or (usual_bootstrap(), None, None)
    with failures_in_one_line():
        if output not in ("table", "json"):
            raise UsageFailed(f"--format {output}: unknown; allowed: one of table, json")
        from sharecore.admin.peek import peek as look
        from sharecore.client.settings import read_connection_settings
        from sharecore.client.wire.transport import Transport

        address = bootstrap or default

        async def work() -> list[Peeked]:
            chosen = client_settings(
                address, (before or []) + (setting or []), command_config or whole, API_TIMEOUT_MS
            )
            transport = Transport(read_connection_settings(chosen))
            try:
                return await look(
                    transport, group, topic, partitions=partition or (), max_records=count, settled=settled
                )
            finally:
                await transport.close()

        found = run_with(address, work)
    if output == "json":
        _print_json(found)
    else:
        _print_table(found)


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


def _print_json(found: list[Peeked]) -> None:
    for each in found:
        for seen in each.records:
            record = seen.record
            line = {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "offset": record.offset,
                "state": seen.state,
                "deliveries": seen.deliveries,
                "timestamp_ms": record.timestamp,
                "key": _whole(record.key),
                "value": _whole(record.value),
            }
            typer.echo(json.dumps(line, ensure_ascii=False))


def _whole(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "backslashreplace")
