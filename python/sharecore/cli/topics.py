"""`sharecore topics`: topics of any Kafka cluster, and which share groups read them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import (
    Cluster,
    FileBesideConfig,
    Settings,
    SettingsFile,
    Timeout,
    Value,
    administered,
    key_values,
)
from sharecore.cli.clients import (
    BOOTSTRAP,
    Bootstrap,
    CommandFailed,
    UsageFailed,
    failures_in_one_line,
)
from sharecore.cli.tables import Output, known, print_json, show, show_list
from sharecore.cli.typers import commands

if TYPE_CHECKING:
    from sharecore.admin.overview import GroupOverview
    from sharecore.admin.topics import TopicAdmin, TopicDescription

topics = commands("Create, list, describe, alter and delete topics, here or on any Kafka cluster.")
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]
Topics = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Names of topics.")]
Configs = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer evaluates the annotation
    typer.Option("--config", metavar="KEY=VALUE", help="A setting of the topic; may be repeated."),
]


@topics.command("list", short_help="List the topics.")
def list_topics(
    internal: Annotated[bool, typer.Option("--internal", help="Include internal topics.")] = False,
    output: Output = "table",
    bootstrap: Bootstrap = BOOTSTRAP,
    settings: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """List the topics with their partitions and replicas."""
    found = _run(Cluster(bootstrap, settings, command_config, timeout), lambda admin: admin.list_topics())
    show_list(
        output,
        {"topic": "TOPIC", "partitions": "PARTITIONS", "replicationFactor": "REPLICATION FACTOR"},
        [
            (each.name, each.partitions, each.replication_factor)
            for each in found
            if internal or not (each.internal or each.name.startswith("__"))
        ],
    )


@topics.command("create", short_help="Create topics.")
def create(
    topic: Topics,
    partitions: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--partitions", min=1, metavar="N", help="[default: the broker's num.partitions]"),
    ] = None,
    replication_factor: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--replication-factor", min=1, metavar="N", help="[default: the broker's]"),
    ] = None,
    config: Configs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave existing topics unchanged.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    settings: Settings = None,
    command_config: FileBesideConfig = None,
    timeout: Timeout = None,
) -> None:
    """Create topics.

    \b
    sharecore topics create jobs --partitions 6 --config retention.ms=604800000
    """
    from sharecore.errors import ErrorCode, KafkaError

    with failures_in_one_line():
        configs = key_values(config or [], "--config")

    async def work(admin: TopicAdmin, name: str) -> str:
        try:
            await admin.create(
                name,
                partitions=partitions or -1,
                replication_factor=replication_factor or -1,
                configs=configs,
            )
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS or not if_not_exists:
                raise
            return "exists already"
        return "created"

    _each(topic, Cluster(bootstrap, settings, command_config, timeout), work)


@topics.command("describe", short_help="Show a topic, and the share groups that read it.")
def describe(
    topic: Topic,
    output: Output = "table",
    bootstrap: Bootstrap = BOOTSTRAP,
    settings: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Show a topic: partitions, non-default settings, and the lag of the share groups that read it."""
    found = _run(Cluster(bootstrap, settings, command_config, timeout), lambda admin: admin.describe(topic))
    if output == "json":
        print_json(_fields(found))
    else:
        _show(found)


@topics.command("alter", short_help="Change a topic's partitions or settings.")
def alter(
    topic: Topic,
    partitions: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--partitions", min=1, metavar="N", help="New number of partitions; cannot be lowered."),
    ] = None,
    config: Configs = None,
    unset: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--unset", metavar="KEY", help="Reset a setting to its default; may be repeated."),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    settings: Settings = None,
    command_config: FileBesideConfig = None,
    timeout: Timeout = None,
) -> None:
    """Change a topic: more partitions, settings.

    \b
    sharecore topics alter jobs --partitions 12
    sharecore topics alter jobs --config retention.ms=-1 --unset max.message.bytes
    """
    with failures_in_one_line():
        if partitions is None and not config and not unset:
            raise UsageFailed("nothing to change: give --partitions, --config or --unset")
        values = key_values(config or [], "--config")

    async def work(admin: TopicAdmin, name: str) -> str:
        if values or unset:
            await admin.alter_configs(name, values, unset=unset or ())
        if partitions is not None:
            await admin.grow(name, partitions)
        return "changed"

    _each([topic], Cluster(bootstrap, settings, command_config, timeout), work)


@topics.command("delete", short_help="Delete topics with their records.")
def delete(
    topic: Topics,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Ignore missing topics.")] = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    settings: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Delete topics with their records and the groups' offsets in them."""
    from sharecore.errors import ErrorCode, KafkaError

    async def work(admin: TopicAdmin, name: str) -> str:
        try:
            await admin.delete(name)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not if_exists:
                raise
            return "does not exist"
        return "deleted"

    _each(topic, Cluster(bootstrap, settings, command_config, timeout), work)


def _run(
    cluster: Cluster,
    act: Callable[[TopicAdmin], Coroutine[object, None, Value]],
) -> Value:
    with failures_in_one_line():
        from sharecore.admin.topics import TopicAdmin

        return administered(TopicAdmin, cluster, act)


def _each(
    names: list[str],
    cluster: Cluster,
    act: Callable[[TopicAdmin, str], Coroutine[object, None, str]],
) -> None:
    """Act on each topic and print a line; end the program if any failed."""
    from sharecore.errors import KafkaError

    async def work(admin: TopicAdmin) -> list[tuple[str, str, bool]]:
        results = []
        for name in names:
            try:
                results.append((name, await act(admin, name), True))
            except KafkaError as error:  # noqa: PERF203
                results.append((name, str(error), False))
        return results

    results = _run(cluster, work)
    for name, result, succeeded in results:
        if succeeded:
            typer.echo(f"{name}: {result}")
    with failures_in_one_line():
        failed = [f"{name}: {result}" for name, result, succeeded in results if not succeeded]
        if failed:
            raise CommandFailed("\nsharecore: ".join(failed))


def _show(found: TopicDescription) -> None:
    listing = found.listing
    typer.echo(f"topic {listing.name}: id {_id(found)}, replication factor {listing.replication_factor}\n")
    show(
        ["PARTITION", "LEADER", "REPLICAS", "IN SYNC", "START", "END"],
        [
            [
                str(part.index),
                str(part.leader) if part.leader >= 0 else "none",
                " ".join(map(str, part.replicas)),
                " ".join(map(str, part.in_sync)),
                known(part.start),
                known(part.end),
            ]
            for part in found.partitions
        ],
    )
    typer.echo()
    for entry in found.configs:
        typer.echo(f"{entry.name}={'-' if entry.value is None else entry.value}")
    if not found.configs:
        typer.echo("no settings of its own")
    typer.echo()
    if found.groups:
        show(
            ["SHARE GROUP", "STATE", "MEMBERS", "LAG"],
            [
                [group.group_id, group.state, str(len(group.members)), _lag(found, group)]
                for group in found.groups
            ],
        )
    elif found.groups is None:
        typer.echo("share groups: not known, as the cluster has none or does not list them")
    else:
        typer.echo("no share group reads it")


def _lag(found: TopicDescription, group: GroupOverview) -> str:
    """Return the known lag of a group, without the partitions that it has not begun to read."""
    name = found.listing.name
    if (lag := group.lag(name)) is not None:
        return str(lag)
    known_in = sum(each.lag >= 0 for each in group.positions.get(name, {}).values())
    if not known_in:
        return "-"
    return f"{group.known_lag(name)} in {known_in} of {len(found.partitions)} partitions"


def _id(found: TopicDescription) -> str:
    from sharecore.sharestate.keys import topic_id_text

    return topic_id_text(found.listing.topic_id)


def _fields(found: TopicDescription) -> dict[str, object]:
    name = found.listing.name
    groups = None
    if found.groups is not None:
        groups = [
            {
                "group": group.group_id,
                "state": group.state,
                "members": len(group.members),
                "lag": group.lag(name),
                "partitions": [
                    {"partition": index, "startOffset": each.start_offset, "lag": each.lag}
                    for index, each in sorted(group.positions[name].items())
                ],
            }
            for group in found.groups
        ]
    return {
        "topic": name,
        "topicId": _id(found),
        "replicationFactor": found.listing.replication_factor,
        "internal": found.listing.internal,
        "partitions": [
            {
                "partition": part.index,
                "leader": part.leader,
                "replicas": [*part.replicas],
                "inSync": [*part.in_sync],
                "startOffset": part.start,
                "endOffset": part.end,
            }
            for part in found.partitions
        ],
        "configs": {entry.name: entry.value for entry in found.configs},
        "shareGroups": groups,
    }
