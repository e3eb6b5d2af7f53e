"""`sharecore consume`: a member of a share group that settles each record by what it holds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from sharecore.cli.admin import Settings, SettingsFile, confluent_settings
from sharecore.cli.clients import (
    BOOTSTRAP,
    Bootstrap,
    CommandFailed,
    check_clients,
    confluent_failures,
    failures_in_one_line,
    is_refusal,
)

if TYPE_CHECKING:
    from confluent_kafka import Message, ShareConsumer

ANSWER_SECONDS_MAX = 30
Texts = Optional[list[str]]  # noqa: UP045 - typer evaluates the annotation


def consume(
    topic: Annotated[str, typer.Argument()],
    group: Annotated[str, typer.Option("--group", "-g", help="The share group to be a member of.")],
    reject: Annotated[
        Texts, typer.Option(metavar="TEXT", help="Reject records that hold TEXT: they never come back.")
    ] = None,
    release: Annotated[
        Texts, typer.Option(metavar="TEXT", help="Release records that hold TEXT: they come back at once.")
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="A group that is new starts at the first record.")
    ] = False,
    max_records: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--max", "-n", metavar="N", min=1, help="End after N records.  [default: never]"),
    ] = None,
    idle: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(metavar="SECONDS", help="End when nothing came for so long.  [default: never]"),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    settings: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """Take records as a member of a share group: accepted unless told otherwise, each shown on a line."""
    with failures_in_one_line():
        check_clients(bootstrap)
        from confluent_kafka import ShareConsumer

        refused: list[str] = []

        def on_error(error: Any) -> None:
            if is_refusal(error):
                refused.append(error.str())

        chosen = confluent_settings(bootstrap, settings, command_config) | {"error_cb": on_error}
        with confluent_failures():
            if from_beginning:
                start_at_the_beginning(chosen, group, refused)
            member = {"group.id": group, "share.acknowledgement.mode": "explicit"}
            with ShareConsumer(chosen | member) as consumer:
                consumer.subscribe([topic])
                settle(consumer, reject or [], release or [], max_records, idle, refused)


def settle(
    consumer: ShareConsumer,
    reject: list[str],
    release: list[str],
    max_records: int | None,
    idle: float | None,
    refused: list[str],
) -> None:
    """Polls, settles and shows records until enough were seen or nothing came for `idle` seconds."""
    from confluent_kafka import AcknowledgeType

    taken = 0
    last = time.monotonic()
    while (max_records is None or taken < max_records) and (idle is None or time.monotonic() - last < idle):
        messages = consumer.poll(0.2)
        check_refused(refused)
        settled: list[tuple[Message, str, str]] = []
        for message in messages:
            if (error := message.error()) is not None:
                raise CommandFailed(error.str())
            last = time.monotonic()
            taken += 1
            text = (message.value() or b"").decode(errors="replace")
            if max_records is not None and taken > max_records:
                consumer.acknowledge(message, AcknowledgeType.RELEASE)
            elif any(part in text for part in reject):
                consumer.acknowledge(message, AcknowledgeType.REJECT)
                settled.append((message, "rejected", text))
            elif any(part in text for part in release):
                consumer.acknowledge(message, AcknowledgeType.RELEASE)
                settled.append((message, "released", text))
            else:
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)
                settled.append((message, "accepted", text))
        failed = {
            (partition.topic, partition.partition): failure.args[0].str()
            for partition, failure in consumer.commit_sync(30.0).items()
            if failure is not None
        }
        for message, outcome, text in settled:
            if (message.topic(), message.partition()) not in failed:
                show(message, outcome, text)
        for (name, index), why in failed.items():
            raise CommandFailed(f"{name}-{index}: not settled: {why}")


def show(message: Message, outcome: str, text: str) -> None:
    place = f"{message.topic()}-{message.partition()}@{message.offset()}"
    typer.echo(f"{place}  delivery {message.delivery_count()}  {outcome}  {text}")


def start_at_the_beginning(settings: Mapping[str, Any], group: str, refused: list[str]) -> None:
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=[entry])
    with AdminClient(dict(settings)) as admin:
        altered = admin.incremental_alter_configs([resource])[resource]
        until = time.monotonic() + ANSWER_SECONDS_MAX
        while not altered.done() and time.monotonic() < until:
            admin.poll(0.1)
            check_refused(refused)
        altered.result(0)


def check_refused(refused: list[str]) -> None:
    """Raises CommandFailed where the broker accepts no credentials, or its certificate is not trusted."""
    if refused:
        raise CommandFailed(refused[0])
