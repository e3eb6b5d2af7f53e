"""What `sharecore produce` sends besides values, and where it reads them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.harness.broker import Broker
from tests.harness.clients import QUIET, create_topic
from tests.interop.test_produce_consume import command, run


def read(broker: Broker, topic: str, count: int, partitions: int = 1) -> list[tuple[Any, ...]]:
    """Partition, key, value and headers of each record, in the order of each partition."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader", **QUIET})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: list[Any] = []
    until = time.monotonic() + 20
    while len(found) < count and time.monotonic() < until:
        found += consumer.consume(1000, 0.2)
    consumer.close()
    assert len(found) == count
    return [(each.partition(), each.key(), each.value(), each.headers()) for each in found]


def test_key_headers_and_partition(broker: Broker, group: str) -> None:
    topic = f"options-{group}"
    create_topic(broker.bootstrap, topic, 7)
    options = ("-k", "k\u00e4", "-H", "a=1", "--header", "a=x=y", "--compression", "zstd")
    assert run(broker, "produce", topic, "one", *options).returncode == 0
    assert run(broker, "produce", topic, "--partition", "3", stdin=b"two\nthree\n").returncode == 0
    (first, *rest) = sorted(read(broker, topic, 3, 7), key=lambda each: each[1] is None)
    # Java's producer chooses the same partition for this key
    assert first == (5, "k\u00e4".encode(), b"one", [("a", b"1"), ("a", b"x=y")])
    assert rest == [(3, None, b"two", None), (3, None, b"three", None)]


def test_a_file_of_lines(broker: Broker, topic: str, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"one\n\xff\x00\n\n")
    assert run(broker, "produce", topic, "-f", str(tmp_path / "lines"), stdin=b"not read").returncode == 0
    assert run(broker, "produce", topic, "-f", "-", stdin=b"four").returncode == 0
    assert [value for _, _, value, _ in read(broker, topic, 4)] == [b"one", b"\xff\x00", b"", b"four"]


def test_lines_of_json(broker: Broker, group: str, tmp_path: Path) -> None:
    topic = f"json-{group}"
    create_topic(broker.bootstrap, topic, 2)
    lines = [
        {"value": "text", "key": "k", "headers": {"a": "1", "none": None}, "partition": 1},
        {"value": None, "key": None, "headers": [["a", "1"], ["a", "2"]], "partition": 1},
        {"value": {"n": [1, None, "ä"]}, "partition": 1},
        {"value": "", "partition": 0},
    ]
    file = tmp_path / "lines"
    file.write_text("\n".join(map(json.dumps, lines)))
    assert run(broker, "produce", topic, "--json", "--file", str(file), "-k", "usual").returncode == 0
    assert sorted(read(broker, topic, 4, 2), key=lambda each: each[0]) == [
        (0, b"usual", b"", None),
        (1, b"k", b"text", [("a", b"1"), ("none", None)]),
        (1, None, None, [("a", b"1"), ("a", b"2")]),
        (1, b"usual", '{"n":[1,null,"ä"]}'.encode(), None),
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"{", "line 2 is not JSON"),
        (b"5", 'line 2 is not a JSON object with a "value"'),
        (b"{}", 'line 2 is not a JSON object with a "value"'),
        (
            b'{"value": 1, "kye": 2}',
            "line 2 has a field 'kye'; the fields are headers, key, partition, value",
        ),
        (b'{"value": 1, "partition": "1"}', "line 2: partition '1' is not a partition number"),
        (b'{"value": 1, "headers": 5}', "line 2: headers are neither an object nor a list of [name, value]"),
        (b"\xff", "line 2 is not JSON"),
    ],
)
def test_a_line_that_is_no_record(broker: Broker, topic: str, line: bytes, told: str) -> None:
    done = run(broker, "produce", topic, "--json", stdin=b'{"value": "a"}\n' + line + b'\n{"value": "b"}\n')
    assert (done.returncode, done.stdout) == (1, b"")
    assert told in done.stderr.decode()
    assert f"1 record written to {topic}" in done.stderr.decode()
    assert len(read(broker, topic, 1)) == 1


def test_what_does_not_go_together_or_is_not_there(broker: Broker, topic: str) -> None:
    for arguments, status, told in (
        (("value", "--json"), 2, "lines with --file or --json"),
        (("value", "-H", "alone"), 2, "--header alone: not KEY=VALUE"),
        (("-f", "/nowhere"), 1, "/nowhere cannot be read: No such file or directory"),
        (("value", "-p", "9"), 1, "partition"),
    ):
        done = run(broker, "produce", topic, *arguments)
        assert (done.returncode, done.stdout) == (status, b"")
        assert told in done.stderr.decode()


def test_a_terminal_sees_how_far_it_is(broker: Broker, topic: str) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(broker, "produce", topic), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    assert process.stdin is not None
    shown = b""
    os.set_blocking(ours, False)
    until = time.monotonic() + 30
    while b"records written" not in shown and time.monotonic() < until:
        process.stdin.write(b"x\n")
        process.stdin.flush()
        time.sleep(0.01)
        try:
            shown += os.read(ours, 1000)
        except BlockingIOError:
            continue
    process.stdin.close()
    assert process.wait(30) == 0
    os.close(ours)
    assert b"records written" in shown
