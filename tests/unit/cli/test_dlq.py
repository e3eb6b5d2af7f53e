from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.running import RunningBroker

from sharecore.admin.letters import DeadLetterRecord, Wanted
from sharecore.cli.clients import CommandFailed
from sharecore.cli.dlq.progress import Progress, Ranges
from sharecore.cli.dlq.reading import dead_letter_topics, letter_of
from sharecore.protocol import ApiKey
from sharecore.security.acl import Operation, PatternType, Permission, ResourceType

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
    """A record, as in confluent-kafka."""

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


def letter(**fields: Any) -> DeadLetterRecord:
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


def test_progress_keeps_what_is_done_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "progress.json"
    progress = Progress(file, "dlq.t", "id")
    for offset in (4, 0, 9, 1, 6, 5):
        progress.end(0, offset)
    progress.end(2, 3)
    progress.save(now=True)
    again = Progress(file, "dlq.t", "id")
    done = [(index, offset) for index in range(3) for offset in range(11) if again.is_done(index, offset)]
    assert done == [(0, 0), (0, 1), (0, 4), (0, 5), (0, 6), (0, 9), (2, 3)]
    assert again.first_open() == {0: 2}
    assert not again.was_another


@given(st.lists(st.integers(0, 40)))
def test_ranges_hold_what_was_added(offsets: list[int]) -> None:
    ranges = Ranges()
    for offset in offsets:
        ranges.add(offset)
    assert [offset for offset in range(42) if offset in ranges] == sorted(set(offsets))
    pairs = ranges.pairs()
    assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(pairs))
    assert Ranges(pairs).pairs() == pairs


def test_progress_knows_a_topic_by_its_id(tmp_path: Path) -> None:
    file = tmp_path / "progress.json"
    first = Progress(file, "dlq.t", "first")
    first.end(0, 7)
    first.save(now=True)
    second = Progress(file, "dlq.t", "second")
    assert second.was_another
    assert not second.is_done(0, 7)
    second.end(0, 0)
    second.save(now=True)
    assert not Progress(file, "dlq.t", "second").was_another
    assert Progress(file, "dlq.t", "first").is_done(0, 7)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not a file of an earlier run"),
        ("[]", "not a file of an earlier run"),
        ('{"next": 5}', "not a file of an earlier run"),
        (
            '{"version": 2, "topic": "dlq.t", "topics": {"id": {"0": [[5, 3]]}}}',
            "not a file of an earlier run",
        ),
        ('{"version": 2, "topic": "dlq.t", "topics": {"id": {"0": [[0, 3], [2, 5]]}}}', "not a file of an"),
        ('{"version": 2, "topic": "dlq.other", "topics": {}}', "it is about topic dlq.other"),
        ('{"topic": "dlq.t", "next": {"0": 5}}', "another version of sharecore wrote it"),
        ('{"version": 3, "topic": "dlq.t", "topics": {}}', "another version of sharecore wrote it"),
    ],
)
def test_a_progress_file_of_something_else_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "progress.json"
    file.write_text(text)
    with pytest.raises(CommandFailed, match=words):
        Progress(file, "dlq.t", "id")
    assert file.read_text() == text


def test_topics_whose_settings_are_kept_from_a_client_are_named_and_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{module} required user_bob="secret";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    enabled = [{"name": "errors.deadletterqueue.group.enable", "value": "true"}]
    asked = {
        "letters": (enabled, [Operation.DESCRIBE_CONFIGS]),
        "dlq.hidden": (enabled, [Operation.DESCRIBE]),
        "jobs": ([], [Operation.DESCRIBE_CONFIGS]),
        "unseen": (enabled, []),
    }
    broker = RunningBroker(tmp_path, settings).start()
    try:
        topics = [
            {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": configs}
            for name, (configs, _) in asked.items()
        ]
        created = broker.ask(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=5000)
        assert not any(topic.error_code for topic in created.topics)
        creations = [
            {
                "resource_type": ResourceType.TOPIC,
                "resource_name": name,
                "resource_pattern_type": PatternType.LITERAL,
                "principal": "User:bob",
                "host": "*",
                "operation": operation,
                "permission_type": Permission.ALLOW,
            }
            for name, (_, operations) in asked.items()
            for operation in {Operation.DESCRIBE, *operations}
            if operations
        ]
        broker.ask(ApiKey.CREATE_ACLS, 3, creations=creations)
        client = {
            "bootstrap.servers": f"127.0.0.1:{broker.broker.listeners['SASL_PLAINTEXT'].port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "bob",
            "sasl.password": "secret",
        }
        assert dead_letter_topics(client) == ["letters"]
        assert capsys.readouterr().err.strip() == "no right to DESCRIBE_CONFIGS, skipped: dlq.hidden"
    finally:
        broker.stop()
