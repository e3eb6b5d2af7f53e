"""`sharecore groups`: list, describe and change groups."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Optional

import click
import typer
from typer.core import TyperGroup

from sharecore.cli.admin import (
    Settings,
    SettingsBesideSet,
    SettingsFile,
    Timeout,
    admin_beside,
    key_values,
)
from sharecore.cli.clients import (
    BOOTSTRAP,
    Bootstrap,
    BootstrapOfOne,
    UsageFailed,
    failures_in_one_line,
)
from sharecore.cli.pausing import pause, resume
from sharecore.cli.peek import peek
from sharecore.cli.tables import Output, known, print_json, show, show_list
from sharecore.cli.times import FORMAT, Local, Time, read_time, show_time
from sharecore.cli.typers import commands
from sharecore.plural import counted

if TYPE_CHECKING:
    from sharecore.admin import (
        BlockingAdmin,
        PartitionOffset,
        ResetPlan,
        ShareGroup,
        Target,
        TopicPartition,
    )
    from sharecore.admin.waiting import Waiting

TYPES = ("classic", "consumer", "share", "streams")
_FORCED_TRIES = 5
STATES = (
    "Empty",
    "Stable",
    "Dead",
    "Assigning",
    "Reconciling",
    "PreparingRebalance",
    "CompletingRebalance",
    "NotReady",
)
"""Kafka's names for the states of groups of all types."""
Group = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the share group.")]
Topics = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--topic", metavar="TOPIC[:0,1,2]", help="A topic, or partitions of it; may be repeated."),
]


class _DescribesByDefault(TyperGroup):
    """`sharecore groups NAME` stands for `sharecore groups describe NAME`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["describe", *args]
        return super().resolve_command(ctx, args)


groups = commands(
    "List, describe, reset and delete share groups, here or on Apache Kafka 4.2 and later.",
    cls=_DescribesByDefault,
    no_args_is_help=False,
)


@groups.callback(invoke_without_command=True)
def default(
    context: typer.Context,
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """List, describe, reset and delete share groups; without a command, list all groups."""
    context.obj = (bootstrap, setting, command_config)
    if context.invoked_subcommand is None:
        list_groups(context)


@groups.command("list", short_help="List the groups.")
def list_groups(
    context: typer.Context,
    kind: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--type", metavar="TYPE", help=f"{', '.join(TYPES)}; may be repeated."),
    ] = None,
    state: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--state", metavar="STATE", help=f"{', '.join(STATES)}; may be repeated."),
    ] = None,
    output: Output = "table",
    timeout: Timeout = None,
    bootstrap: BootstrapOfOne = "",
    setting: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """List the groups of all types, or of the given ones, and which share groups are paused.

    Paused is "unknown" for groups without the right DESCRIBE_CONFIGS.
    """
    with failures_in_one_line():
        types, states = _chosen("--type", kind, TYPES), _chosen("--state", state, STATES)
    with admin_beside(context, bootstrap, setting, command_config, timeout) as admin:
        found = admin.list_groups(types=types, states=states)
        pauses = admin.pauses(each.group_id for each in found if each.type.lower() == "share")
    now_ms = round(time.time() * 1000)
    paused = {
        name: "unknown" if pause is None else pause.describe(now_ms).removeprefix("paused ")
        for name, pause in pauses.items()
    }
    show_list(
        output,
        {"group": "GROUP", "type": "TYPE", "state": "STATE", "paused": "PAUSED"},
        [(each.group_id, each.type, each.state, paused.get(each.group_id) or None) for each in found],
    )


@groups.command("describe", short_help="Show members, offsets and lag of share groups.")
def describe(
    context: typer.Context,
    group: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="[GROUP]...", help="Names of share groups."),
    ] = None,
    all_groups: Annotated[bool, typer.Option("--all-groups", help="All share groups.")] = False,
    output: Output = "table",
    timeout: Timeout = None,
    bootstrap: BootstrapOfOne = "",
    setting: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """Show share groups: their members, and offset and lag in each partition."""
    from sharecore.cli.group_output import describe_group, group_fields

    with failures_in_one_line():
        if bool(group) == all_groups:
            raise UsageFailed("name share groups or use --all-groups, not both")
    with admin_beside(context, bootstrap, setting, command_config, timeout) as admin:
        names = group or [each.group_id for each in admin.list_groups()]
        found = [_look_at(admin, name) for name in names]
    if output == "json":
        print_json([group_fields(*each[:3]) for each in found])
        return
    for number, each in enumerate(found):
        if number:
            typer.echo()
        describe_group(*each)


def _look_at(admin: BlockingAdmin, name: str) -> tuple[ShareGroup, list[PartitionOffset], Waiting, str]:
    described, offsets = admin.describe(name), admin.offsets(name)
    waiting = admin.waiting_of(name, [each.partition for each in offsets if each.lag != 0])
    return described, offsets, waiting, _dead_letters(admin, name)


def _dead_letters(admin: BlockingAdmin, group: str) -> str:
    """Return the lines about a group's dead-letter topic and its records; empty without one."""
    from sharecore.client.dead_letters import TOPIC_NAME
    from sharecore.errors import KafkaError

    names = (
        TOPIC_NAME,
        "sharecore.dead.letters.written",
        "sharecore.dead.letters.missing",
        "sharecore.dead.letters.trouble",
    )
    try:
        found = {name: entry.value for name, entry in admin.configs(group, names).items()}
    except KafkaError:
        return ""  # the reasons why records wait are then missing too, and say so
    topic, written, missing, trouble = (found.get(name) for name in names)
    if not topic and missing in (None, "0"):
        return ""
    text = f"dead letters go to {topic}" if topic else "dead letters go nowhere"
    if written is not None and missing is not None:
        text += (
            f": {written} written since the broker started, {missing} records archived without their letter"
        )
    return f"{text}\nno dead letter can be written now: {trouble}" if trouble else text


groups.command("peek", short_help="Show a share group's next records without acquiring them.")(peek)
groups.command("pause", short_help="Pause delivery to share groups.")(pause)
groups.command("resume", short_help="Resume delivery to share groups.")(resume)


@groups.command("reset-offsets", hidden=True)
@groups.command("reset", short_help="Reset a share group's offsets.")
def reset(
    context: typer.Context,
    group: Group,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the first record.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end of the log.")] = False,
    to_datetime: Annotated[
        Time,
        typer.Option(
            "--to-datetime",
            metavar=FORMAT,
            help="To the first record at or after this time; UTC unless a zone such as +02:00 is given.",
        ),
    ] = None,
    to_offset: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--to-offset", min=0, help="To this offset, or the nearest one in the log."),
    ] = None,
    topic: Topics = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Apply the change; without this option it is only shown.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the change; this is the default.")
    ] = False,
    local: Local = False,
    output: Output = "table",
    timeout: Timeout = None,
    bootstrap: BootstrapOfOne = "",
    setting: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """Reset a share group's offsets, everywhere or in the given topics. The group must have no members."""
    with failures_in_one_line():
        if execute and dry_run:
            raise UsageFailed("--execute and --dry-run exclude each other")
    with admin_beside(context, bootstrap, setting, command_config, timeout) as admin:
        target = _target(to_earliest, to_latest, to_datetime, to_offset)
        topics, partitions = _partitions(topic or [])
        text = output == "table"
        if to_datetime is not None and text:
            typer.echo(f"to the first records that are not older than {show_time(target.value, local=local)}")
        plan = admin.plan_reset(group, target, topics=topics, partitions=partitions)
        _show_plan(plan, output)
        if not execute:
            if text:
                typer.echo("\nnothing has changed yet: --execute does it")
            return
        result = admin.reset(plan)
    for change, error in result.failed:
        typer.echo(f"{change.partition}: {error}", err=True)
    if text:
        typer.echo(f"\n{len(result.done)} of {len(plan.changes)} partitions reset")
    if result.failed:
        raise typer.Exit(1)


@groups.command("delete-offsets", short_help="Delete a share group's offsets in topics.")
def delete_offsets(
    context: typer.Context,
    group: Group,
    topic: Annotated[list[str], typer.Option("--topic", metavar="TOPIC", help="May be repeated.")],
    output: Output = "table",
    timeout: Timeout = None,
    bootstrap: BootstrapOfOne = "",
    setting: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """Delete a share group's offsets in whole topics. The group must have no members."""
    with admin_beside(context, bootstrap, setting, command_config, timeout) as admin:
        errors = admin.delete_offsets(group, topic)
    rows = [[name, str(error or "deleted")] for name, error in sorted(errors.items())]
    show_list(output, {"topic": "TOPIC", "result": "RESULT"}, rows)
    if any(errors.values()):
        raise typer.Exit(1)


@groups.command("delete", short_help="Delete groups.")
def delete(
    context: typer.Context,
    group: Annotated[list[str], typer.Argument(metavar="GROUP...", help="Names of groups without members.")],
    kind: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Groups of this type, with their committed offsets; may be repeated.  [default: share]",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Remove remaining members first.")] = False,
    output: Output = "table",
    timeout: Timeout = None,
    bootstrap: BootstrapOfOne = "",
    setting: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """Delete share groups with their state, or groups of the given types.

    A group with members is not deleted; its members are printed. --force removes them from the group first:
    stop their processes before, or they rejoin.
    """
    from sharecore.errors import KafkaError

    with failures_in_one_line():
        types = _chosen("--type", kind, TYPES) or ["share"]
    rows, failed = [], False
    with admin_beside(context, bootstrap, setting, command_config, timeout) as admin:
        for name in group:
            try:
                deleted, result = _delete(admin, name, types, force=force)
            except KafkaError as error:
                deleted, result = False, str(error)
            rows.append([name, result])
            failed = failed or not deleted
    show_list(output, {"group": "GROUP", "result": "RESULT"}, rows)
    if failed:
        raise typer.Exit(1)


def _delete(admin: BlockingAdmin, name: str, types: list[str], *, force: bool) -> tuple[bool, str]:
    """Delete a group; return whether it is deleted, and the message."""
    from sharecore.errors import ErrorCode, KafkaError

    kind = admin.group_type(name)
    if kind is not None and kind not in types:
        return False, f"not deleted: it is a {kind} group; --type {kind} allows that"
    removed = ""
    for _ in range(_FORCED_TRIES):
        try:
            admin.delete_group(name)
        except KafkaError as error:
            if error.code is not ErrorCode.NON_EMPTY_GROUP or kind is None:
                raise
        else:
            return True, f"deleted{removed}"
        members = admin.group_members(name, kind)
        who = f"{counted(len(members), 'member')}: {', '.join(map(str, members))}"
        if not force:
            return False, f"NON_EMPTY_GROUP: {who}; stop them first, or --force removes them"
        admin.remove_members(name, kind, members)
        removed = f", after these were removed: {who}" if members else removed
    return False, f"NON_EMPTY_GROUP: members join again: {who}; stop them first"


@groups.command("config", short_help="Show or change a group's configuration.")
def config(
    context: typer.Context,
    group: Group,
    change: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--set", metavar="KEY=VALUE", help="Set a configuration; may be repeated."),
    ] = None,
    unset: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--unset", metavar="KEY", help="Reset a configuration to the broker's default; may be repeated."
        ),
    ] = None,
    output: Output = "table",
    timeout: Timeout = None,
    bootstrap: BootstrapOfOne = "",
    setting: SettingsBesideSet = None,
    command_config: SettingsFile = None,
) -> None:
    """Show a group's configuration, after applying the given changes."""
    with admin_beside(context, bootstrap, setting, command_config, timeout) as admin:
        if change or unset:
            admin.alter_configs(group, key_values(change or [], "--set"), unset=unset or ())
        entries = admin.configs(group)
    rows = [[entry.name, entry.value, "group" if entry.own else "default"] for entry in entries.values()]
    show_list(output, {"key": "KEY", "value": "VALUE", "from": "FROM"}, rows)


@groups.command("dead-letters", short_help="Set up a dead-letter topic for a share group.")
def dead_letters(
    context: typer.Context,
    group: Group,
    topic: Annotated[
        str, typer.Option("--topic", metavar="TOPIC", help="The dead-letter topic, such as dlq.jobs.")
    ],
    create: Annotated[bool, typer.Option("--create", help="Create the topic if it does not exist.")] = False,
    copy: Annotated[
        bool, typer.Option("--copy/--no-copy", help="Copy the original record into the dead-letter record.")
    ] = True,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions",
            metavar="N",
            help="For a new topic; the broker's default if omitted.",
            show_default=False,
        ),
    ] = -1,
    replication_factor: Annotated[
        int,
        typer.Option("--replication-factor", metavar="N", help="Of a new topic.", show_default=False),
    ] = -1,
    timeout: Timeout = None,
    bootstrap: BootstrapOfOne = "",
    setting: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """Set up a dead-letter topic for a share group: permit the topic, create it if asked, configure the
    group.

    Existing settings are kept. If something prevents dead-letter records, the command says what and how to
    fix it.
    """
    with admin_beside(context, bootstrap, setting, command_config, timeout) as admin:
        setup = admin.set_up_dead_letters(
            group,
            topic,
            create=create,
            copy=copy,
            partitions=partitions,
            replication_factor=replication_factor,
        )
    for change in setup.changes:
        typer.echo(change)
    for remark in setup.unchecked:
        typer.echo(f"sharecore: not checked: {remark}", err=True)
    typer.echo(f"dead letters of group {group} go to {topic}")


def _chosen(option: str, given: list[str] | None, known: Sequence[str]) -> list[str]:
    """Return the values of an option in Kafka's spelling, with commas between them or repeated.

    Raises:
        UsageFailed: one that is not known.
    """
    spelling = {name.lower(): name for name in known}
    texts = [part.strip() for text in given or () for part in text.split(",") if part.strip()]
    for text in texts:
        if text.lower() not in spelling:
            raise UsageFailed(f"{option} {text}: unknown; allowed: {', '.join(known)}")
    return [spelling[text.lower()] for text in texts]


def _target(earliest: bool, latest: bool, time: str | None, offset: int | None) -> Target:
    from sharecore.admin import Target

    chosen = [
        target
        for target in (
            Target.earliest() if earliest else None,
            Target.latest() if latest else None,
            Target.at(read_time(time, "--to-datetime")) if time is not None else None,
            Target.offset(offset) if offset is not None else None,
        )
        if target is not None
    ]
    if len(chosen) != 1:
        raise UsageFailed("use one of --to-earliest, --to-latest, --to-datetime and --to-offset")
    return chosen[0]


def _partitions(texts: list[str]) -> tuple[list[str], list[TopicPartition]]:
    """Whole topics, and single partitions."""
    from sharecore.admin import TopicPartition

    topics, partitions = [], []
    for text in texts:
        topic, colon, numbers = text.partition(":")
        if not colon:
            topics.append(topic)
            continue
        for number in numbers.split(","):
            if not number.isdecimal():
                raise UsageFailed(f"--topic {text}: not TOPIC or TOPIC:0,1,2")
            partitions.append(TopicPartition(topic, int(number)))
    return topics, partitions


def _show_plan(plan: ResetPlan, output: str) -> None:
    if output == "json":
        print_json(
            [
                {
                    "topic": each.partition.topic,
                    "partition": each.partition.partition,
                    "startOffset": each.before,
                    "newOffset": each.after,
                }
                for each in plan.changes
            ]
        )
        return
    rows = [[str(each.partition), known(each.before), str(each.after)] for each in plan.changes]
    show(["PARTITION", "START OFFSET", "NEW"], rows)
