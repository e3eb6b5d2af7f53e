"""`sharecore tier`: the nodes in front of an existing cluster, and their slots."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional, TypeVar

import typer

from sharecore.cli.admin import FileBesideOwn, timeout_option, with_timeout
from sharecore.cli.clients import VARIABLE, CommandFailed, ctrl_c_ends, failures_in_one_line
from sharecore.cli.serve import Assignments, behind, gather, read_config
from sharecore.cli.tables import Output, known, print_json, show
from sharecore.cli.typers import commands
from sharecore.config.tier import UPSTREAM_PREFIX
from sharecore.errors import ConfigError, KafkaError
from sharecore.plural import counted

if TYPE_CHECKING:
    from sharecore.admin.handing_over import HandedOver
    from sharecore.tier.operation.operator import Operator, Status
    from sharecore.tier.operation.repair import Finding

Answer = TypeVar("Answer")

EXIT_DAMAGED = 1
API_TIMEOUT_MS = 30_000
"""How long the operator's requests are tried: `tier.operator`, which takes long to import, has the same."""

tier = commands("Manage the tier nodes in front of an existing cluster.")

Upstream = Annotated[
    Optional[str],  # noqa: UP045 - typer evaluates the annotation
    typer.Option(
        "--upstream",
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,...",
        help="The upstream cluster, as for `serve`; SHARECORE_BOOTSTRAP_SERVER unless it is given.",
    ),
]
UpstreamSettings = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "-X", metavar="KEY=VALUE", help="A setting of the connection to that cluster; may be repeated."
    ),
]
Config = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--config", "-c", metavar="FILE", help="The server.properties of a node."),
]
AsJson = Annotated[bool, typer.Option("--json", hidden=True, help="As --output json.")]
SettlingTimeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0, help="How long to wait for the result; 0: do not wait.")
]
Timeout = Annotated[Optional[float], timeout_option(API_TIMEOUT_MS)]  # noqa: UP045
GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="The share group.")]
NodeAddress = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--node",
        metavar="HOST:PORT",
        help="A node of the tier; all of them unless given.",
    ),
]
OffsetsOnly = Annotated[
    bool, typer.Option("--offsets-only", help="Move only start offsets; needs no CLUSTER_ACTION right.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing group of that name.")]
Undo = Annotated[bool, typer.Option("--undo", help="Undo an earlier command.")]


@tier.callback()
def options() -> None:
    """Manage the tier nodes in front of an existing cluster.

    All of it is read from the cluster behind the tier, and passed to nodes through it: with the same
    --upstream, -X and -c as `sharecore serve`, and the rights of a node's user.
    """


@tier.command("status", short_help="Show nodes and slots.")
def status(
    upstream: Upstream = None,
    upstream_settings: UpstreamSettings = None,
    config: Config = None,
    settings: Assignments = None,
    slots: Annotated[bool, typer.Option("--slots", help="Also print one line per slot.")] = False,
    output: Output = "table",
    as_json: AsJson = False,
    timeout: Timeout = None,
) -> None:
    """Show the nodes of a tier and how many slots each owns; with --slots also the owner of each slot.

    \b
    sharecore tier status --upstream kafka-1:9092
    sharecore tier status -c node.properties --slots
    sharecore tier status -c node.properties --output json | jq '.slots[] | select(.owner == null)'

    RECORDS is the number of state records of a slot: a node that takes the slot over reads that many.

    \b
    exit status 0  every slot has an owner and enough replicas upstream
                1  a slot lacks them, there is no node, or the tier's topics have wrong settings
    """
    found = _run(upstream, upstream_settings, config, settings, lambda operator: operator.status(), timeout)
    ailing = _ailing(found)
    if as_json or output == "json":
        print_json(_as_dict(found))
    else:
        _show(found, slots=slots)
        for line in (*ailing, *(str(each) for each in found.wrong if not each.is_ours)):
            typer.echo(line)
    if ailing:
        raise typer.Exit(1)


@tier.command("move", short_help="Move a slot, or a partition's slot, to a node.")
def move(
    what: Annotated[str, typer.Argument(metavar="SLOT|TOPIC[:PARTITION]", help="What is to move.")],
    to: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--to", metavar="NODE", min=0, help="The node.id of the new owner."),
    ] = None,
    undo: Undo = False,
    timeout: SettlingTimeout = 30.0,
    upstream: Upstream = None,
    upstream_settings: UpstreamSettings = None,
    config: Config = None,
    settings: Assignments = None,
) -> None:
    """Move a slot to a node, or the slots of a topic's partitions. No record is redelivered if members
    acknowledge in time.

    \b
    sharecore tier move 5 --to 2 --upstream kafka-1:9092
    sharecore tier move orders:0 --to 2 -c node.properties
    sharecore tier move orders --undo -c node.properties       let the tier choose

    The slot stays there while the node is up, and returns with it. A slot holds partitions of many topics,
    and groups: all of them move.
    """
    with failures_in_one_line():
        if undo == (to is not None):
            raise CommandFailed("either --to NODE or --undo")

    async def work(operator: Operator) -> str:
        from sharecore.tier.settings.placement_rules import Pin

        slots = await operator.find_slots(what)
        if to is not None:
            _check_node(await operator.status(), to)
        await operator.placement.pin([Pin(slot, to) for slot in slots])
        names = f"slot{'s'[: len(slots) > 1]} {', '.join(map(str, slots))}"
        if to is None:
            return f"{names}: not pinned to a node any more"
        there = timeout and await operator.wait(
            lambda status: all(status.slots[slot].owner == to for slot in slots), timeout
        )
        return f"{names}: {'on' if there else 'moving to'} node {to}"

    typer.echo(_run(upstream, upstream_settings, config, settings, work))


@tier.command("drain", short_help="Move all slots away from a node.")
def drain(
    node: Annotated[int, typer.Argument(metavar="NODE", min=0, help="The node.id of the node.")],
    undo: Undo = False,
    timeout: SettlingTimeout = 60.0,
    upstream: Upstream = None,
    upstream_settings: UpstreamSettings = None,
    config: Config = None,
    settings: Assignments = None,
) -> None:
    """Move all slots of a node to the others, one by one as members acknowledge their records. The node
    stays in the tier and answers clients, but gets no slots until --undo, even after a restart. (On
    SIGTERM a node drains itself before it exits.)

    \b
    sharecore tier drain 2 --upstream kafka-1:9092
    sharecore tier drain 2 --undo -c node.properties

    \b
    exit status 0  the node has no slots
                1  it still had some when the time ran out, or there is no other node
    """

    async def work(operator: Operator) -> tuple[bool, str]:
        await operator.load()
        if not undo:
            before = await operator.status()
            _check_node(before, node)
            if all(each.leaving or each.node == node for each in before.nodes):
                raise CommandFailed(f"node {node} is the only one that may own slots: start another first")
        await operator.placement.drain(node, drained=not undo)
        if undo:
            return True, f"node {node} takes slots again"
        if timeout and await operator.wait(lambda status: not _slots_of(status, node), timeout):
            return True, f"node {node} has no slots"
        left = _slots_of(await operator.status(), node)
        return not timeout, f"node {node} is draining; it has {left} slots left"

    done, text = _run(upstream, upstream_settings, config, settings, work)
    typer.echo(text)
    if not done:
        raise typer.Exit(1)


@tier.command("repair", short_help="Check the state topic and repair it.")
def repair(
    yes: Annotated[
        bool, typer.Option("--yes", help="Repair; without this option problems are only reported.")
    ] = False,
    upstream: Upstream = None,
    upstream_settings: UpstreamSettings = None,
    config: Config = None,
    settings: Assignments = None,
    timeout: Timeout = None,
) -> None:
    """Read all of the state topic and report what is wrong; with --yes, repair it. Stop the nodes first,
    unless only settings are wrong.

    \b
    sharecore tier repair --upstream kafka-1:9092
    sharecore tier repair --upstream kafka-1:9092 --yes

    It finds unreadable records, gaps, and records without a preceding claim, as compaction leaves them;
    settings of the state or settings topic that make the cluster delete needed records, such as retention.ms;
    a missing topic. Repair rewrites the readable records. Acknowledgements in lost records are undone: those
    records are redelivered. A missing topic is recreated, and all groups start at their reset policy. A
    truncation by an unclean election needs no repair: nodes continue with what is left.

    \b
    exit status 0  nothing is wrong, or it was repaired
                1  something is wrong; with --yes: could not be repaired
    """

    async def work(operator: Operator) -> bool:
        from sharecore.tier.operation import repair as repairs
        from sharecore.tier.settings.own_topics import find_wrong, set_right

        if await repairs.is_missing(operator):
            typer.echo(
                f"{operator.topic} is missing, and with it the share state: once it is recreated, each group "
                "starts at its share.auto.offset.reset. Settings are in another topic."
            )
            if yes:
                await repairs.make_topic(operator)
                typer.echo(f"{operator.topic} was created; running nodes take their slots by themselves")
            else:
                typer.echo("create it with: sharecore tier repair --yes")
            return yes
        topic = await operator.load()
        whole = True
        wrong = await find_wrong(operator.admin, operator.config)
        for each in wrong:
            typer.echo(str(each))
        ours = [each for each in wrong if each.is_ours]
        whole = not ours
        findings = [await repairs.look(operator, slot) for slot in range(len(topic.partitions))]
        damaged = [each for each in findings if not each.is_whole]
        for finding in damaged:
            typer.echo(_shown(finding))
        records = sum(each.records for each in findings)
        if not damaged and whole:
            typer.echo(
                f"{operator.topic} is intact: {counted(len(findings), 'slot')}, {counted(records, 'record')}"
            )
            return True
        if not yes:
            typer.echo("to repair, stop the nodes and run: sharecore tier repair --yes")
            return False
        _, nodes, _, _ = await operator.members()
        if nodes and (damaged or any(each.is_fatal for each in ours)):
            running = f"nodes {', '.join(sorted(nodes, key=int))} are running or stopped a moment ago"
            raise CommandFailed(f"{running}: stop them, and retry once their session has expired")
        for each, error in await set_right(operator.admin, ours):
            raise CommandFailed(f"{each.topic}: {each.name} could not be set to {each.wanted}: {error}")
        for each in ours:
            typer.echo(f"{each.topic}: {each.name} was set to {each.wanted}")
        for finding in damaged:
            await repairs.rewrite(operator, finding)
            typer.echo(f"slot {finding.slot}: {len(finding.kept)} records were rewritten")
        return True

    if not _run(upstream, upstream_settings, config, settings, work, timeout):
        raise typer.Exit(EXIT_DAMAGED)


@tier.command("adopt", short_help="Move a share group from the upstream cluster to the tier.")
def adopt(
    group: GroupName,
    node: NodeAddress = None,
    command_config: FileBesideOwn = None,
    offsets_only: OffsetsOnly = False,
    overwrite: Overwrite = False,
    upstream: Upstream = None,
    upstream_settings: UpstreamSettings = None,
    config: Config = None,
    settings: Assignments = None,
    timeout: Timeout = None,
) -> None:
    """Move a share group from the upstream cluster (Apache Kafka 4.2 and newer) to the tier: start
    offsets, record states and delivery counts, and the group's settings. Then delete it upstream.

    \b
    sharecore tier adopt workers --upstream kafka-1:9092
    sharecore tier adopt workers -c node.properties --command-config client.properties

    Refused while the group has members on either side. If it is interrupted, run it again.
    """
    run = partial(_run, upstream, upstream_settings, config, settings, timeout=timeout)
    how = {"to_tier": True, "offsets_only": offsets_only}
    _move(run, group, node, command_config, timeout, overwrite, how)


@tier.command("return", short_help="Move a share group from the tier to the upstream cluster.")
def return_(
    group: GroupName,
    node: NodeAddress = None,
    command_config: FileBesideOwn = None,
    offsets_only: OffsetsOnly = False,
    overwrite: Overwrite = False,
    upstream: Upstream = None,
    upstream_settings: UpstreamSettings = None,
    config: Config = None,
    settings: Assignments = None,
    timeout: Timeout = None,
) -> None:
    """Move a share group from the tier to the upstream cluster (Apache Kafka 4.2 and newer), the reverse
    of `adopt`. Then delete it at the tier.

    \b
    sharecore tier return workers --upstream kafka-1:9092
    """
    run = partial(_run, upstream, upstream_settings, config, settings, timeout=timeout)
    how = {"to_tier": False, "offsets_only": offsets_only}
    _move(run, group, node, command_config, timeout, overwrite, how)


def _move(
    run: Callable[[Callable[[Operator], Awaitable[HandedOver]]], HandedOver],
    group: str,
    node: str | None,
    file: Path | None,
    timeout: float | None,
    overwrite: bool,
    how: dict[str, bool],
) -> None:
    from sharecore.cli.tier_handover import move_group, print_result

    async def work(operator: Operator) -> HandedOver:
        return await move_group(operator, group, node, file, timeout, overwrite=overwrite, **how)

    print_result(group, run(work), **how)


def _run(
    upstream: str | None,
    upstream_settings: list[str] | None,
    config: Path | None,
    settings: list[str] | None,
    work: Callable[[Operator], Awaitable[Answer]],
    timeout: float | None = None,
) -> Answer:
    """Return the result of work on a tier; end the program with one line if it fails.

    Args:
        timeout: how long to wait for brokers, in seconds.
    """
    from sharecore.tier.operation.operator import Operator

    async def main() -> Answer:
        properties = gather(config, settings or [], environment=os.environ)
        named = f"{UPSTREAM_PREFIX}bootstrap.servers" in properties
        address = upstream or (None if named else os.environ.get(VARIABLE) or None)
        properties |= behind(address, upstream_settings or [])
        node = read_config(properties)
        node = replace(node, upstream_settings=with_timeout(node.upstream_settings, timeout))
        async with Operator.connect(node) as operator:
            return await work(operator)

    # errors that are retried are reported at the end, or not at all
    logging.getLogger("sharecore").addHandler(logging.NullHandler())
    with failures_in_one_line():
        try:
            with ctrl_c_ends():
                return asyncio.run(main())
        except (ConfigError, KafkaError, OSError) as error:
            raise CommandFailed(str(error)) from None


def _check_node(status: Status, node: int) -> None:
    there = [each.node for each in status.nodes]
    if node not in there:
        raise CommandFailed(f"unknown node {node}; nodes: {', '.join(map(str, there)) or 'none'}")


def _slots_of(status: Status, node: int) -> int:
    return sum(each.slots for each in status.nodes if each.node == node)


def _ailing(status: Status) -> list[str]:
    """Return the problems, as lines."""
    wrong = [str(each) for each in status.wrong if each.is_ours]
    if not status.nodes:
        return ["no node is running", *wrong]
    ownerless = [each.slot for each in status.slots if each.owner is None]
    behind_ = [each.slot for each in status.slots if each.leader < 0 or each.in_sync[0] < each.in_sync[1]]
    lines = []
    if ownerless:
        lines.append(f"without an owner: slots {_list(ownerless)}")
    if behind_:
        lines.append(f"upstream replicas not in sync: slots {_list(behind_)}")
    return [*lines, *wrong]


def _list(slots: list[int]) -> str:
    shown = ", ".join(map(str, slots[:20]))
    return shown if len(slots) <= 20 else f"{shown} and {len(slots) - 20} more"


def _show(status: Status, *, slots: bool) -> None:
    records = sum(each.end - each.start for each in status.slots)
    typer.echo(
        f"{status.topic} at cluster {status.cluster_id} ({counted(status.brokers, 'broker')}): "
        f"{counted(len(status.slots), 'slot')}, {counted(records, 'record')}, "
        f"the nodes' group is {status.state}"
    )
    if status.nodes:
        rows = [
            [
                str(each.node),
                ", ".join(f"{host}:{port}" for host, port in each.endpoints.values()),
                each.rack or "-",
                str(each.slots),
                str(each.gets),
                str(each.gives_up),
                "drained" if each.node in status.drained else "leaving" if each.leaving else "active",
            ]
            for each in status.nodes
        ]
        typer.echo()
        show(["NODE", "ADDRESS", "RACK", "SLOTS", "INCOMING", "OUTGOING", "STATE"], rows)
    if slots:
        typer.echo()
        show(
            ["SLOT", "NODE", "EPOCH", "NEXT", "PINNED", "RECORDS", "LEADER", "IN SYNC"],
            [
                [
                    str(each.slot),
                    known(each.owner),
                    str(each.epoch),
                    known(each.next),
                    known(each.pin),
                    str(each.end - each.start),
                    str(each.leader),
                    f"{each.in_sync[0]}/{each.in_sync[1]}",
                ]
                for each in status.slots
            ],
        )


def _as_dict(status: Status) -> dict[str, object]:
    return status._asdict() | {
        "nodes": [each._asdict() for each in status.nodes],
        "slots": [each._asdict() for each in status.slots],
        "wrong": [each._asdict() for each in status.wrong],
    }


def _shown(finding: Finding) -> str:
    parts = [
        f"{finding.lost} records are missing" if finding.lost else "",
        f"{finding.unclaimed} records have no claim before them" if finding.unclaimed else "",
        *finding.unreadable[:3],
    ]
    return f"slot {finding.slot}: {'; '.join(part for part in parts if part)}"
