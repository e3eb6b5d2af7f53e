from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

import pytest
from tests.harness.running import RunningBroker, join_share_group

from sharecore.errors import ConfigError, ErrorCode
from sharecore.protocol import ApiKey

UPGRADE, SAFE, UNSAFE = 1, 2, 3


class Asked(Protocol):
    """A broker that answers requests."""

    def ask(self, api_key: ApiKey, version: int, **fields: Any) -> Any: ...


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path, {"sharecore.features": "share.version=1"}).start()
    yield running
    running.stop()


def levels(broker: Asked) -> tuple[int, dict[str, int]]:
    """Epoch and finalized levels."""
    software = {"client_software_name": "test", "client_software_version": "1"}
    answer = broker.ask(ApiKey.API_VERSIONS, 4, **software)
    assert {each.name for each in answer.supported_features} >= {
        each.name for each in answer.finalized_features
    }
    return answer.finalized_features_epoch, {
        each.name: each.max_version_level for each in answer.finalized_features
    }


def update(
    broker: RunningBroker, *updates: tuple[str, int, int], version: int = 1, validate_only: bool = False
) -> Any:
    asked = [
        {"feature": name, "max_version_level": level, "upgrade_type": kind} for name, level, kind in updates
    ]
    return broker.ask(
        ApiKey.UPDATE_FEATURES, version, timeout_ms=5000, validate_only=validate_only, feature_updates=asked
    )


def test_levels_change_and_are_kept(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path, {"sharecore.features": "share.version=1"}).start()
    before = {"group.version": 1, "share.version": 1, "transaction.version": 2}
    assert levels(broker) == (1, before)
    for version in (0, 1, 2):
        assert update(broker, ("share.version", 2, UPGRADE), version=version).error_code == 0
    assert levels(broker) == (2, {**before, "share.version": 2})
    answer = update(broker, ("share.version", 0, SAFE), ("transaction.version", 1, UNSAFE))
    assert [(each.feature, each.error_code) for each in answer.results] == [
        ("share.version", 0),
        ("transaction.version", 0),
    ]
    after = {"group.version": 1, "transaction.version": 1}
    assert levels(broker) == (3, after), "a level of 0 is not told"
    broker.stop()
    again = RunningBroker(tmp_path, {"sharecore.features": "share.version=1"}).start()
    assert levels(again) == (3, after), "the setting is for new data directories"
    again.stop()


def test_what_is_said_last_about_a_level_counts(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path).start()
    answer = update(broker, ("share.version", 0, UPGRADE), ("share.version", 1, SAFE), validate_only=True)
    broker.stop()
    assert [(each.feature, each.error_code) for each in answer.results] == [("share.version", 0)] * 2


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (("share.version", 3, UPGRADE), "only supports versions 0-2"),
        (("share.version", -1, SAFE), "cannot be less than 0"),
        (("share.version", 0, UPGRADE), "Can't downgrade the version of this feature without"),
        (("share.version", 2, SAFE), "Can't downgrade to a newer version"),
        (("share.version", 0, 0), "given upgrade type"),
        (("metadata.version", 20, UPGRADE), "does not support this feature"),
    ],
)
def test_an_update_that_makes_no_sense_changes_nothing(
    broker: RunningBroker, asked: tuple[str, int, int], reason: str
) -> None:
    before = levels(broker)
    answer = update(broker, ("transaction.version", 1, SAFE), asked)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert reason in answer.error_message
    assert asked[0] in answer.error_message
    assert levels(broker) == before


def test_a_trial_changes_nothing(broker: RunningBroker) -> None:
    before = levels(broker)
    assert update(broker, ("share.version", 0, SAFE), validate_only=True).error_code == 0
    assert levels(broker) == before


def test_a_new_data_directory_begins_with_the_levels_that_are_set(tmp_path: Path) -> None:
    broker = RunningBroker(
        tmp_path / "new", {"sharecore.features": "share.version=0,group.version=0"}
    ).start()
    assert levels(broker) == (1, {"transaction.version": 2})
    broker.stop()
    for wrong in ("share.version", "share.version=9", "metadata.version=7", "share.version=-1"):
        with pytest.raises(ConfigError, match=r"share\.version from 0 to 2"):
            RunningBroker(tmp_path / wrong, {"sharecore.features": wrong}).start()


SHARE_CALLS: list[tuple[ApiKey, int, dict[str, Any]]] = [
    (ApiKey.SHARE_GROUP_HEARTBEAT, 1, {"group_id": "", "member_id": "", "member_epoch": -9}),
    (ApiKey.SHARE_FETCH, 2, {"group_id": "g", "member_id": "m", "share_session_epoch": 0, "topics": []}),
    (ApiKey.SHARE_ACKNOWLEDGE, 2, {"group_id": "g", "member_id": "m", "share_session_epoch": 1}),
    (ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, {"group_id": "g", "topics": []}),
    (ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, {"group_id": "g", "topics": []}),
]


def test_without_its_feature_a_share_group_waits(broker: RunningBroker) -> None:
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000)
    client = broker.connect()
    epoch = join_share_group(client, "g", "m", ["t"]).member_epoch
    assert update(broker, ("share.version", 0, SAFE)).error_code == 0
    for api, version, fields in SHARE_CALLS:
        assert broker.ask(api, version, **fields).error_code == ErrorCode.UNSUPPORTED_VERSION
    (described,) = broker.ask(ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=["g"]).groups
    (offsets,) = broker.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=[{"group_id": "g"}]).groups
    assert described.error_code == offsets.error_code == ErrorCode.UNSUPPORTED_VERSION
    (listed,) = broker.ask(ApiKey.LIST_GROUPS, 5).groups
    assert (listed.group_id, listed.group_state) == ("g", "Stable")
    keys = {"topic_id": UUID(int=7), "partitions": [{"partition": 0, "leader_epoch": -1}]}
    read = broker.ask(ApiKey.READ_SHARE_GROUP_STATE, 0, group_id="g", topics=[keys])
    assert read.results[0].partitions[0].error_code != ErrorCode.UNSUPPORTED_VERSION, "brokers ask for state"
    assert update(broker, ("share.version", 1, UPGRADE)).error_code == 0
    again = {"group_id": "g", "member_id": "m", "member_epoch": epoch}
    assert client.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, **again).error_code == 0


def test_without_its_feature_there_are_no_consumer_groups(broker: RunningBroker) -> None:
    assert update(broker, ("group.version", 0, SAFE)).error_code == 0
    asked = {"group_id": "c", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]}
    assert broker.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **asked).error_code == (
        ErrorCode.UNSUPPORTED_VERSION
    )
    (described,) = broker.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=["c"]).groups
    assert described.error_code == ErrorCode.UNSUPPORTED_VERSION
