"""`sharecore.admin` and `sharecore groups`, on sharecore and on Apache Kafka."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer
from tests.harness.broker import SHARECORE, Broker
from tests.harness.clients import QUIET, produce, settle, share_consumer, take
from tests.interop.conftest import KIND

from sharecore.admin import Admin, BlockingAdmin, ConfigSource, GroupListing, Target, TopicPartition
from sharecore.errors import ErrorCode, KafkaError

# Kafka writes a new start offset only with the next change
DONE = (6,) if KIND == "sharecore" else (0, 6)


@pytest.fixture
def admin(broker: Broker) -> Iterator[BlockingAdmin]:
    with BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin:
        yield admin


@pytest.fixture
def consumed(broker: Broker, topic: str, group: str) -> None:
    """A group without members that has done 6 of 10 records."""
    values = [b"%d" % number for number in range(10)]
    produce(broker.bootstrap, topic, values[:6])
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        settle(consumer, 6)
    produce(broker.bootstrap, topic, values[6:])


def sharecore(broker: Broker, *arguments: str) -> tuple[int, str, str]:
    """Status and output of the program."""
    environment = os.environ | {"SHARECORE_BOOTSTRAP_SERVER": broker.bootstrap}
    ended = subprocess.run(
        [SHARECORE, "groups", *arguments], capture_output=True, text=True, timeout=60, env=environment
    )
    return ended.returncode, ended.stdout, ended.stderr


def refusal(error: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return error.value.code


def test_a_group_with_members(broker: Broker, topic: str, group: str, admin: BlockingAdmin) -> None:
    produce(broker.bootstrap, topic, [b"x"] * 3)
    with share_consumer(broker.bootstrap, group, [topic], **{"client.id": "me"}) as consumer:
        take(consumer)
        assert GroupListing(group, "share", "Stable", "share") in admin.list_groups()
        found = admin.describe(group)
        assert (found.state, found.assignor) == ("Stable", "simple")
        assert found.epoch >= found.assignment_epoch > 0
        (member,) = admin.members(group)
        assert (member.client_id, member.host) == ("me", "/127.0.0.1")
        assert (member.subscribed, member.assignment) == ((topic,), (TopicPartition(topic, 0),))
        plan = admin.plan_reset(group, Target.latest())
        with pytest.raises(KafkaError) as refused:
            admin.reset(plan)
        assert refusal(refused) is ErrorCode.NON_EMPTY_GROUP
        with pytest.raises(KafkaError) as refused:
            admin.delete_group(group)
        assert refusal(refused) is ErrorCode.NON_EMPTY_GROUP


@pytest.mark.usefixtures("consumed")
def test_offsets_and_resets(broker: Broker, topic: str, group: str, admin: BlockingAdmin) -> None:
    partition = TopicPartition(topic, 0)
    (offset,) = admin.offsets(group)
    assert (offset.partition, offset.lag, offset.error) == (partition, 4, None)
    assert offset.start_offset in DONE
    assert admin.offsets(group, [partition]) == [offset]
    for target, after in (
        (Target.earliest(), 0),
        (Target.latest(), 10),
        (Target.at(datetime.now(UTC) + timedelta(hours=1)), 10),
        (Target.at(datetime.now(UTC) - timedelta(hours=1)), 0),
        (Target.offset(4), 4),
        (Target.offset(10**9), 10),
    ):
        plan = admin.plan_reset(group, target)
        assert [(change.partition, change.after) for change in plan.changes] == [(partition, after)]
        before = admin.offsets(group)[0].start_offset
        assert plan.changes[0].before == before
        result = admin.reset(plan)
        assert (result.done, result.failed) == (tuple(plan.changes), ())
        assert admin.offsets(group)[0].start_offset == after
    admin.reset(admin.plan_reset(group, Target.offset(7), partitions=[partition]))
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        assert [message.value() for message in settle(consumer, 3)] == [b"7", b"8", b"9"]


def test_a_reset_by_time_finds_the_first_that_is_not_older(
    broker: Broker, topic: str, group: str, admin: BlockingAdmin
) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    for minute in range(5):
        moment = noon + timedelta(minutes=minute)
        producer.produce(topic, b"%d" % minute, timestamp=round(moment.timestamp() * 1000))
    assert producer.flush(10) == 0
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        settle(consumer, 5)
    plan = admin.plan_reset(group, Target.at(noon + timedelta(minutes=2, seconds=30)), topics=[topic])
    assert [change.after for change in plan.changes] == [3]


@pytest.mark.usefixtures("consumed")
def test_offsets_and_groups_are_deleted(topic: str, group: str, admin: BlockingAdmin) -> None:
    errors = admin.delete_offsets(group, [topic, "no-such-topic"])
    assert errors[topic] is None
    assert errors["no-such-topic"] is not None
    assert [each.start_offset for each in admin.offsets(group)] in ([], [None])
    admin.delete_group(group)
    assert group not in {each.group_id for each in admin.list_groups()}
    with pytest.raises(KafkaError) as refused:
        admin.describe(group)
    assert refusal(refused) is ErrorCode.GROUP_ID_NOT_FOUND
    with pytest.raises(KafkaError) as refused:
        admin.delete_group(group)
    assert refusal(refused) is ErrorCode.GROUP_ID_NOT_FOUND


def test_settings_of_a_group(group: str, admin: BlockingAdmin) -> None:
    name = "share.record.lock.duration.ms"
    assert admin.configs(group)[name].source is not ConfigSource.GROUP
    admin.alter_configs(group, {name: 20_000, "share.isolation.level": "read_committed"})
    entry = admin.configs(group)[name]
    assert (entry.value, entry.own) == ("20000", True)
    admin.alter_configs(group, {name: 25_000}, validate_only=True)
    assert admin.configs(group)[name].value == "20000"
    with pytest.raises(KafkaError) as refused:
        admin.alter_configs(group, {name: 1})
    assert refusal(refused) is ErrorCode.INVALID_CONFIG
    admin.alter_configs(group, unset=[name])
    assert not admin.configs(group)[name].own


def test_what_is_not_there(topic: str, group: str, admin: BlockingAdmin) -> None:
    with pytest.raises(KafkaError) as refused:
        admin.describe("no-such-group")
    assert refusal(refused) is ErrorCode.GROUP_ID_NOT_FOUND
    with pytest.raises(KafkaError) as refused:
        admin.plan_reset("no-such-group", Target.earliest(), topics=["no-such-topic"])
    assert refusal(refused) in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.usefixtures("consumed")
def test_many_questions_at_once(broker: Broker, group: str) -> None:
    async def main() -> None:
        async with Admin(bootstrap_servers=broker.bootstrap) as admin:
            answers = await asyncio.gather(*(admin.describe(group) for _ in range(50)))
            assert {answer.group_id for answer in answers} == {group}

    asyncio.run(main())


@pytest.mark.usefixtures("consumed")
def test_the_command_line(broker: Broker, topic: str, group: str) -> None:
    status, shown, _ = sharecore(broker, "list", "--type", "share", "--state", "empty")
    assert status == 0
    assert [group, "share", "Empty", "-"] in [line.split() for line in shown.splitlines()]
    status, shown, _ = sharecore(broker, "describe", group)
    assert status == 0
    assert shown.splitlines()[0].startswith(f"share group {group}: Empty, epoch ")
    name, start, lag = shown.splitlines()[-1].split()
    assert (name, int(start) in DONE, lag) == (f"{topic}-0", True, "4")
    assert sharecore(broker, group)[1] == shown
    status, shown, _ = sharecore(broker, "reset", group, "--to-earliest")
    assert (status, shown.splitlines()[1].split()) == (0, [f"{topic}-0", start, "0"])
    assert "nothing has changed yet" in shown
    status, shown, _ = sharecore(
        broker, "reset", group, "--to-offset", "2", "--topic", f"{topic}:0", "--execute"
    )
    assert (status, shown.splitlines()[-1]) == (0, "1 of 1 partitions reset")
    assert "  2             8" in sharecore(broker, "describe", group)[1]
    status, shown, _ = sharecore(broker, "config", group, "--set", "share.delivery.count.limit=4")
    assert status == 0
    assert ["share.delivery.count.limit", "4", "group"] in [line.split() for line in shown.splitlines()]
    status, _, said = sharecore(broker, "config", group, "--set", "share.delivery.count.limit=4000")
    assert (status, said.count("\n")) == (1, 1)
    assert sharecore(broker, "delete-offsets", group, "--topic", topic)[0] == 0
    status, shown, _ = sharecore(broker, "delete", group, "no-such-group")
    assert status == 1
    assert [line.split()[1] for line in shown.splitlines()[1:]] == ["deleted", "GROUP_ID_NOT_FOUND"]
    status, _, said = sharecore(broker, "describe", group)
    assert (status, said.startswith("sharecore: GROUP_ID_NOT_FOUND")) == (1, True)


def test_a_broker_that_is_gone_is_missed_within_the_time_given(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": 500}
    began = time.monotonic()
    with BlockingAdmin(settings) as admin, pytest.raises(KafkaError) as refused:
        admin.list_groups()
    assert refusal(refused) is ErrorCode.NETWORK_EXCEPTION
    assert time.monotonic() - began < 5
