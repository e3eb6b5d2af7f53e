"""What members of share groups see when a broker stops, and after its restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.harness.running import RunningBroker, join_share_group

from sharecore.protocol import ApiKey

SETTINGS = {"auto.create.topics.enable": "true"}


def join(broker: RunningBroker, member: str, epoch: int = 0) -> Any:
    joined = broker.ask(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        group_id="g",
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=["t"] if epoch == 0 else None,
    )
    assert joined.error_code == 0
    return joined


def test_a_fetch_that_waits_does_not_hold_the_broker_up_and_the_member_is_known_after(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path, SETTINGS).start()
    asked = [{"topic_id": None, "name": "t"}]
    broker.ask(ApiKey.METADATA, 12, topics=asked, allow_auto_topic_creation=True)
    joined = join_share_group(broker.connect(), "g", "m", ["t"])
    topic_id = joined.assignment.topic_partitions[0].topic_id
    client = broker.connect()
    client.send(
        ApiKey.SHARE_FETCH,
        2,
        group_id="g",
        member_id="m",
        share_session_epoch=0,
        max_wait_ms=120_000,
        min_bytes=1,
        max_records=10,
        batch_size=10,
        topics=[{"topic_id": topic_id, "partitions": [{"partition_index": 0}]}],
        forgotten_topics_data=[],
    )
    broker.until_received(client)
    broker.loop.call_soon_threadsafe(broker._stopping.set)
    broker._thread.join(30)
    assert not broker._thread.is_alive()

    again = RunningBroker(tmp_path, SETTINGS).start()
    assert join(again, "m", joined.member_epoch).member_epoch == joined.member_epoch
    (group,) = again.ask(ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=["g"]).groups
    assert (group.group_state, [member.member_id for member in group.members]) == ("Stable", ["m"])
    again.stop()
