"""`sharecore produce`: values from the command line or, line by line, from a file or standard input."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile, confluent_settings, key_values
from sharecore.cli.clients import (
    BOOTSTRAP,
    Bootstrap,
    CommandFailed,
    UsageFailed,
    ctrl_c_ends,
    failures_in_one_line,
)
from sharecore.cli.inputs import SIZE, Input, lines, of_json, opened
from sharecore.cli.times import FORMAT, read_duration_ms, read_time
from sharecore.plural import counted

if TYPE_CHECKING:
    from sharecore.cli.producing import Records

ANSWER_SECONDS_MAX = 30
_LINE_BYTES_MAX = 100 << 20
"""What a broker takes in one request, unless it is set otherwise (socket.request.max.bytes)."""
_PROGRESS_SECONDS = 1.0


class Compression(str, Enum):
    """Compression of batches."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


def produce(
    topic: Annotated[str, typer.Argument(help="Made where the broker may make topics by itself.")],
    values: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer evaluates the annotation
        typer.Argument(metavar="[VALUE]...", help="One record each; by default, the lines of stdin."),
    ] = None,
    key: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--key", "-k", help="The key of each record.  [default: none]"),
    ] = None,
    header: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--header", "-H", metavar="NAME=VALUE", help="A header of each record; may be repeated."
        ),
    ] = None,
    partition: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--partition", "-p", min=0, help="Partition to write to.  [default: by key]"),
    ] = None,
    file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--file", "-f", metavar="FILE", help="Read lines from here; `-` is stdin."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help='Lines are JSON objects with "value", and "key", "headers" and "partition" as needed.',
        ),
    ] = False,
    delay: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="DURATION", help="Deliver no earlier than in, say, 10m; for groups that use the header."
        ),
    ] = None,
    deliver_at: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--deliver-at", metavar=FORMAT, help="Deliver no earlier; for groups that use the header."
        ),
    ] = None,
    ttl: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--ttl", metavar="DURATION", help="Expire after this time; for groups that use the header."
        ),
    ] = None,
    compression: Annotated[
        Optional[Compression],  # noqa: UP045
        typer.Option(help="Compression of batches.  [default: none]"),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    settings: Settings = None,
    command_config: SettingsFile = None,
    timeout: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            "--timeout",
            min=0.1,
            max=86_400,
            metavar="SECONDS",
            help=f"Time limit for each record.  [default: {ANSWER_SECONDS_MAX:g}]",
        ),
    ] = None,
) -> None:
    """Write records to a topic, and wait until the broker has confirmed each one.

    Each line of input is a record, without its line feed; an empty line is an empty record. After a failure
    the command stops and prints how many records it wrote.

    --delay and --deliver-at write the header deliver-at, for groups with share.deliver.at.header=deliver-at;
    --ttl writes the header ttl, for groups with share.record.ttl.header=ttl.

    With --json a string is sent as is, null becomes a record without a value, and any other value is sent as
    JSON.
    """
    with failures_in_one_line():
        cluster = Cluster(bootstrap, settings, command_config, timeout)
        cluster.check()
        from sharecore.cli.producing import Records

        if values and (file is not None or as_json):
            raise UsageFailed("give values as arguments, or lines with --file or --json")
        chosen = confluent_settings(cluster)
        chosen.setdefault(SIZE, _LINE_BYTES_MAX)
        # Java's default partitioner
        chosen.setdefault("partitioner", "murmur2_random")
        if timeout is not None:
            chosen.pop("message.timeout.ms", None)
            chosen["delivery.timeout.ms"] = round(timeout * 1000)
        if compression is not None:
            chosen["compression.type"] = compression.value
        # a header name may be repeated
        pairs = [pair for text in header or [] for pair in key_values([text], "--header").items()]
        times = _times({name for name, _ in pairs}, delay, deliver_at, ttl)
        usual = Input(
            None,
            None if key is None else os.fsencode(key),
            (*times, *((name, os.fsencode(value)) for name, value in pairs)),
            -1 if partition is None else partition,
        )
        given = [usual._replace(value=os.fsencode(value)) for value in values or ()]
        with ctrl_c_ends(), Records(chosen, ANSWER_SECONDS_MAX) as records:
            try:
                delay_ms = None if delay is None else read_duration_ms(delay, "--delay")
                inputs = given if values else _read(file, as_json, usual, chosen)
                failure = _send(records, topic, inputs, delay_ms)
                try:
                    records.finish()
                except CommandFailed as error:
                    failure = failure or error
                if failure is not None:
                    raise CommandFailed(f"{failure}; {_written(records.written)} to {topic}")
            except KeyboardInterrupt:
                typer.echo(f"sharecore: interrupted; {_written(records.written)} to {topic}", err=True)
                raise
        typer.echo(f"{_written(records.written)} to {topic}")


def _times(
    names: set[str], delay: str | None, deliver_at: str | None, ttl: str | None
) -> list[tuple[str, bytes]]:
    """Return the headers for a delivery time and a time to live; raise UsageFailed for an invalid one."""
    from sharecore.client.producing.times import DELIVER_AT_HEADER, timed_headers

    taken: list[tuple[str, str | bytes | None]] = [(name, b"") for name in names]
    try:
        timed = timed_headers(
            taken,
            deliver_at=None if deliver_at is None else read_time(deliver_at, "--deliver-at"),
            delay=None if delay is None else read_duration_ms(delay, "--delay") / 1000,
            ttl=None if ttl is None else read_duration_ms(ttl, "--ttl") / 1000,
        )
    except ValueError as error:
        raise UsageFailed(str(error)) from None
    added = [
        (name, str(content).encode()) for name, content in dict(timed or taken).items() if name not in names
    ]
    # a delay starts when its record is sent
    return [each for each in added if delay is None or each[0] != DELIVER_AT_HEADER]


def _send(
    records: Records, topic: str, given: Iterable[Input], delay_ms: int | None = None
) -> CommandFailed | None:
    """Send records until one is refused; return why no more can be read or sent.

    Args:
        delay_ms: each record is to be delivered so long after it is sent, at the earliest.
    """
    from sharecore.client.producing.times import DELIVER_AT_HEADER

    due = time.monotonic() + _PROGRESS_SECONDS
    terminal = sys.stderr is not None and sys.stderr.isatty()
    shown = False
    try:
        for value, key, headers, partition in given:
            if delay_ms is not None:
                deliver_at = str(math.ceil(time.time() * 1000) + delay_ms).encode()
                headers = ((DELIVER_AT_HEADER, deliver_at), *headers)
            records.send(topic, value, key, partition=partition, headers=headers)
            if records.failed:
                break
            if terminal and time.monotonic() > due:
                due, shown = time.monotonic() + _PROGRESS_SECONDS, True
                typer.echo(f"\r{_written(records.written)}", err=True, nl=False)
    except CommandFailed as error:
        return error
    finally:
        if shown:
            typer.echo("\r\x1b[K", err=True, nl=False)
    return None


def _written(count: int) -> str:
    return f"{counted(count, 'record')} written"


def _read(file: Path | None, as_json: bool, usual: Input, settings: Mapping[str, object]) -> Iterator[Input]:
    """Read records from a file or standard input; raise CommandFailed if the input ends within a record."""
    with opened(file) as stream:
        for number, line in enumerate(lines(stream, int(str(settings[SIZE]))), 1):
            yield of_json(line, number, usual) if as_json else usual._replace(value=line)
