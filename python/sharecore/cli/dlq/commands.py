"""`sharecore dlq list`, `show` and `redrive`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import (
    Cluster,
    Settings,
    SettingsFile,
    Timeout,
    check_answers,
    confluent_settings,
    topic_id_of,
)
from sharecore.cli.clients import (
    BOOTSTRAP,
    Bootstrap,
    confluent_failures,
    failures_in_one_line,
)
from sharecore.cli.dlq.options import (
    Cause,
    Filter,
    Group,
    Headers,
    Key,
    Since,
    Source,
    Text,
    Until,
    wanted_of,
)
from sharecore.cli.printable import shortened
from sharecore.cli.tables import Output, print_json, show_list
from sharecore.cli.tables import show as show_table
from sharecore.cli.times import Local, show_time
from sharecore.cli.typers import commands
from sharecore.plural import counted

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from sharecore.admin.letters import DeadLetterRecord, Wanted

dlq = commands(
    "List, show and redrive dead-letter records (KIP-1191) of share groups, here or on Apache Kafka 4.4 "
    "and later.",
)

_WIDTH = 60
DeadLetterTopic = Annotated[str, typer.Argument(metavar="TOPIC", help="A dead-letter topic.")]


@dlq.command("list", short_help="Count dead-letter records by group, source and cause.")
def list_letters(
    topic: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="[TOPIC]...", help="[default: all that share groups may have letters in]"),
    ] = None,
    group: Group = None,
    cause: Cause = None,
    since: Since = None,
    until: Until = None,
    source: Source = None,
    local: Local = False,
    output: Output = "table",
    bootstrap: Bootstrap = BOOTSTRAP,
    settings: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Count the records of dead-letter topics by group, source and cause."""
    wanted = wanted_of(group, cause, since, until, source)
    cluster = Cluster(bootstrap, settings, command_config, timeout)
    with _clients(cluster) as chosen:
        from sharecore.cli.dlq.reading import dead_letter_topics, open_consumer

        found: dict[tuple[str, str, str, str], list[DeadLetterRecord]] = {}
        counts: dict[tuple[str, str, str, str], int] = {}
        with open_consumer(chosen) as consumer:
            for name in topic or dead_letter_topics(chosen, _seconds(timeout)):
                for letter in _letters(consumer, name, wanted, _seconds(timeout)):
                    about = name, letter.group, letter.origin[0], letter.cause
                    ends = found.setdefault(about, [letter, letter])
                    ends[1] = letter
                    counts[about] = counts.get(about, 0) + 1
    if not found and output == "table":
        typer.echo("no dead-letter records")
        return
    show_list(
        output,
        {
            "topic": "TOPIC",
            "group": "GROUP",
            "source": "SOURCE",
            "cause": "CAUSE",
            "letters": "RECORDS",
            "first": "FIRST",
            "last": "LAST",
        },
        [
            [
                *about,
                counts[about],
                show_time(first.time_ms, local=local),
                show_time(last.time_ms, local=local),
            ]
            for about, (first, last) in sorted(found.items())
        ],
    )


@dlq.command("show", short_help="Show dead-letter records, one per line.")
def show(
    topic: DeadLetterTopic,
    group: Group = None,
    cause: Cause = None,
    since: Since = None,
    until: Until = None,
    source: Source = None,
    key: Key = None,
    pattern: Filter = None,
    header: Headers = None,
    limit: Annotated[int, typer.Option("--max", "-n", metavar="N", min=1, help="Limit of records.")] = 100,
    output: Output = "table",
    as_json: Annotated[bool, typer.Option("--json", hidden=True, help="One JSON object per line.")] = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    settings: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Show dead-letter records: their place, the original record's place, and the original record if they
    carry it. With --output json also their headers.
    """
    wanted = wanted_of(group, cause, since, until, source, key, pattern, header)
    cluster = Cluster(bootstrap, settings, command_config, timeout)
    with _clients(cluster) as chosen:
        from sharecore.cli.dlq.reading import open_consumer

        with open_consumer(chosen) as consumer:
            letters = list(islice(_letters(consumer, topic, wanted, _seconds(timeout)), limit))
    if as_json:
        for letter in letters:
            typer.echo(json.dumps(_fields(letter)))
        return
    if output == "json":
        print_json([_fields(letter) for letter in letters])
        return
    rows = [
        [
            f"{letter.partition}@{letter.offset}",
            letter.group,
            "{}-{}@{}".format(*letter.origin),
            letter.cause,
            str(letter.deliveries),
            shortened(letter.key, _WIDTH),
            shortened(letter.value, _WIDTH),
        ]
        for letter in letters
    ]
    show_table(["OFFSET", "GROUP", "RECORD", "CAUSE", "DELIVERED", "KEY", "VALUE"], rows)


@dlq.command("redrive", short_help="Produce the original records again.")
def redrive(
    topic: DeadLetterTopic,
    group: Group = None,
    cause: Cause = None,
    since: Since = None,
    until: Until = None,
    source: Source = None,
    key: Key = None,
    pattern: Filter = None,
    header: Headers = None,
    to: Annotated[
        Text, typer.Option("--to", metavar="TOPIC", help="Where to.  [default: where each record came from]")
    ] = None,
    rate: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option("--rate", metavar="N", min=0.001, help="Records a second.  [default: no bound]"),
    ] = None,
    progress: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--progress", metavar="FILE", help="File that records progress; the next run continues from it."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count only.")] = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    settings: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Produce the original records again, from the dead-letter record if it carries a copy, else from
    their topic.

    Records keep key, value and headers, and go to the partition with the same number. Headers name their
    origin: __redrive.topic, .partition, .offset, .group, .delivery.count, and .count (the number of
    redrives).

    Each record is produced at least once. Dead-letter records are not deleted: with --progress FILE the next
    run skips those already redriven, whatever its filters, and an interrupted run continues.
    """
    wanted = wanted_of(group, cause, since, until, source, key, pattern, header)
    cluster = Cluster(bootstrap, settings, command_config, timeout)
    with _clients(cluster) as chosen:
        from sharecore.cli.dlq.progress import Progress
        from sharecore.cli.dlq.reading import Topic, letter_of, open_consumer
        from sharecore.cli.dlq.redrive import Redrive, open_producer

        done = Progress(progress, topic, topic_id_of(topic, cluster))
        if done.was_another:
            typer.echo(f"{topic} was deleted and created again: none of its letters is done", err=True)
        passed = 0
        with ExitStack() as clients:
            letters = Topic(
                clients.enter_context(open_consumer(chosen)), topic, done.first_open(), _seconds(timeout)
            )
            reader = clients.enter_context(open_consumer(chosen))
            records = None if dry_run else clients.enter_context(open_producer(chosen))
            moving = Redrive(reader, records, to, rate, _seconds(timeout))
            try:
                with typer.progressbar(
                    length=letters.offsets, label=topic, file=sys.stderr, hidden=not sys.stderr.isatty()
                ) as bar:
                    for message in letters.read():
                        bar.update(1)
                        place = message.partition() or 0, message.offset() or 0
                        if done.is_done(*place):
                            continue
                        letter = letter_of(message)
                        if letter is None:
                            passed += 1
                            done.end(*place)
                        elif wanted.takes(letter):
                            moving.send(letter, done)
                        else:
                            passed += 1
                        if not dry_run:
                            done.save()
                moving.finish()
            finally:
                if not dry_run:
                    done.save(now=True)
    verb = "would be produced" if dry_run else "produced"
    for target, count in sorted(moving.moved.items()):
        typer.echo(f"{counted(count, 'record')} {verb} to {target}")
    gone = f"{moving.gone} {'is no longer in its' if moving.gone == 1 else 'are no longer in their'} topic"
    typer.echo(f"{gone}, {passed} {'was' if passed == 1 else 'were'} skipped")
    if moving.younger:
        shown = ", ".join(moving.younger[:5]) + (", ..." if len(moving.younger) > 5 else "")
        typer.echo(
            f"sharecore: younger than their letters, so not produced: {shown}; "
            "their topic was deleted and created again, or the clock of a producer is ahead",
            err=True,
        )


@contextmanager
def _clients(cluster: Cluster) -> Iterator[dict[str, object]]:
    with failures_in_one_line():
        check_answers(cluster)
        with confluent_failures():
            yield confluent_settings(cluster)


def _seconds(timeout: float | None) -> float:
    from sharecore.cli.dlq.reading import SECONDS

    return SECONDS if timeout is None else timeout


def _letters(consumer: Consumer, topic: str, wanted: Wanted, seconds: float) -> Iterator[DeadLetterRecord]:
    from sharecore.cli.dlq.reading import Topic, letter_of

    for message in Topic(consumer, topic, seconds=seconds).read():
        letter = letter_of(message)
        if letter is not None and wanted.takes(letter):
            yield letter


def _fields(letter: DeadLetterRecord) -> dict[str, object]:
    def text(content: bytes | None) -> str | None:
        return None if content is None else content.decode(errors="replace")

    topic, partition, offset = letter.origin
    return {
        "partition": letter.partition,
        "offset": letter.offset,
        "time": show_time(letter.time_ms),
        "group": letter.group,
        "source": {"topic": topic, "partition": partition, "offset": offset},
        "cause": letter.cause,
        "deliveries": letter.deliveries,
        "key": text(letter.key),
        "value": text(letter.value),
        "headers": [[name, text(value)] for name, value in letter.headers],
    }
