"""Share state read from outside: over the wire and from the data directory, with and without its broker
running.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.harness.running import RunningBroker
from tests.harness.state_values import encode_update
from typer.testing import CliRunner

from sharecore.admin import BlockingAdmin
from sharecore.admin.data_dir import share_state, share_state_history
from sharecore.admin.share_state import History
from sharecore.admin.state_topic import feed
from sharecore.cli.app import app
from sharecore.protocol import ApiKey
from sharecore.sharestate.keys import STATE_TOPIC, SharePartitionKey
from sharecore.sharestate.records import (
    SNAPSHOT,
    UPDATE,
    Snapshot,
    StateBatch,
    Update,
    encode_key,
)
from sharecore.storage import Storage

SNAPSHOTS = "share.coordinator.snapshot.update.records.per.snapshot"


class World:
    """A running broker with a topic, and share partitions of two groups in it."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.broker = RunningBroker(data_dir, {SNAPSHOTS: "5"}).start()
        self.running = True
        self.address = f"127.0.0.1:{self.broker.port}"
        new = {"name": "orders", "num_partitions": 3, "replication_factor": 1}
        made = self.broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[new], timeout_ms=5000)
        topic_id = made.topics[0].topic_id
        self.keys = [
            SharePartitionKey(group, topic_id, partition) for group in ("a", "b:c") for partition in range(3)
        ]

    def ask(self, api_key: ApiKey, key: SharePartitionKey, **fields: Any) -> None:
        topics = [{"topic_id": key.topic_id, "partitions": [{"partition": key.partition, **fields}]}]
        version = 1 if api_key is ApiKey.WRITE_SHARE_GROUP_STATE else 0
        answer = self.broker.ask(api_key, version, group_id=key.group_id, topics=topics)
        assert [part.error_code for topic in answer.results for part in topic.partitions] == [0]

    def initialize(self, key: SharePartitionKey, start: int = 0) -> None:
        self.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, key, state_epoch=3, start_offset=start)

    def write(self, key: SharePartitionKey, start: int, *batches: StateBatch) -> None:
        names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
        self.ask(
            ApiKey.WRITE_SHARE_GROUP_STATE,
            key,
            state_epoch=3,
            leader_epoch=1,
            start_offset=start,
            delivery_complete_count=len(batches),
            state_batches=[dict(zip(names, batch, strict=True)) for batch in batches],
        )

    def fill(self) -> None:
        dice = random.Random(1)
        for key in self.keys:
            self.initialize(key)
            for start in range(0, 10 * key.partition, 2):
                first = start + dice.randrange(1, 9)
                self.write(key, start, (first, first + 2, dice.choice([0, 2, 4]), dice.randrange(1, 5)))
        self.ask(ApiKey.DELETE_SHARE_GROUP_STATE, self.keys[0])

    def stop(self) -> None:
        if self.running:
            self.broker.stop()
        self.running = False

    def damage(self, *records: tuple[bytes, bytes | None]) -> int:
        """Append records to partition 1 of the state topic of the stopped broker; return the first offset."""
        storage = Storage(self.data_dir)
        topic = storage.topics.get(STATE_TOPIC)
        assert topic is not None
        first = topic.partitions[1].end_offset
        topic.partitions[1].append_local(records, now_ms=0)
        storage.sync()
        storage.close()
        return first


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["state", "dump", *arguments])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "data")
    yield made
    made.stop()


def test_wire_and_directory_say_the_same_and_the_directory_stays_as_it_is(world: World) -> None:
    world.fill()
    before = {path: path.stat().st_mtime_ns for path in world.data_dir.iterdir()}
    directory = share_state(world.data_dir)
    assert {path: path.stat().st_mtime_ns for path in world.data_dir.iterdir()} == before
    assert directory.problems == []
    assert [each.key for each in directory.states] == world.keys[1:]
    assert {each.snapshot_epoch for each in directory.states} == {0, 1}
    with BlockingAdmin({"bootstrap.servers": world.address}) as admin:
        assert admin.share_state() == directory
        assert admin.share_state(world.keys[5]).states == directory.states[-1:]
        for key in world.keys:
            history = admin.share_state_history(key)
            assert history == share_state_history(world.data_dir, key)
            kinds = [type(change.value) for change in history.changes]
            assert kinds[0] is Snapshot
            assert (None in [change.value for change in history.changes]) == (key == world.keys[0])
    world.stop()
    assert share_state(world.data_dir) == directory


def test_what_is_printed(world: World) -> None:
    world.initialize(world.keys[4], start=-1)
    world.write(world.keys[4], 7, (7, 9, 2, 1), (12, 12, 0, 3))
    text = world.keys[4].coordinator_key()
    printed = run("-b", world.address)
    assert printed.exit_code == 0, printed.stderr
    assert printed.stdout.startswith("KEY ")
    assert f"{text}  orders  7      2     3/0/0" in printed.stdout
    assert printed.stdout.endswith("7-9 acknowledged x1, 12 available x3\n")
    line = json.loads(run("--data-dir", str(world.data_dir), "--format", "json", "--key", text).stdout)
    assert (line["key"], line["startOffset"], line["deliveryCompleteCount"]) == (text, 7, 2)
    assert line["stateBatches"][1] == {
        "firstOffset": 12,
        "lastOffset": 12,
        "deliveryState": 0,
        "deliveryCount": 3,
    }
    history = run("--data-dir", str(world.data_dir), "--format", "json", "--key", text, "--history")
    lines = [json.loads(line) for line in history.stdout.splitlines()]
    assert [line["type"] for line in lines] == ["ShareSnapshot", "ShareUpdate"]
    assert [line["startOffset"] for line in lines] == [-1, 7]
    table = run("--data-dir", str(world.data_dir), "--key", text, "--history")
    assert len(table.stdout.splitlines()) == 3


def test_damaged_and_unknown_records_are_told_with_their_offsets(world: World) -> None:
    world.fill()
    world.stop()
    sound = share_state(world.data_dir).states
    first = world.damage(
        (encode_key(UPDATE, world.keys[1]), b"\0\0garbage"),
        (b"\0\x09", b"of a later version"),
        (encode_key(SNAPSHOT, world.keys[0]), None),
        (b"", b""),
        (encode_key(UPDATE, world.keys[0]), encode_update(Update(0, 0, 5, b""))),
    )
    found = share_state(world.data_dir)
    assert found.states == sound
    assert [(each.partition, each.offset, each.damaged) for each in found.problems] == [
        (1, first, True),
        (1, first + 1, False),
        (1, first + 3, True),
        (1, first + 4, False),
    ]
    printed = run("--data-dir", str(world.data_dir))
    assert printed.exit_code == 1
    assert f"{STATE_TOPIC}-1 at offset {first}: damaged value" in printed.stderr


def test_a_batch_whose_bytes_changed_is_told_and_the_rest_read(world: World) -> None:
    key = world.keys[1]
    world.initialize(key)
    world.write(key, 1, (0x5EEDED, 0x5EEDED, 4, 9))
    world.write(key, 3, (8, 8, 0, 1))
    world.stop()
    sound = share_state_history(world.data_dir, key).changes
    storage = Storage(world.data_dir)
    topic = storage.topics.get(STATE_TOPIC)
    assert topic is not None
    log = topic.partitions[sound[1].partition]
    # the store has its own checksums; a log read over the wire has only those of its batches
    records = log.read(0, 1 << 20).records.replace(b"\x5e\xed\xed", b"\x5e\xed\xee")
    end = log.high_watermark
    storage.close()
    history = History(key)
    assert feed(history, sound[1].partition, records, 0, end) == end
    assert history.history().changes == [sound[0], sound[2]]
    (problem,) = history.problems
    assert (problem.offset, problem.damaged) == (sound[1].offset, True)


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("--data-dir", "."), 1, "holds no data of a broker"),
        (("--data-dir", ".", "-b", "localhost:9092"), 2, "exclude each other"),
        (("--history",), 2, "--history needs --key"),
        (("--key", "orders"), 2, "not group:topicId:partition"),
        (("--format", "xml"), 2, "not one of table, json"),
    ],
)
def test_what_cannot_be_asked(
    arguments: tuple[str, ...], status: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run(*arguments)
    assert ended.exit_code == status
    assert text in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_where_there_is_no_share_state(world: World, tmp_path: Path) -> None:
    for place in (("--data-dir", str(world.data_dir)), ("-b", world.address)):
        ended = run(*place)
        assert (ended.exit_code, ended.stdout.count("\n")) == (0, 1), ended.stderr
    Storage(tmp_path / "empty").close()
    ended = run("--data-dir", str(tmp_path / "empty"))
    assert ended.exit_code == 1
    assert f"has no topic {STATE_TOPIC}" in ended.stderr
