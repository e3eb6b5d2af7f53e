"""Share requests skip checks that cannot refuse them, and are refused as soon as a check can."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import ACCEPT, Member, acquired, produce

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

SAFE_DOWNGRADE = 2


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path, {"group.share.assignment.interval.ms": "0"}).start()
    yield running
    running.stop()


def test_a_feature_that_is_switched_off_refuses_the_next_request_of_an_open_session(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 1)
    assert acquired(member.fetch(0)) == {0: [(0, 0, 1)]}
    off = {"feature": "share.version", "max_version_level": 0, "upgrade_type": SAFE_DOWNGRADE}
    broker.ask(ApiKey.UPDATE_FEATURES, 1, timeout_ms=5000, validate_only=False, feature_updates=[off])
    answer = member.fetch(acks={0: [(0, 0, ACCEPT)]})
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_quota_that_is_set_counts_from_the_next_request_of_an_open_connection(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    for _ in range(2):
        produce(broker, topic, 1)
    first = member.fetch(0, max_records=1)
    assert (acquired(first), first.throttle_time_ms) == ({0: [(0, 0, 1)]}, 0)
    entry = {
        "entity": [{"entity_type": "client-id", "entity_name": None}],
        "ops": [{"key": "consumer_byte_rate", "value": 1.0, "remove": False}],
    }
    answer = broker.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=[entry], validate_only=False)
    assert answer.entries[0].error_code == 0
    second = member.fetch(0, max_wait_ms=0)
    assert second.throttle_time_ms > 0 or acquired(second) == {}


def test_a_session_goes_on_over_another_connection_and_ends_for_both(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 1)
    assert acquired(member.fetch(0)) == {0: [(0, 0, 1)]}
    first, member.client = member.client, broker.connect()
    assert member.fetch().error_code == 0, "the second connection continues the session"
    second, member.client = member.client, first
    assert member.fetch(0, epoch=0).error_code == 0, "a new session takes the place of the old one"
    member.client = second
    assert member.fetch(epoch=2).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH, "the old one expects 2"
    member.client = first
    assert member.fetch(epoch=-1).error_code == 0
    member.client = second
    assert member.fetch(epoch=3).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
