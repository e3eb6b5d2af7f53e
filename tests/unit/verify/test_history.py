"""Files that are not a history are refused with the position, and a result page is self-contained."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.verify.model import Model

from sharecore.verify.check import check
from sharecore.verify.history import HistoryError, Writer, pick, read
from sharecore.verify.report import PROMISES, page, summary

HEADER = '{"op":"history","format":1,"start":0,"end":0}\n'
SEND = {"op": "send", "client": "p", "start": 1, "end": 2, "outcome": "ok", "topic": "t", "partition": 0}


def write(directory: Path, text: str) -> Path:
    path = directory / "history.jsonl"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("{}\n", "line 1 needs `op`"),
        ('{"op":"send","start":0,"end":0}\n', "must be `history`"),
        (HEADER.replace('"format":1', '"format":9'), "format 9"),
        (HEADER + "not json\n", "line 2 is not JSON"),
        (HEADER + "[1]\n", "line 2 needs `op`"),
        (HEADER + '{"op":"x","start":3,"end":2}\n', "line 2 needs `op`"),
        (HEADER + '{"op":"x","start":"a","end":2}\n', "line 2 needs `op`"),
        (HEADER + '{"op":"x","start":3,"end":5}\n{"op":"x","start":3,"end":4}\n', "Sort the file by `end`"),
        (HEADER + json.dumps(SEND) + "\n", "line 2 (send) lacks 'id'"),
        (HEADER + json.dumps(SEND | {"id": -5, "offset": 0}) + "\n", "line 2 (send) is invalid"),
        (HEADER + json.dumps(SEND | {"id": "x", "offset": 0}) + "\n", "line 2 (send) is invalid"),
        (HEADER + json.dumps(SEND | {"id": 5, "offset": 2**70}) + "\n", "line 2 (send) is invalid"),
        (HEADER + json.dumps(SEND | {"id": 5, "outcome": "maybe"}) + "\n", "outcome 'maybe'"),
        (HEADER + "[" * 100_000 + "\n", "line 2 is not JSON"),
        (HEADER + '{"op":"x","start":1,"end":2,"y":"\udcff"}\n', "line 2 is not JSON"),
    ],
)
def test_what_is_no_history_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(HistoryError, match=re.escape(said)):
        check([path])


@pytest.mark.heavy
def test_ids_that_are_spread_too_thin_are_refused(tmp_path: Path) -> None:
    lines = [json.dumps(SEND | {"id": number << 20, "outcome": "failed"}) for number in range(8192)]
    path = write(tmp_path, HEADER + "\n".join(lines) + "\n")
    with pytest.raises(HistoryError, match="Number the records from 0"):
        check([path])


def test_a_last_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + json.dumps(SEND | {"id": 0, "offset": 0}) + '\n{"op":"se')
    assert sum(check([path]).operations.values()) == 2


def test_operations_that_are_not_known_are_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + '{"op":"admin","start":1,"end":2,"what":"anything"}\n')
    assert check([path]).counts == {}


def test_a_writer_writes_what_a_reader_reads(tmp_path: Path) -> None:
    times = iter(range(100))
    with Writer(tmp_path / "h", {"tool": "test"}, lambda: float(next(times))) as writer:
        writer.write("send", 0.0, "unknown", client="p", id=0, topic="t", partition=0)
        writer.write("ends", 0.5, topic="t", partition=0, offset=0)
    writer.write("ends", 0.5, topic="t", partition=0, offset=0)  # a late response: the file is complete
    lines = list(read([tmp_path / "h"]))
    assert [line.op["op"] for line in lines] == ["history", "send", "ends"]
    assert [line.op["end"] for line in lines] == [0.0, 1.0, 2.0]
    assert json.loads(pick([tmp_path / "h"], frozenset({2}))[2])["outcome"] == "unknown"


def test_parts_of_a_history_are_merged_by_the_ends_of_calls(tmp_path: Path) -> None:
    lines = Model(3).lines
    one, two = tmp_path / "one", tmp_path / "two"
    parts: dict[Path, list[dict[str, Any]]] = {one: [lines[0], *lines[1::2]], two: [lines[0], *lines[2::2]]}
    for path, some in parts.items():
        path.write_text("".join(json.dumps(line) + "\n" for line in some))
    result = check([one, two])
    assert result.counts == {}
    assert sum(result.operations.values()) == len(lines) + 1


def test_a_page_stands_alone_and_shows_the_breach(tmp_path: Path) -> None:
    lines = [line for line in Model(5).lines if line["op"] != "end_txn"]
    lines[0]["seed"] = "<script>"
    path = write(tmp_path, "".join(json.dumps(line) + "\n" for line in lines))
    result = check([path])
    assert result.counts["aborted"]
    assert result.counts.keys() <= PROMISES.keys()
    text = page(result)
    assert "was never committed" in text
    assert "&lt;script&gt;" in text
    assert not re.search(r"<script|https?://|src=|<link", text)
    assert any(line.startswith("BREACH aborted") for line in summary(result))


def test_a_page_of_a_clean_history_says_so(tmp_path: Path) -> None:
    lines = Model(5, faults=True).lines
    path = write(tmp_path, "".join(json.dumps(line) + "\n" for line in lines))
    result = check([path])
    assert list(summary(result))[-1] == "no breach"
    assert page(result).count(">held<") == len(PROMISES)
