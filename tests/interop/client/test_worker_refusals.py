"""What a worker says at its start where a right is missing or its group does not permit what it needs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.harness.aio import in_loop
from tests.harness.broker import Broker
from tests.harness.clients import QUIET, configure_group, create_topic
from tests.harness.listeners import Listeners
from tests.interop.client.conftest import KINDS

from sharecore.client import Backoff, Record, worker
from sharecore.errors import ErrorCode, KafkaError

TOPIC, PASSWORD, PATIENCE = "jobs", "nothing", 30
READ_TOPIC = (ResourceType.TOPIC, TOPIC, AclOperation.READ)
SEE_MISSING = (ResourceType.TOPIC, "missing", AclOperation.DESCRIBE)
Right = tuple[ResourceType, str, AclOperation]


@pytest.fixture(scope="module", params=KINDS)
def listeners(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Listeners]:
    made = Listeners(tmp_path_factory.mktemp("listeners"), request.param)
    made.start()
    create_topic(made.address("PLAINTEXT"), TOPIC)
    yield made
    made.kill()


def user_with(listeners: Listeners, name: str, rights: list[Right]) -> dict[str, str]:
    """Create a user who has these rights and no other; return the settings of its clients."""
    admin = AdminClient({"bootstrap.servers": listeners.address("PLAINTEXT"), **QUIET})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    user = UserScramCredentialUpsertion(name, info, PASSWORD.encode())
    admin.alter_user_scram_credentials([user])[name].result(PATIENCE)
    bindings = [
        AclBinding(
            kind, on, ResourcePatternType.LITERAL, f"User:{name}", "*", operation, AclPermissionType.ALLOW
        )
        for kind, on, operation in rights
    ]
    for answer in admin.create_acls(bindings).values() if bindings else ():
        answer.result(PATIENCE)
    return listeners.client("SASL_SSL", "SCRAM-SHA-512") | {"sasl.username": name, "sasl.password": PASSWORD}


@pytest.mark.parametrize(
    ("number", "rights", "needs", "words"),
    [
        (1, [], {}, f"the right READ on topic {TOPIC} is missing"),
        (2, [READ_TOPIC], {"from_beginning": False}, "the right READ on group g2 is missing"),
        (3, [READ_TOPIC, SEE_MISSING], {"create_topics": True}, "the right CREATE on topic missing"),
        (4, [READ_TOPIC], {"max_deliveries": 3}, "the right ALTER_CONFIGS on group g4 is missing"),
        (5, [READ_TOPIC], {"from_beginning": True}, "grant ALTER_CONFIGS on the group"),
        (6, [READ_TOPIC], {"dead_letters": "dlq.jobs"}, "dlq.jobs|writes no dead letters"),
        (7, [READ_TOPIC], {"retry": Backoff()}, "the right ALTER_CONFIGS on group g7 is missing"),
    ],
)
@in_loop
async def test_a_missing_right_is_named(
    listeners: Listeners, number: int, rights: list[Right], needs: dict[str, Any], words: str
) -> None:
    group = f"g{number}"
    if number > 2:
        rights = [*rights, (ResourceType.GROUP, group, AclOperation.READ)]
    settings = await asyncio.to_thread(user_with, listeners, f"user-{number}", rights)

    @worker([TOPIC, "missing"] if number == 3 else TOPIC, **{"from_beginning": False, **needs})
    async def handle(_: Record) -> None:
        raise AssertionError("there are no records")

    async with asyncio.timeout(PATIENCE):
        with pytest.raises(KafkaError, match=words) as raised:
            await handle.run({**settings, "group.id": group})
    assert raised.value.code in (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        # Apache Kafka before 4.4
        ErrorCode.UNSUPPORTED_VERSION,
    )


@in_loop
async def test_a_group_without_renewals_is_refused(broker: Broker, topic: str, group: str) -> None:
    await asyncio.to_thread(
        configure_group, broker.bootstrap, group, **{"share_renew_acknowledge_enable": "false"}
    )
    handle = worker(topic)(print)
    with pytest.raises(KafkaError, match=f"groups config {group} --set share.renew.acknowledge.enable=true"):
        await handle.run(bootstrap_servers=broker.bootstrap, group_id=group)
