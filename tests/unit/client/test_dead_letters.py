"""Setup of a dead-letter topic: success, errors with a reason, and missing permissions."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.running import RunningBroker, join_share_group

from sharecore.admin import Admin, DeadLetterSetup
from sharecore.admin.acls import AclAdmin
from sharecore.client.configs import ResourceKind, alter_configs, describe_configs
from sharecore.client.dead_letters import COPY, ENABLE, TOPIC_NAME
from sharecore.client.settings import read_connection_settings
from sharecore.client.topics import create_topic
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.security.acl import Acl, Operation, PatternType, Permission, ResourceType

_numbers = itertools.count()
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{_MODULE} required user_bob="secret";',
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "group.share.assignment.interval.ms": "0",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path_factory.mktemp("data"), SETTINGS).start()
    yield running
    running.stop()


@pytest.fixture
def name() -> str:
    return f"n{next(_numbers)}"


def connection(broker: RunningBroker) -> dict[str, str]:
    return {"bootstrap.servers": f"127.0.0.1:{broker.port}", "default.api.timeout.ms": "5000"}


def bobs_connection(broker: RunningBroker) -> dict[str, str]:
    return {
        "bootstrap.servers": f"127.0.0.1:{broker.broker.listeners['SASL_PLAINTEXT'].port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "bob",
        "sasl.password": "secret",
    }


def set_up(connection: dict[str, str], group: str, topic: str, **how: Any) -> DeadLetterSetup:
    async def run() -> DeadLetterSetup:
        async with Admin(connection) as admin:
            return await admin.set_up_dead_letters(group, topic, **how)

    return asyncio.run(run())


def refusal(connection: dict[str, str], group: str, topic: str, **how: Any) -> KafkaError:
    with pytest.raises(KafkaError) as refused:
        set_up(connection, group, topic, **how)
    return refused.value


def configs(broker: RunningBroker, kind: ResourceKind, name: str) -> dict[str, str | None]:
    async def run(transport: Transport) -> dict[str, str | None]:
        return {each.name: each.value for each in (await describe_configs(transport, kind, name)).values()}

    found: dict[str, str | None] = over(broker, run)
    return found


def create(broker: RunningBroker, topic: str, **settings: str) -> None:
    values = {key.replace("_", "."): value for key, value in settings.items()}
    over(broker, lambda transport: create_topic(transport, topic, configs=values))


def over(broker: RunningBroker, act: Any) -> Any:
    async def run() -> Any:
        transport = Transport(read_connection_settings(connection(broker)))
        try:
            return await act(transport)
        finally:
            await transport.close()

    return asyncio.run(run())


def allow(broker: RunningBroker, kind: ResourceType, name: str, *operations: Operation) -> None:
    async def run() -> None:
        async with AclAdmin(connection(broker)) as admin:
            await admin.create(
                Acl(kind, name, PatternType.LITERAL, "User:bob", "*", operation, Permission.ALLOW)
                for operation in operations
            )

    asyncio.run(run())


def test_the_topic_is_created_and_permitted_and_the_group_set(broker: RunningBroker, name: str) -> None:
    first = set_up(connection(broker), name, f"dlq.{name}", create=True, partitions=3, copy=False)
    assert first.changes == (
        f"topic dlq.{name} created with {ENABLE}=true",
        f"group {name}: {TOPIC_NAME}=dlq.{name}",
    )
    assert first.unchecked == ()
    created = broker.look(lambda each: each.topics.get(f"dlq.{name}"))
    assert created is not None
    assert len(created.partitions) == 3
    assert configs(broker, ResourceKind.TOPIC, f"dlq.{name}")[ENABLE] == "true"
    assert configs(broker, ResourceKind.GROUP, name)[COPY] == "false"
    assert set_up(connection(broker), name, f"dlq.{name}", copy=False).changes == ()
    assert set_up(connection(broker), name, f"dlq.{name}").changes == (f"group {name}: {COPY}=true",)


def test_a_topic_that_exists_is_permitted_and_keeps_its_settings(broker: RunningBroker, name: str) -> None:
    create(broker, f"dlq.{name}", retention_ms="12345678")
    assert f"topic dlq.{name}: {ENABLE}=true" in set_up(connection(broker), name, f"dlq.{name}").changes
    found = configs(broker, ResourceKind.TOPIC, f"dlq.{name}")
    assert (found[ENABLE], found["retention.ms"]) == ("true", "12345678")


def test_what_rules_dead_letters_out_is_said_before_anything_is_changed(
    broker: RunningBroker, name: str
) -> None:
    create(broker, f"dlq.{name}.c", cleanup_policy="compact")
    create(broker, f"dlq.{name}.r")
    member = broker.connect()
    join_share_group(member, f"{name}.reader", "m", [f"dlq.{name}.r"])
    member.ask(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        group_id=f"{name}.plain",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[f"dlq.{name}.r"],
        topic_partitions=[],
    )
    for group, topic, code, words in (
        (name, f"dlq.{name}", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "--create"),
        (name, f"{name}.dlq", ErrorCode.INVALID_TOPIC_EXCEPTION, f"use dlq.{name}.dlq"),
        (name, "__letters", ErrorCode.INVALID_TOPIC_EXCEPTION, "__letters"),
        (name, f"dlq.{name}.c", ErrorCode.INVALID_CONFIG, "cleanup.policy=compact"),
        (f"{name}.reader", f"dlq.{name}.r", ErrorCode.INVALID_CONFIG, "its own dead-letter records"),
        (f"{name}.plain", f"dlq.{name}.r", ErrorCode.GROUP_ID_NOT_FOUND, "is a consumer group"),
    ):
        error = refusal(connection(broker), group, topic, create=words != "--create")
        assert (error.code, words in str(error)) == (code, True), error
        assert configs(broker, ResourceKind.GROUP, group)[TOPIC_NAME] == ""
    assert broker.look(lambda each: each.topics.get(f"{name}.dlq")) is None
    assert configs(broker, ResourceKind.TOPIC, f"dlq.{name}.r")[ENABLE] == "false"


def test_a_topic_that_brokers_create_by_themselves_may_be_missing(tmp_path: Path) -> None:
    settings = {
        "errors.deadletterqueue.auto.create.topics.enable": "true",
        "errors.deadletterqueue.topic.name.prefix": "",
    }
    broker = RunningBroker(tmp_path, settings).start()
    try:
        assert f"group jobs: {TOPIC_NAME}=given-up" in set_up(connection(broker), "jobs", "given-up").changes
    finally:
        broker.stop()


def test_a_cluster_that_writes_no_dead_letters_is_told_what_to_raise(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path).start()
    try:
        update = {"feature": "share.version", "max_version_level": 1, "upgrade_type": 2}
        answer = broker.ask(
            ApiKey.UPDATE_FEATURES, 1, timeout_ms=5000, validate_only=False, feature_updates=[update]
        )
        assert answer.error_code == 0
        error = refusal(connection(broker), "jobs", "dlq.jobs", create=True)
        assert "kafka-features.sh upgrade --feature share.version=2" in str(error)
        assert broker.look(lambda each: each.topics.get("dlq.jobs")) is None
    finally:
        broker.stop()


def test_each_right_that_is_missing_is_named_until_none_is(broker: RunningBroker, name: str) -> None:
    topic, bob = f"dlq.{name}", bobs_connection(broker)

    def missing() -> str:
        return str(refusal(bob, name, topic, create=True)).split(" is missing")[0].split("the right ")[1]

    create_asked = refusal(bob, name, topic, create=True)
    assert create_asked.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert missing() == f"DESCRIBE on topic {topic}"
    allow(broker, ResourceType.TOPIC, topic, Operation.DESCRIBE)
    assert missing() == f"CREATE on topic {topic} or the cluster"
    allow(broker, ResourceType.TOPIC, topic, Operation.CREATE)
    assert missing() == f"ALTER_CONFIGS on group {name}"
    create(broker, f"{topic}.2")
    allow(broker, ResourceType.TOPIC, f"{topic}.2", Operation.DESCRIBE)
    assert "ALTER_CONFIGS on topic" in str(refusal(bob, name, f"{topic}.2"))
    allow(broker, ResourceType.GROUP, name, Operation.ALTER_CONFIGS)
    assert missing() == f"ALTER_CONFIGS on topic {topic}"
    allow(broker, ResourceType.TOPIC, topic, Operation.ALTER_CONFIGS)
    done = set_up(bob, name, topic)
    assert [each.split(": ")[0] for each in done.unchecked] == [
        f"whether errors.deadletterqueue.topic.name.prefix allows {topic}",
        f"whether {name} reads {topic} itself",
    ]


def test_who_may_only_look_is_content_with_what_an_administrator_set_up(
    broker: RunningBroker, name: str
) -> None:
    topic = f"dlq.{name}"
    set_up(connection(broker), name, topic, create=True)
    allow(broker, ResourceType.TOPIC, topic, Operation.DESCRIBE_CONFIGS, Operation.DESCRIBE)
    allow(broker, ResourceType.GROUP, name, Operation.DESCRIBE_CONFIGS, Operation.READ)
    assert set_up(bobs_connection(broker), name, topic).changes == ()


def test_another_prefix_is_allowed_where_the_brokers_allow_it(broker: RunningBroker, name: str) -> None:
    key = "errors.deadletterqueue.topic.name.prefix"

    def change(value: str | None) -> None:
        async def act(transport: Transport) -> None:
            values, unset = ({key: value}, ()) if value is not None else ({}, (key,))
            await alter_configs(transport, ResourceKind.BROKER, "", values, unset=unset)

        over(broker, act)

    change("dead-")
    try:
        assert "use dead-dlq." in str(refusal(connection(broker), name, f"dlq.{name}", create=True))
        assert set_up(connection(broker), name, f"dead-{name}", create=True).changes
    finally:
        change(None)
