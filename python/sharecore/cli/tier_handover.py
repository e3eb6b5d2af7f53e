"""`sharecore tier adopt` and `return`: a share group moves between a tier and its upstream cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sharecore.cli.admin import Cluster
from sharecore.cli.clients import CommandFailed

if TYPE_CHECKING:
    from sharecore.admin.handing_over import HandedOver
    from sharecore.tier.operation.operator import Operator

_UPSTREAM, _TIER = "the upstream cluster", "the tier"


async def move_group(
    operator: Operator,
    group_id: str,
    bootstrap: str | None,
    file: Path | None,
    timeout: float | None,
    *,
    to_tier: bool,
    offsets_only: bool,
    overwrite: bool,
) -> HandedOver:
    """Move a group, to the tier or back.

    Args:
        bootstrap: of a node; the addresses that nodes advertise unless given.
        file: client settings for nodes.
        timeout: how long to wait for nodes, in seconds.

    Raises:
        CommandFailed: no node is there.
        ConfigError, KafkaError, OSError: it cannot be moved.
    """
    from sharecore.admin.handing_over import Side, hand_over
    from sharecore.client.settings import connection_settings_among, read_connection_settings
    from sharecore.client.wire.transport import Transport

    if bootstrap is None:
        status = await operator.status()
        addresses = [
            f"{host}:{port}" for node in status.nodes for host, port in list(node.endpoints.values())[:1]
        ]
        if not addresses:
            raise CommandFailed("no node of the tier is there: start one first")
        bootstrap = ",".join(addresses)
    settings = Cluster(bootstrap, file=file, timeout=timeout).client_settings()
    upstream = Transport(
        read_connection_settings(connection_settings_among(dict(operator.config.upstream_settings)))
    )
    node = Transport(read_connection_settings(connection_settings_among(settings)))
    try:
        sides = Side(upstream, _UPSTREAM), Side(node, _TIER)
        source, target = sides if to_tier else sides[::-1]
        return await hand_over(source, target, group_id, offsets_only=offsets_only, overwrite=overwrite)
    finally:
        await upstream.close()
        await node.close()


def print_result(group_id: str, done: HandedOver, *, to_tier: bool, offsets_only: bool) -> None:
    """Print the moved partitions, one per line."""
    there, here = (_TIER, _UPSTREAM) if to_tier else (_UPSTREAM, _TIER)
    if done.already:
        typer.echo(f"group {group_id} is at {there} already; {here} has none of that name")
        return
    for partition, state in sorted(done.states.items()):
        behind = sum(last - first + 1 for first, last, *_ in state.batches)
        more = "" if offsets_only else f", and the state of {behind} records behind it"
        typer.echo(f"{partition}: start offset {state.start_offset}{more}")
    for partition in done.not_begun:
        typer.echo(f"{partition}: no record was taken yet; starts where share.auto.offset.reset says")
    for name, value in done.settings.items():
        typer.echo(f"setting {name}={value}")
    for name, error in done.refused_settings.items():
        typer.echo(f"setting {name} was not taken: {error}")
    if offsets_only:
        typer.echo("records that were acknowledged behind a start offset are delivered again")
    typer.echo(f"group {group_id} is at {there}, and was deleted at {here}")
