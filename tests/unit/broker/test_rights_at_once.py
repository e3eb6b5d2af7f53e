"""Changed permissions apply from the next request of open connections and share sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.harness.batches import batch
from tests.harness.running import Client, RunningBroker
from tests.unit.broker.share_member import ACCEPT, Member, acquired, errors, produce

from sharecore.config.security import STANDARD_AUTHORIZER
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey
from sharecore.security.acl import Operation, PatternType, Permission, ResourceType

NO_GROUP, NO_TOPIC = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'user_alice="of-alice" user_bob="of-bob";'
    ),
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "group.share.assignment.interval.ms": "0",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path_factory.mktemp("data"), SETTINGS).start()
    yield running
    running.stop()


def log_in(broker: RunningBroker, user: str) -> Client:
    client = Client(broker.look(lambda each: each.listeners["SASL_PLAINTEXT"].port))
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    said = f"\0{user}\0of-{user}".encode()
    assert client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=said).error_code == 0
    return client


@pytest.fixture
def alice(broker: RunningBroker) -> Iterator[Client]:
    client = log_in(broker, "alice")
    yield client
    client.close()


@pytest.fixture
def bob(broker: RunningBroker) -> Iterator[Client]:
    client = log_in(broker, "bob")
    yield client
    client.close()


class Right:
    """An access control entry; in force from `give` to `take`."""

    def __init__(
        self,
        broker: RunningBroker,
        kind: int,
        name: str,
        operation: int = Operation.READ,
        *,
        user: str = "alice",
    ) -> None:
        self._broker = broker
        self._kind, self._name, self._operation, self._user = kind, name, operation, f"User:{user}"

    def give(self, permission: int = Permission.ALLOW) -> None:
        entry = {
            "resource_type": self._kind,
            "resource_name": self._name,
            "resource_pattern_type": PatternType.LITERAL,
            "principal": self._user,
            "host": "*",
            "operation": self._operation,
            "permission_type": permission,
        }
        answer = self._broker.ask(ApiKey.CREATE_ACLS, 3, creations=[entry])
        assert answer.results[0].error_code == 0

    def take(self, permission: int = Permission.ALLOW) -> None:
        entry = {
            "resource_type_filter": self._kind,
            "resource_name_filter": self._name,
            "pattern_type_filter": PatternType.LITERAL,
            "principal_filter": self._user,
            "host_filter": None,
            "operation": self._operation,
            "permission_type": permission,
        }
        answer = self._broker.ask(ApiKey.DELETE_ACLS, 3, filters=[entry])
        assert len(answer.filter_results[0].matching_acls) == 1


def refused(member: Member, **fields: Any) -> int:
    """Return the error of a whole ShareFetch, which does not increment the session epoch."""
    return int(member.fetch(epoch=member.epoch, **fields).error_code)


def test_a_share_session_is_held_to_rights_that_come_and_go(
    broker: RunningBroker, topic: str, member: Member, alice: Client
) -> None:
    group_right = Right(broker, ResourceType.GROUP, member.group)
    topic_right = Right(broker, ResourceType.TOPIC, topic)
    produce(broker, topic, 3)
    member.client = alice
    assert refused(member) == NO_GROUP
    group_right.give()
    assert errors(member.fetch(0)) == [(0, NO_TOPIC, 0)]
    topic_right.give()
    assert acquired(member.fetch()) == {0: [(0, 2, 1)]}
    assert errors(member.fetch(acks={0: [(0, 0, ACCEPT)]})) == [(0, 0, 0)]

    topic_right.give(Permission.DENY)
    produce(broker, topic, 1)
    denied = member.fetch(acks={0: [(1, 1, ACCEPT)]})
    assert (errors(denied), acquired(denied)) == ([(0, NO_TOPIC, NO_TOPIC)], {})
    assert errors(member.acknowledge({0: [(1, 1, ACCEPT)]})) == [(0, NO_TOPIC, 0)]
    topic_right.take(Permission.DENY)
    assert errors(member.acknowledge({0: [(1, 1, ACCEPT)]})) == [(0, 0, 0)], "nothing of it was acknowledged"
    assert acquired(member.fetch()) == {0: [(3, 3, 1)]}, "nor acquired"

    topic_right.take()
    assert errors(member.acknowledge({0: [(2, 2, ACCEPT)]})) == [(0, NO_TOPIC, 0)]
    assert errors(member.fetch()) == [(0, NO_TOPIC, 0)]
    topic_right.give()
    assert errors(member.fetch(acks={0: [(2, 2, ACCEPT)]})) == [(0, 0, 0)]
    group_right.take()
    assert refused(member, acks={0: [(3, 3, ACCEPT)]}) == NO_GROUP
    assert member.acknowledge({0: [(3, 3, ACCEPT)]}, epoch=member.epoch).error_code == NO_GROUP
    group_right.give()
    assert errors(member.acknowledge({0: [(3, 3, ACCEPT)]})) == [(0, 0, 0)]


def test_whoever_goes_on_with_anothers_session_is_held_to_their_own_rights(
    broker: RunningBroker, topic: str, member: Member, alice: Client, bob: Client
) -> None:
    for kind, name in ((ResourceType.GROUP, member.group), (ResourceType.TOPIC, topic)):
        Right(broker, kind, name).give()
    for _ in range(2):
        produce(broker, topic, 1)
    member.client = alice
    assert acquired(member.fetch(0, max_records=1)) == {0: [(0, 0, 1)]}
    member.client = bob
    assert refused(member, acks={0: [(0, 0, ACCEPT)]}) == NO_GROUP
    Right(broker, ResourceType.GROUP, member.group, user="bob").give()
    denied = member.fetch(acks={0: [(0, 0, ACCEPT)]})
    assert (errors(denied), acquired(denied)) == ([(0, NO_TOPIC, NO_TOPIC)], {})
    member.client = alice
    taken = member.fetch(acks={0: [(0, 0, ACCEPT)]})
    assert (errors(taken), acquired(taken)) == ([(0, 0, 0)], {0: [(1, 1, 1)]})


def test_a_producer_is_held_to_rights_that_come_and_go(
    broker: RunningBroker, topic: str, alice: Client
) -> None:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch([b"x"])}]}]

    def produced() -> int:
        answer = alice.ask(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=5000, topic_data=data)
        return int(answer.responses[0].partition_responses[0].error_code)

    right = Right(broker, ResourceType.TOPIC, topic, Operation.WRITE)
    assert produced() == NO_TOPIC
    right.give()
    assert [produced(), produced()] == [0, 0]
    right.give(Permission.DENY)
    assert produced() == NO_TOPIC
    right.take(Permission.DENY)
    assert produced() == 0
    right.take()
    assert produced() == NO_TOPIC


def test_many_topics_beside_a_long_expression_are_answered(broker: RunningBroker, alice: Client) -> None:
    Right(broker, ResourceType.GROUP, "long").give()
    Right(broker, ResourceType.TOPIC, "*", Operation.DESCRIBE).give()
    answer = alice.ask(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        group_id="long",
        member_id="member",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[f"topic-{number}" for number in range(300)],
        subscribed_topic_regex="a|" * 600 + "b",
        topic_partitions=[],
    )
    assert answer.error_code == 0
    assert answer.member_epoch > 0
