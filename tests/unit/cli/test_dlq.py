from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest

from sharecore.admin.letters import Letter, Wanted
from sharecore.cli.clients import CommandFailed
from sharecore.cli.dlq.reading import letter_of
from sharecore.cli.dlq.redrive import Progress

HEADERS = [
    ("__dlq.errors.topic", b"orders"),
    ("__dlq.errors.partition", b"3"),
    ("__dlq.errors.offset", b"7"),
    ("__dlq.errors.group", b"billing"),
    ("__dlq.errors.delivery.count", b"2"),
    ("__dlq.errors.message", b"Offset rejected by client."),
    ("kind", b"urgent"),
]


class Message:
    """A record, as confluent-kafka has them."""

    def __init__(self, partition: int = 0, offset: int = 0, headers: list[Any] = HEADERS) -> None:
        self._place = partition, offset
        self._headers = headers

    def partition(self) -> int:
        return self._place[0]

    def offset(self) -> int:
        return self._place[1]

    def timestamp(self) -> tuple[int, int]:
        return 1, 5000

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return b"seven dwarfs"

    def headers(self) -> list[Any]:
        return self._headers


def letter(**fields: Any) -> Letter:
    found = letter_of(cast(Any, Message(**fields)))
    assert found is not None
    return found


def test_a_letter_tells_where_its_record_was_and_keeps_the_records_headers_apart() -> None:
    found = letter()
    assert found.origin == ("orders", 3, 7)
    assert (found.group, found.cause, found.deliveries) == ("billing", "rejected", 2)
    assert found.headers == [("kind", b"urgent")]
    assert found.is_copy


@pytest.mark.parametrize(
    "headers", [[], HEADERS[1:], [*HEADERS[:2], ("__dlq.errors.offset", b"x"), HEADERS[3]]]
)
def test_what_is_no_letter_is_none(headers: list[Any]) -> None:
    assert letter_of(cast(Any, Message(headers=headers))) is None


@pytest.mark.parametrize(
    ("wanted", "takes"),
    [
        (Wanted(), True),
        (Wanted(group="billing", cause="rejected", source="orders", key="k"), True),
        (Wanted(group="other"), False),
        (Wanted(cause="exhausted"), False),
        (Wanted(since_ms=5000, until_ms=5001), True),
        (Wanted(since_ms=5001), False),
        (Wanted(until_ms=5000), False),
        (Wanted(source="order"), False),
        (Wanted(key="j"), False),
        (Wanted(pattern=re.compile("d.arf")), True),
        (Wanted(pattern=re.compile("^dwarf")), False),
        (Wanted(headers={"kind": "urgent"}), True),
        (Wanted(headers={"kind": "idle"}), False),
    ],
)
def test_letters_are_chosen_by_what_they_tell(wanted: Wanted, *, takes: bool) -> None:
    assert wanted.takes(letter()) is takes


def test_progress_passes_over_what_was_answered_without_a_gap(tmp_path: Path) -> None:
    file = tmp_path / "progress.json"
    progress = Progress(file, "dlq.t")
    entries = [progress.begin(cast(Any, Message(0, offset))) for offset in (4, 5, 9)]
    progress.end(entries[0])
    progress.end(entries[2])
    progress.save(now=True)
    assert Progress(file, "dlq.t").next == {0: 5}
    progress.end(entries[1])
    progress.save(now=True)
    assert Progress(file, "dlq.t").next == {0: 10}


@pytest.mark.parametrize("text", ["{", "[]", '{"next": 5}', json.dumps({"topic": "dlq.other", "next": {}})])
def test_a_progress_file_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "progress.json"
    file.write_text(text)
    with pytest.raises(CommandFailed, match="--progress"):
        Progress(file, "dlq.t")
