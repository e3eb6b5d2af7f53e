"""Share groups of Apache Kafka that a tier takes over, and gives back: `make tier`."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from confluent_kafka import Producer
from tests.harness.broker import KAFKA_LIBS, QUICK_GROUPS, Broker
from tests.harness.clients import (
    ACCEPT,
    QUIET,
    REJECT,
    RELEASE,
    configure_group,
    create_topic,
    produce,
    share_consumer,
    take,
)
from tests.harness.tier import SMALL, VERSIONS, Nodes
from typer.testing import CliRunner

from sharecore.admin import BlockingAdmin, OffsetChange, ResetPlan, Target
from sharecore.admin.handing_over import PartitionState, Side
from sharecore.cli.app import app
from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import Transport

KAFKAS = {"4.3.1": VERSIONS["4.3.1"], "4.4.0": KAFKA_LIBS.with_name("kafka-4.4.0")}
LONG_LOCKS = 60_000


@pytest.fixture(scope="module", params=KAFKAS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    home = tmp_path_factory.mktemp("cluster")
    broker = Broker(home, "apache", SMALL | QUICK_GROUPS, libs=KAFKAS[request.param])
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def node(tmp_path: Path, cluster: Broker) -> Iterator[Broker]:
    nodes = Nodes(tmp_path, cluster.bootstrap)
    made = nodes.add()
    made.start()
    yield made
    nodes.kill()


def tier(command: str, cluster: Broker, node: Broker, group: str, *more: str) -> Result:
    settings = ["-c", str(node.home / "server.properties"), "--upstream", cluster.bootstrap]
    return CliRunner().invoke(app, ["tier", command, group, *settings, *more])


def state(broker: Broker, group: str, partition: TopicPartition) -> PartitionState:
    """What a share coordinator has of a share partition."""

    async def read() -> PartitionState:
        side = Side(Transport(read_connection_settings({"bootstrap.servers": broker.bootstrap})), "it")
        try:
            return await side.read(group, partition)
        finally:
            await side.admin.close()

    return asyncio.run(read())


def fill(cluster: Broker, topic: str) -> None:
    """Forty records; an aborted transaction and its marker lie between them."""
    create_topic(cluster.bootstrap, topic)
    produce(cluster.bootstrap, topic, [b"%d" % n for n in range(10)])
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": topic, **QUIET})
    producer.init_transactions()
    producer.begin_transaction()
    for _ in range(5):
        producer.produce(topic, b"aborted", partition=0)
    producer.flush()
    producer.abort_transaction()
    produce(cluster.bootstrap, topic, [b"%d" % n for n in range(10, 40)])


def settle(broker: Broker, group: str, topic: str, wanted: int, verdicts: dict[int, str]) -> Counter[str]:
    """Take so many records, and say of each what `verdicts` has by its number; the rest stays acquired.

    Returns:
        What was accepted, as `NUMBER`; and each delivery as `NUMBER@COUNT`.
    """
    seen: Counter[str] = Counter()
    kinds = {"accept": ACCEPT, "reject": REJECT, "release": RELEASE}
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        for record in take(consumer, wanted):
            number = int(record.value() or b"")
            seen[f"{number}@{record.delivery_count()}"] += 1
            verdict = verdicts.get(number % 5)
            if verdict is not None:
                consumer.acknowledge(record, kinds[verdict])
                seen[str(number)] += verdict == "accept"
        consumer.commit_sync()
    return +seen


def configure(broker: Broker, group: str) -> None:
    configure_group(
        broker.bootstrap,
        group,
        share_auto_offset_reset="earliest",
        share_isolation_level="read_committed",
        share_record_lock_duration_ms=LONG_LOCKS,
    )


def test_a_group_is_taken_over_with_all_its_state_and_given_back(cluster: Broker, node: Broker) -> None:
    group, topics = "moved", ["moved-1", "moved-2"]
    places = [TopicPartition(topic, 0) for topic in topics]
    configure(cluster, group)
    accepted: Counter[str] = Counter()
    for topic in topics:
        fill(cluster, topic)
        # of every five records one is accepted, one rejected, one released; two stay acquired
        accepted += settle(cluster, group, topic, 40, {0: "accept", 1: "reject", 2: "release"})
    before = [state(cluster, group, each) for each in places]
    for each in before:
        assert each.start_offset == 2
        assert {kind for *_, kind, _ in each.batches} == {0, 2, 4}

    done = tier("adopt", cluster, node, group)
    assert done.exit_code == 0, done.output
    assert "setting share.isolation.level=read_committed" in done.output
    assert [state(node, group, each) for each in places] == before
    with BlockingAdmin({"bootstrap.servers": cluster.bootstrap}) as admin:
        assert group not in [each.group_id for each in admin.list_groups()]
    again = tier("adopt", cluster, node, group)
    assert (again.exit_code, "already" in again.output) == (0, True), again.output

    # exactly the released records have their second delivery
    for topic in topics:
        second = settle(node, group, topic, 24, {2: "accept", 3: "release"})
        assert {each for each in second if "@" in each} == {f"{n}@2" for n in range(40) if n % 5 > 1}
        accepted += second
    between = [state(node, group, each) for each in places]
    done = tier("return", cluster, node, group)
    assert done.exit_code == 0, done.output
    assert [state(cluster, group, each) for each in places] == between
    for topic in topics:
        third = settle(cluster, group, topic, 16, {3: "accept", 4: "accept"})
        assert {each for each in third if "@" in each} == {f"{n}@3" for n in range(40) if n % 5 > 2}
        accepted += third
    wanted = {str(n): 2 for n in range(40) if n % 5 != 1}
    assert {each: count for each, count in accepted.items() if "@" not in each} == wanted
    again = tier("return", cluster, node, group)
    assert (again.exit_code, "already" in again.output) == (0, True), again.output


def test_a_group_with_members_is_not_moved(cluster: Broker, node: Broker) -> None:
    topic = group = "busy"
    create_topic(cluster.bootstrap, topic)
    produce(cluster.bootstrap, topic, [b"1", b"2"])
    configure(cluster, group)
    with share_consumer(cluster.bootstrap, group, [topic]) as consumer:
        take(consumer)
        refused = tier("adopt", cluster, node, group)
    assert refused.exit_code == 1
    assert "group busy has 1 members on the upstream cluster" in refused.output
    assert tier("adopt", cluster, node, group).exit_code == 0
    with share_consumer(node.bootstrap, group, [topic]) as consumer:
        take(consumer)
        refused = tier("return", cluster, node, group)
    assert refused.exit_code == 1
    assert "group busy has 1 members on the tier" in refused.output


def test_what_was_interrupted_goes_on_and_another_group_is_kept(cluster: Broker, node: Broker) -> None:
    topic = group = "interrupted"
    place = TopicPartition(topic, 0)
    create_topic(cluster.bootstrap, topic)
    produce(cluster.bootstrap, topic, [b"%d" % n for n in range(10)])
    configure(cluster, group)
    settle(cluster, group, topic, 10, {1: "accept", 3: "accept"})
    before = state(cluster, group, place)
    with BlockingAdmin({"bootstrap.servers": node.bootstrap}) as admin:
        # as if the command had ended after its first write
        changes = [OffsetChange(place, None, before.start_offset)]
        while admin.reset(ResetPlan(group, Target.offset(0), changes)).failed:
            time.sleep(0.1)  # the node learns of the topic
        done = tier("adopt", cluster, node, group)
        assert done.exit_code == 0, done.output
        assert state(node, group, place) == before
        # a group of that name that was used upstream in the meantime
        settle(cluster, group, topic, 10, {0: "accept"})
        refused = tier("return", cluster, node, group)
        assert refused.exit_code == 1
        assert "has a group interrupted of its own, which stands elsewhere" in refused.output
        assert state(node, group, place) == before
        done = tier("return", cluster, node, group, "--overwrite")
        assert done.exit_code == 0, done.output
    assert state(cluster, group, place) == before


def test_start_offsets_alone(cluster: Broker, node: Broker) -> None:
    topic = group = "offsets"
    place = TopicPartition(topic, 0)
    create_topic(cluster.bootstrap, topic)
    produce(cluster.bootstrap, topic, [b"%d" % n for n in range(10)])
    configure(cluster, group)
    settle(cluster, group, topic, 10, {0: "accept", 2: "accept"})
    done = tier("adopt", cluster, node, group, "--offsets-only")
    assert done.exit_code == 0, done.output
    assert "delivered again" in done.output
    assert state(node, group, place) == PartitionState(1, 0)
