"""`format("sharestate")` on a broker: what share consumers left, against the dump and Kafka's own view."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import DataFrame, Row, SparkSession
from tests.harness.broker import Broker
from tests.harness.clients import (
    configure_group,
    create_topic,
    leave_share_state,
    produce,
    settle,
    share_consumer,
    unevenly,
)
from tests.spark.conftest import KIND

from sharecore.admin import BlockingAdmin, StateDump
from sharecore.sharestate.keys import STATE_TOPIC, SharePartitionKey, parse_coordinator_key
from sharecore.spark import state_wire
from sharecore.spark.state_options import read_state_options
from sharecore.spark.state_read import read_state

pytestmark = pytest.mark.timeout(300)

SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.snapshot.update.records.per.snapshot": "4",
    "group.initial.rebalance.delay.ms": "0",
}
if KIND == "apache":
    SETTINGS |= {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
GROUP, TOPIC, RECORDS = "workers", "orders", 80
TYPES = {0: "snapshot", 1: "update"}


def at_rest(bootstrap: str) -> StateDump:
    """Return the live state, once nothing is written any more."""
    before = None
    with BlockingAdmin(bootstrap_servers=bootstrap) as admin:
        for _ in range(60):
            now = admin.share_state()
            if now == before:
                return now
            before = now
            time.sleep(0.3)
    raise AssertionError("the state does not come to rest")


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A broker on which share consumers have settled records in every way, and one group was deleted."""
    broker = Broker(tmp_path_factory.mktemp("state"), KIND, SETTINGS)
    broker.start()
    bootstrap = broker.bootstrap
    leave_share_state(bootstrap, TOPIC, (GROUP, "deleted"))
    with BlockingAdmin(bootstrap_servers=bootstrap) as admin:
        admin.delete_group("deleted")
    yield broker
    broker.kill()


def read(spark: SparkSession, **options: str) -> DataFrame:
    """`_` in an option's name stands for a dot."""
    named = {name.replace("_", "."): value for name, value in options.items()}
    return spark.read.format("sharestate").options(**named).load()


def batches(found: Any) -> list[tuple[int, ...]]:
    return [tuple(batch) for batch in found]


def milliseconds(row: Row, column: str) -> int:
    return int(row[column].timestamp() * 1000 + 0.5)


def live(rows: list[Row]) -> dict[SharePartitionKey, tuple[Any, ...]]:
    """Return the states of the view, as `dumped` gives those of the dump."""
    assert {(row.type, row.error) for row in rows} == {("live", None)}
    return {
        parse_coordinator_key(f"{row.group}:{row.topicId}:{row.topicPartition}"): (
            row.topic,
            row.snapshotEpoch,
            row.stateEpoch,
            row.leaderEpoch,
            row.startOffset,
            row.deliveryCompleteCount,
            milliseconds(row, "createTime"),
            milliseconds(row, "writeTime"),
            batches(row.stateBatches),
        )
        for row in rows
    }


def dumped(dump: StateDump) -> dict[SharePartitionKey, tuple[Any, ...]]:
    assert not dump.problems
    return {
        state.key: (
            state.topic,
            state.snapshot_epoch,
            state.state_epoch,
            state.leader_epoch,
            state.start_offset,
            state.delivery_complete_count,
            state.created_ms,
            state.snapshot_ms,
            list(state.batches),
        )
        for state in dump.states
    }


def test_live_state_is_what_the_dump_says_and_kafka_tells(worked: Broker, spark: SparkSession) -> None:
    dump = at_rest(worked.bootstrap)
    rows = read(spark, kafka_bootstrap_servers=worked.bootstrap, view="live").collect()
    assert live(rows) == dumped(dump)
    assert {(row.group, row.topic, row.topicPartition) for row in rows} == {
        (GROUP, TOPIC, partition) for partition in range(2)
    }
    with BlockingAdmin(bootstrap_servers=worked.bootstrap) as admin:
        told = {each.partition.partition: each for each in admin.offsets(GROUP)}
    for row in rows:
        assert row.startOffset == told[row.topicPartition].start_offset
        # KIP-1226: records after the start offset that are not finished
        unsettled = RECORDS - row.startOffset - row.deliveryCompleteCount
        assert unsettled == told[row.topicPartition].lag


def test_history_has_every_record_that_the_dump_has(worked: Broker, spark: SparkSession) -> None:
    dump = at_rest(worked.bootstrap)
    rows = read(spark, kafka_bootstrap_servers=worked.bootstrap).orderBy("partition", "offset").collect()
    assert {row.type for row in rows} == {"snapshot", "update", "tombstone"}
    assert {row.group for row in rows if row.type == "tombstone"} == {"deleted"}
    with BlockingAdmin(bootstrap_servers=worked.bootstrap) as admin:
        for state in dump.states:
            found = [
                row
                for row in rows
                if (row.group, row.topicPartition) == (state.key.group_id, state.key.partition)
            ]
            changes = admin.share_state_history(state.key).changes
            assert [
                (
                    row.partition,
                    row.offset,
                    milliseconds(row, "timestamp"),
                    row.type,
                    batches(row.stateBatches),
                )
                for row in found
            ] == [
                (each.partition, each.offset, each.timestamp_ms, TYPES[each.kind], each.batches)
                for each in changes
            ]
            for row, change in zip(found, changes, strict=True):
                assert change.value is not None
                told = change.value._asdict()
                assert row.startOffset == told["start_offset"]
                assert row.leaderEpoch == told["leader_epoch"]
                assert row.snapshotEpoch == told["snapshot_epoch"]
                assert row.stateEpoch == told.get("state_epoch")
                assert row.deliveryCompleteCount == told["delivery_complete_count"]


def test_files_say_what_the_cluster_says(worked: Broker, spark: SparkSession, tmp_path: Path) -> None:
    at_rest(worked.bootstrap)
    copy = tmp_path / "copy"
    shutil.copytree(worked.home / "data", copy)
    for view in ("live", "history"):
        order = ("group", "topicPartition") if view == "live" else ("partition", "offset")
        over_the_wire = read(spark, kafka_bootstrap_servers=worked.bootstrap, view=view)
        expected = over_the_wire.orderBy(*order).collect()
        for path in (copy, worked.home / "data"):  # open in the broker
            assert read(spark, path=str(path), view=view).orderBy(*order).collect() == expected


def test_what_is_let_go_of_meanwhile_is_not_needed(tmp_path: Path) -> None:
    broker = Broker(tmp_path, KIND, SETTINGS | {"share.coordinator.state.topic.prune.interval.ms": "1000"})
    broker.start()
    try:
        bootstrap = broker.bootstrap
        create_topic(bootstrap, TOPIC, 1)
        configure_group(bootstrap, GROUP, share_auto_offset_reset="earliest")
        options = {"kafka.bootstrap.servers": bootstrap}
        chosen = {view: read_state_options(options | {"view": view}) for view in ("history", "live")}
        planned = now = None
        with share_consumer(bootstrap, GROUP, [TOPIC]) as consumer:
            until = time.monotonic() + 180
            while time.monotonic() < until:
                produce(bootstrap, TOPIC, [b"x"] * 20, 0)
                settle(consumer, 20, unevenly, 60)
                (now,) = state_wire.plan(chosen["live"].connection)
                planned = planned or now
                if now.first > planned.first:
                    break
                time.sleep(0.1)  # sharecore checks once a minute
        assert planned is not None
        assert now is not None
        assert now.first > planned.first, "nothing was let go of"
        dump = at_rest(bootstrap)

        def rows(view: str) -> list[dict[str, Any]]:
            log = state_wire.WireLog(planned, chosen[view].connection)
            read = read_state(planned, log, chosen[view])
            return [row for batch in read for row in batch.to_pylist()]

        # what still exists of the planned history; live state is current, and complete
        assert all(now.first <= row["offset"] < planned.end for row in rows("history"))
        ((key, state),) = dumped(dump).items()
        assert [
            (row["group"], row["startOffset"], row["deliveryCompleteCount"], row["topic"])
            for row in rows("live")
        ] == [(key.group_id, state[4], state[5], TOPIC)]
    finally:
        broker.kill()


def test_one_group_is_read_alone(worked: Broker, spark: SparkSession) -> None:
    reader = {"kafka_bootstrap_servers": worked.bootstrap, "group_id": "deleted"}
    assert {row.group for row in read(spark, **reader).collect()} == {"deleted"}
    assert read(spark, **reader, view="live").collect() == []


@contextmanager
def forbidden(bootstrap: str) -> Iterator[None]:
    """Meanwhile nobody may read the state topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    rule = (ResourceType.TOPIC, STATE_TOPIC, ResourcePatternType.LITERAL, "User:*", "*")
    acl = AclBinding(*rule, AclOperation.READ, AclPermissionType.DENY)
    for done in admin.create_acls([acl]).values():
        done.result(30)
    try:
        yield
    finally:
        found = AclBindingFilter(*rule, AclOperation.READ, AclPermissionType.DENY)
        for done in admin.delete_acls([found]).values():
            done.result(30)


def test_errors_say_what_to_do(worked: Broker, spark: SparkSession, tmp_path: Path) -> None:
    empty = Broker(tmp_path / "empty", KIND)
    empty.start()
    try:
        if KIND == "apache":
            with pytest.raises(Exception, match="no share group has had anything to remember"):
                read(spark, kafka_bootstrap_servers=empty.bootstrap).collect()
            with (
                forbidden(worked.bootstrap),
                pytest.raises(Exception, match="grant DESCRIBE and READ on that topic"),
            ):
                read(spark, kafka_bootstrap_servers=worked.bootstrap).collect()
            with pytest.raises(Exception, match="no segments of Apache Kafka's, and as data of"):
                read(spark, path=str(empty.home / "data")).collect()
        else:  # it has the topic from the start
            assert read(spark, kafka_bootstrap_servers=empty.bootstrap).collect() == []
            assert read(spark, path=str(empty.home / "data"), view="live").collect() == []
    finally:
        empty.kill()
    nobody = {"kafka_bootstrap_servers": empty.bootstrap, "kafka_default_api_timeout_ms": "500"}
    with pytest.raises(Exception, match=f"no broker answers at kafka.bootstrap.servers={empty.bootstrap}"):
        read(spark, **nobody).collect()
    with pytest.raises(Exception, match="does not exist on this node"):
        read(spark, path=str(tmp_path / "nowhere")).collect()
    (tmp_path / "other").mkdir()
    with pytest.raises(Exception, match="path is a data directory of sharecore's, a log directory of"):
        read(spark, path=str(tmp_path / "other")).collect()
    with pytest.raises(Exception, match="did you mean view"):
        read(spark, kafka_bootstrap_servers=worked.bootstrap, views="live").collect()
    with pytest.raises(Exception, match="one of history, live"):
        read(spark, kafka_bootstrap_servers=worked.bootstrap, view="all").collect()
