"""Records that a command reads: lines as they are, or lines of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from sharecore.cli.clients import CommandFailed

SIZE = "message.max.bytes"
_FIELDS = {"key", "value", "headers", "partition"}


class Input(NamedTuple):
    """One record to send; `partition` is -1 if its key decides."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int = -1


@contextmanager
def opened(file: Path | None) -> Iterator[BinaryIO]:
    """Open a file, or standard input without one or for `-`; raises CommandFailed when it cannot be read."""
    if file is None or str(file) == "-":
        if sys.stdin is None:
            raise CommandFailed("standard input is closed: give values as arguments, or redirect a file")
        yield sys.stdin.buffer
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror or error}") from None
    with stream:
        yield stream


def lines(stream: BinaryIO, longest: int) -> Iterator[bytes]:
    """Yield lines without their line feeds; raises CommandFailed when one cannot be read or is too long."""
    number = 0
    while True:
        try:
            line = stream.readline(longest + 2)
        except OSError as error:
            where = "standard input" if stream is getattr(sys.stdin, "buffer", None) else stream.name
            raise CommandFailed(f"{where} cannot be read: {error.strerror or error}") from None
        if not line:
            return
        number += 1
        value = line.removesuffix(b"\n")
        if len(value) > longest:
            raise CommandFailed(f"line {number} is longer than {SIZE}={longest}; raise it with --set")
        yield value


def of_json(line: bytes, number: int, usual: Input) -> Input:
    """Return the record that a line of JSON describes.

    Args:
        usual: what a line does not say.

    Raises:
        CommandFailed: it describes none.
    """
    try:
        given = json.loads(line)
    except ValueError as error:
        raise CommandFailed(f"line {number} is not JSON: {error}") from None
    if not isinstance(given, dict) or "value" not in given:
        raise CommandFailed(f'line {number} is not a JSON object with a "value"')
    unknown = given.keys() - _FIELDS
    if unknown:
        names = ", ".join(sorted(_FIELDS))
        raise CommandFailed(f"line {number} has a field {min(unknown)!r}; the fields are {names}")
    partition = given.get("partition", usual.partition)
    if isinstance(partition, bool) or not isinstance(partition, int) or not -1 <= partition < 2**31:
        raise CommandFailed(f"line {number}: partition {partition!r} is not a partition number")
    headers = usual.headers + _headers(given["headers"], number) if "headers" in given else usual.headers
    key = _content(given["key"]) if "key" in given else usual.key
    return Input(_content(given["value"]), key, headers, partition)


def _content(value: object) -> bytes | None:
    """Return a string as UTF-8, null as nothing, and anything else as JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")


def _headers(given: object, number: int) -> tuple[tuple[str, bytes | None], ...]:
    pairs = list(given.items()) if isinstance(given, dict) else given
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    ):
        raise CommandFailed(f"line {number}: headers are neither an object nor a list of [name, value]")
    return tuple((name, _content(value)) for name, value in pairs)
