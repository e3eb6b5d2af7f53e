"""Dead letters beyond `make differential-dlq`: refusals, counts and waits."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import REJECT, Member, acquired, errors, produce

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

GROUP = 32
NAME, REQUIRED = "errors.deadletterqueue.topic.name", "errors.deadletterqueue.required"
COUNTS = ["sharecore.dead.letters.written", "sharecore.dead.letters.missing"]
numbers = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    settings = {"group.share.assignment.interval.ms": "0", "errors.deadletterqueue.topic.name.prefix": ""}
    running = RunningBroker(tmp_path_factory.mktemp("data"), settings).start()
    yield running
    running.stop()


def create(broker: RunningBroker, name: str, **settings: str) -> None:
    configs = [{"name": key.replace("_", "."), "value": value} for key, value in settings.items()]
    asked = {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": configs}
    answer = broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    assert answer.topics[0].error_code == 0, answer


def configure(broker: RunningBroker, group: str, **settings: str) -> Any:
    names = {"topic": NAME, "required": REQUIRED, "locks": "share.partition.max.record.locks"}
    configs = [
        {"name": names.get(key, key.replace("_", ".")), "config_operation": 0, "value": value}
        for key, value in settings.items()
    ]
    asked = {"resource_type": GROUP, "resource_name": group, "configs": configs}
    answer = broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked], validate_only=False)
    return answer.responses[0]


def counts(broker: RunningBroker, group: str) -> list[int]:
    asked = {"resource_type": GROUP, "resource_name": group, "configuration_keys": COUNTS}
    answer = broker.ask(ApiKey.DESCRIBE_CONFIGS, 4, resources=[asked])
    entries = {entry.name: entry for entry in answer.results[0].configs}
    assert all(entries[name].read_only for name in COUNTS)
    return [int(entries[name].value) for name in COUNTS]


@pytest.fixture
def member(broker: RunningBroker) -> Member:
    """A member of a group whose dead-letter topic does not exist."""
    name = f"t{next(numbers)}"
    create(broker, name)
    assert (
        configure(broker, f"g-{name}", topic=f"dlq-{name}", share_auto_offset_reset="earliest").error_code
        == 0
    )
    return Member(broker, f"g-{name}", name)


def test_a_group_is_not_given_its_own_letters(broker: RunningBroker, member: Member) -> None:
    source = member.group.removeprefix("g-")
    refused = configure(broker, member.group, topic=source)
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert f"reads {source}" in refused.error_message
    assert configure(broker, "another", topic=source).error_code == 0


def test_what_is_written_and_what_is_not_is_counted(
    broker: RunningBroker, member: Member, caplog: pytest.LogCaptureFixture
) -> None:
    source = member.group.removeprefix("g-")
    produce(broker, source, 10)
    assert acquired(member.fetch(0)) == {0: [(0, 9, 1)]}
    assert counts(broker, member.group) == [0, 0]
    with caplog.at_level(logging.ERROR):
        assert errors(member.acknowledge({0: [(0, 2, REJECT)]})) == [(0, 0, 0)]
        broker.until(lambda _: counts_of(broker, member.group)[1] == 3)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"group {member.group}, {source}-0, offsets 0 to 2 (rejected): archived without")
    create(broker, f"dlq-{source}", errors_deadletterqueue_group_enable="true")
    member.acknowledge({0: [(3, 9, REJECT)]})
    broker.until(lambda _: counts_of(broker, member.group) == (7, 3))
    assert counts(broker, member.group) == [7, 3]


@pytest.mark.parametrize("name", ["bad name!", "a" * 250, ".", "..", "grüße", "__consumer_offsets"])
def test_a_name_that_no_topic_can_have_is_refused(broker: RunningBroker, name: str) -> None:
    refused = configure(broker, "g-illegal", topic=name)
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert "DLQ topic name" in refused.error_message


def test_a_name_that_may_work_later_is_taken_with_a_warning(
    broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    trouble = "sharecore.dead.letters.trouble"

    def told() -> str:
        resource = {"resource_type": 32, "resource_name": "g-later", "configuration_keys": [trouble]}
        (entry,) = broker.ask(ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource]).results[0].configs
        text: str = entry.value
        return text

    assert told() == ""
    with caplog.at_level(logging.WARNING):
        assert configure(broker, "g-later", topic="dlq-not-there").error_code == 0
    assert (
        "group g-later: cannot write its dead-letter records: there is no topic dlq-not-there" in caplog.text
    )
    assert "there is no topic dlq-not-there" in told()
    create(broker, "dlq-not-there", errors_deadletterqueue_group_enable="true")
    assert told() == ""


def test_a_required_topic_is_waited_for_within_the_window(
    broker: RunningBroker, member: Member, caplog: pytest.LogCaptureFixture
) -> None:
    source = member.group.removeprefix("g-")
    assert configure(broker, member.group, required="true", locks="100").error_code == 0
    for _ in range(3):
        produce(broker, source, 50)
    with caplog.at_level(logging.WARNING):
        leased = acquired(member.fetch(0))[0]
        assert (leased[0][0], leased[-1][1]) == (0, 99)
        assert errors(member.acknowledge({0: [(0, 99, REJECT)]})) == [(0, 0, 0)]
    assert acquired(member.fetch(0, max_wait_ms=100)) == {}, "the window is full"
    assert any("wait for their dead-letter records" in record.getMessage() for record in caplog.records)
    assert counts(broker, member.group) == [0, 0]
    create(broker, f"dlq-{source}", errors_deadletterqueue_group_enable="true")
    broker.until(lambda _: counts_of(broker, member.group) == (100, 0))
    assert acquired(member.fetch(0, max_wait_ms=5000)) == {0: [(100, 149, 1)]}


def counts_of(broker: RunningBroker, group: str) -> tuple[int, int]:
    found = broker.broker.share.dead_letters.counts.get(group)
    return (0, 0) if found is None else (found.letters, found.without_letter)


def test_letters_that_a_required_topic_cannot_take_are_told_apart_by_the_setting(
    broker: RunningBroker, member: Member
) -> None:
    source = member.group.removeprefix("g-")
    produce(broker, source, 1)
    assert configure(broker, member.group, required="true").error_code == 0
    member.fetch(0)
    member.acknowledge({0: [(0, 0, REJECT)]})
    assert counts_of(broker, member.group) == (0, 0)
    assert configure(broker, member.group, required="false").error_code == 0
    broker.until(lambda _: counts_of(broker, member.group) == (0, 1))
