"""The source in groups with an order, a back-off or a pause."""

from __future__ import annotations

import logging
from collections import defaultdict

import pytest
from confluent_kafka import Producer
from tests.harness.clients import QUIET, configure_group
from tests.spark.conftest import KIND, Topic
from tests.spark.test_reader import Query

from sharecore.errors import ConfigError

pytestmark = [
    pytest.mark.timeout(200),
    pytest.mark.skipif(KIND == "apache", reason="settings that Apache Kafka does not have"),
]
KEYS, RECORDS = 4, 5


def send(topic: Topic) -> None:
    """Produce records of some keys in turns to one partition."""
    producer = Producer({"bootstrap.servers": topic.broker.bootstrap, **QUIET})
    for number in range(RECORDS):
        for key in range(KEYS):
            producer.produce(topic.name, b"%d" % number, key=b"%d" % key, partition=0)
    producer.flush()


def test_each_batch_has_one_record_of_a_key_and_keys_come_in_order_over_many_tasks(topic: Topic) -> None:
    configure_group(topic.broker.bootstrap, topic.group, share_ordering="key")
    send(topic)
    query = Query(topic, minPartitions="3")
    came = defaultdict[bytes, list[int]](list)
    while sum(map(len, came.values())) < KEYS * RECORDS:
        query.lease()
        rows = query.rows()
        assert len({row["key"] for row in rows}) == len(rows)
        for row in rows:
            came[row["key"]].append(int(row["value"]))
    query.commit()
    query.reader.stop()
    assert [*came.values()] == [[*range(RECORDS)]] * KEYS


@pytest.mark.parametrize("ordering", ["key", "partition"])
def test_runs_are_read_by_one_task_or_refused_by_name(topic: Topic, ordering: str) -> None:
    configure_group(
        topic.broker.bootstrap, topic.group, share_ordering=ordering, share_ordering_run_max=KEYS * RECORDS
    )
    send(topic)
    refused = Query(topic, minPartitions="3")
    words = f"share.ordering={ordering} with share.ordering.run.max=20, and minPartitions=3"
    with pytest.raises(ConfigError, match=words):
        refused.lease()
    refused.reader.stop()
    query = Query(topic)
    query.lease()
    rows = query.rows()
    query.commit()
    query.reader.stop()
    assert [int(row["value"]) for row in rows] == [number for number in range(RECORDS) for _ in range(KEYS)]


def test_a_query_that_ends_early_says_what_its_records_wait_for(
    topic: Topic, caplog: pytest.LogCaptureFixture
) -> None:
    send(topic)
    query = Query(topic)
    query.lease()
    query.reader.stop()  # its locks are released; the group has begun
    configure_group(topic.broker.bootstrap, topic.group, share_paused="true")
    ending = Query(topic)
    ending.reader.prepareForTriggerAvailableNow()
    with caplog.at_level(logging.WARNING, "sharecore.spark.member"):
        end = ending.reader.latestOffset(ending.at, ending.reader.getDefaultReadLimit())
    ending.reader.stop()
    assert end == ending.at
    (line,) = [each.getMessage() for each in caplog.records if "the query ends" in each.getMessage()]
    assert f"before group {topic.group} has finished all records: paused until it is resumed" in line
