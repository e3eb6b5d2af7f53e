"""`sharecore schedules`: records that are written to a topic when they are due."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile, Timeout, confluent_settings, key_values
from sharecore.cli.clients import BOOTSTRAP, Bootstrap, CommandFailed, UsageFailed, failures_in_one_line
from sharecore.cli.printable import shortened
from sharecore.cli.tables import Output, print_json, show
from sharecore.cli.times import FORMAT, read_duration_ms, read_time, show_duration, show_time
from sharecore.cli.typers import commands
from sharecore.plural import counted

if TYPE_CHECKING:
    from sharecore.cli.producing import Headers
    from sharecore.schedules.index import Entry

_WIDTH = 60
_SECONDS = 30
schedules = commands("Add, list, cancel and run schedules: records written to a topic when they are due.")
Topic = Annotated[str, typer.Option("--topic", metavar="TOPIC", help="The topic that holds the schedules.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The schedule's name.")]


@schedules.command("run", short_help="Run a scheduler until stopped.")
def run(
    topic: Topic = "schedules",
    partitions: Annotated[
        int,
        typer.Option("--partitions", min=1, metavar="N", help="Partitions of the topic, if it is created."),
    ] = 1,
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """Run a scheduler, which reads schedules from a topic and writes each record to its target topic when
    it is due.

    Several schedulers share the partitions of the topic. Each occurrence is written exactly once for
    consumers with isolation.level=read_committed.
    """
    from sharecore.cli.logs import set_up_logging

    with failures_in_one_line():
        chosen = confluent_settings(Cluster(bootstrap, setting, command_config, None))
        set_up_logging("info", None)
        from confluent_kafka import KafkaException

        from sharecore.errors import PackageMissing
        from sharecore.schedules.scheduler import Scheduler

        scheduler = Scheduler(chosen, topic, partitions=partitions)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: scheduler.stop())
        try:
            scheduler.run()
        except KafkaException as error:
            raise CommandFailed(error.args[0].str()) from None
        except PackageMissing as error:
            raise CommandFailed(str(error)) from None
        logging.getLogger(__name__).info("stopped; %s written", counted(scheduler.written, "record"))


@schedules.command("add", short_help="Add a schedule, or replace the one with this key.")
def add(
    key: Key,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The record's value.")],
    target: Annotated[str, typer.Option("--to", metavar="TOPIC", help="The target topic.")],
    at: Annotated[
        Optional[str],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(
            "--at", metavar=FORMAT, help="Write it at this time; with --cron, not before this time."
        ),
    ] = None,
    delay: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--delay", metavar="DURATION", help="Write it after this time, such as 10m."),
    ] = None,
    every: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--every", metavar="DURATION", help="Write it repeatedly at this interval, at least 1s."
        ),
    ] = None,
    cron: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--cron", metavar="'M H D M W'", help="Write it at the times of this cron expression."),
    ] = None,
    zone: Annotated[
        str, typer.Option("--zone", metavar="ZONE", help="The time zone of --cron, such as Europe/Berlin.")
    ] = "UTC",
    record_key: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--key", "-k", help="The record's key.  [default: none]"),
    ] = None,
    header: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header of the record; may be repeated."),
    ] = None,
    topic: Topic = "schedules",
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Add a schedule: a record that a scheduler (`sharecore schedules run`) writes to a topic when it is
    due.

    \b
    sharecore schedules add reminder-7 'pay invoice 7' --to mail --delay 3d
    sharecore schedules add report '{"kind":"daily"}' --to jobs --cron '0 9 * * MON-FRI' --zone Europe/Berlin
    """
    with failures_in_one_line():
        from sharecore.client.producing.schedules import Schedule
        from sharecore.errors import ConfigError

        if at is not None and delay is not None:
            raise UsageFailed("give --at or --delay: a schedule has one first time")
        at_ms = None if at is None else round(read_time(at, "--at").timestamp() * 1000)
        if delay is not None:
            at_ms = round(time.time() * 1000) + read_duration_ms(delay, "--delay")
        pairs = [pair for text in header or [] for pair in key_values([text], "--header").items()]
        try:
            schedule = Schedule(
                os.fsencode(key),
                target,
                os.fsencode(value),
                at_ms,
                None if every is None else read_duration_ms(every, "--every"),
                cron or "",
                zone,
                None if record_key is None else os.fsencode(record_key),
                [(name, os.fsencode(content)) for name, content in pairs],
            )
        except ConfigError as error:
            raise UsageFailed(str(error)) from None
        cluster = Cluster(bootstrap, setting, command_config, timeout)
        cluster.check()
        now_ms = round(time.time() * 1000)
        _write(cluster, topic, [key], os.fsencode(value), schedule.as_headers())
        due_ms = schedule.first(now_ms)
        when = "never" if due_ms is None else show_time(due_ms)
        typer.echo(f"schedule {key}: to {target}, first at {when}")


@schedules.command("cancel", short_help="Cancel schedules.")
def cancel(
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Names of schedules.")],
    topic: Topic = "schedules",
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Cancel schedules: records not yet written are dropped.

    Ends with status 1 if there is no such schedule. It reads all schedules to find out.
    """
    with failures_in_one_line():
        from confluent_kafka import KafkaException

        from sharecore.schedules.listing import find

        cluster = Cluster(bootstrap, setting, command_config, timeout)
        cluster.check()
        chosen = confluent_settings(cluster)
        try:
            found = find(chosen, topic, {os.fsencode(key) for key in keys}, timeout or _SECONDS)
        except KafkaException as error:
            raise CommandFailed(error.args[0].str()) from None
        unknown = [key for key in keys if found is not None and os.fsencode(key) not in found]
        done = "canceled, if there was one" if found is None else "canceled"

        def report(key: str) -> None:
            if key not in unknown:
                typer.echo(f"schedule {key}: {done}")

        # also what was not found: it may have been added meanwhile
        _write(cluster, topic, keys, None, (), report)
        if unknown:
            raise CommandFailed(
                f"no such {'schedule' if len(unknown) == 1 else 'schedules'}: {', '.join(unknown)}"
            )


@schedules.command("list", short_help="List the schedules.")
def list_schedules(
    count: Annotated[int, typer.Option("--max", min=1, metavar="N", help="Maximum number shown.")] = 100,
    topic: Topic = "schedules",
    output: Output = "table",
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """List the schedules, next due first."""
    with failures_in_one_line():
        from confluent_kafka import KafkaException

        from sharecore.errors import PackageMissing
        from sharecore.schedules.listing import list_all

        cluster = Cluster(bootstrap, setting, command_config, timeout)
        cluster.check()
        chosen = confluent_settings(cluster)
        try:
            found, total = list_all(chosen, topic, count, timeout or _SECONDS)
        except KafkaException as error:
            raise CommandFailed(error.args[0].str()) from None
        except PackageMissing as error:
            raise CommandFailed(str(error)) from None
    if output == "json":
        print_json([_fields(each) for each in found])
        return
    rows = [
        [shortened(each.schedule.key, _WIDTH), show_time(each.due_ms), _again(each), each.schedule.target]
        for each in found
    ]
    if rows:
        show(["KEY", "NEXT", "AGAIN", "TO"], rows)
    else:
        typer.echo("no schedules")
    if total > len(found):
        typer.echo(f"{len(found)} of {total}; --max shows more")


def _again(entry: Entry) -> str:
    schedule = entry.schedule
    if schedule.cron:
        return f"{schedule.cron} {schedule.zone}"
    return "-" if schedule.every_ms is None else f"every {show_duration(schedule.every_ms)}"


def _fields(entry: Entry) -> dict[str, object]:
    schedule = entry.schedule
    return {
        "key": schedule.key.decode("utf-8", "backslashreplace"),
        "nextMs": entry.due_ms,
        "target": schedule.target,
        "everyMs": schedule.every_ms,
        "cron": schedule.cron or None,
        "zone": schedule.zone if schedule.cron else None,
        "value": schedule.value.decode("utf-8", "backslashreplace"),
    }


def _write(
    cluster: Cluster,
    topic: str,
    keys: Sequence[str],
    value: bytes | None,
    headers: Headers,
    written: Callable[[str], None] = lambda _: None,
) -> None:
    """Write a record with each of these keys; call `written` with a key once the cluster has its record."""
    from sharecore.cli.producing import Records

    chosen = confluent_settings(cluster)
    chosen.setdefault("partitioner", "murmur2_random")
    seconds = cluster.timeout or _SECONDS
    chosen["delivery.timeout.ms"] = round(seconds * 1000)
    with Records(chosen, seconds) as records:
        for key in keys:
            records.send(
                topic, value, os.fsencode(key), headers=tuple(headers), written=partial(written, key)
            )
        records.finish()
