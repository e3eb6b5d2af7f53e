"""Apache's formatter reads the records that a share group leaves in __consumer_offsets."""

from __future__ import annotations

import json
from typing import Any

from tests.harness import java
from tests.harness.broker import Broker
from tests.harness.clients import produce, settle, share_consumer

FORMATTER = f"{java.TOOLS}.consumer.ShareGroupMessageFormatter"
MEMBER, GROUP, ASSIGNMENT, TARGET, CURRENT, STATE = 10, 11, 12, 13, 14, 15


def formatted(bootstrap: str, group: str) -> list[tuple[int, Any]]:
    """Record type and fields of the group's records in the order of the log; None where a record deletes."""
    shown = java.run(
        f"{java.TOOLS}.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", "__consumer_offsets", "--from-beginning"),
        *("--formatter", FORMATTER, "--timeout-ms", "8000"),
    )
    records, at = [], shown.find('{"key"')
    while at >= 0:
        record, end = json.JSONDecoder().raw_decode(shown, at)
        if record["key"]["data"]["groupId"] == group:
            records.append((record["key"]["type"], record["value"] and record["value"]["data"]))
        at = shown.find('{"key"', end)
    return records


def test_every_kind_of_share_group_record(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"x"] * 3)
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        settle(consumer, 3)
    records = formatted(broker.bootstrap, group)
    assert {kind for kind, _ in records} == {MEMBER, GROUP, ASSIGNMENT, TARGET, CURRENT, STATE}
    last = dict(records)
    # the member has left, and its records with it
    assert {kind for kind, fields in last.items() if fields is None} == {MEMBER, TARGET, CURRENT}
    joined = [fields for kind, fields in records if kind == MEMBER and fields is not None]
    assert [fields["subscribedTopicNames"] for fields in joined] == [[topic]]
    assert [(each["topicName"], each["partitions"]) for each in last[STATE]["initializedTopics"]] == [
        (topic, [0])
    ]
    assert last[STATE]["initializingTopics"] == last[STATE]["deletingTopics"] == []
    epochs = [fields["epoch"] for kind, fields in records if kind == GROUP]
    assert epochs == sorted(epochs)
    assert last[ASSIGNMENT]["assignmentEpoch"] <= last[GROUP]["epoch"]
    given = [fields["assignedPartitions"] for kind, fields in records if kind == CURRENT and fields]
    assert [each["partitions"] for each in given[-1]] == [[0]]
