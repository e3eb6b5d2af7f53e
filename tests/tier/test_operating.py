"""`sharecore tier`: operators see who has what, and have it changed; the state topic is put right."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from click.testing import Result
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, create_topic, produce, settle, share_consumer
from tests.harness.tier import LIBS, SMALL, Nodes, wait_until
from tests.harness.until import until
from typer.testing import CliRunner

from sharecore.cli.app import app
from sharecore.config import BrokerConfig
from sharecore.errors import KafkaError
from sharecore.tier.membership.view import FIRST_NODE_ID
from sharecore.tier.names import settings_topic
from sharecore.tier.operation import repair as repairs
from sharecore.tier.operation.operator import Operator


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("cluster"), "apache", SMALL, libs=LIBS)
    broker.start()
    yield broker
    broker.kill()


def tier(nodes: Nodes, *arguments: str) -> Result:
    where = ("--upstream", nodes.bootstrap, "-s", f"sharecore.tier.state.topic={nodes.topic}")
    return CliRunner().invoke(app, ["tier", *arguments, *where])


def owners(nodes: Nodes) -> list[int | None]:
    status = json.loads(tier(nodes, "status", "--json").stdout)
    return [slot["owner"] for slot in status["slots"]]


def test_operators_see_and_say_who_has_what(cluster: Broker, nodes: Nodes) -> None:
    assert "there is no such tier" in tier(nodes, "status").output
    first, second = nodes.add(), nodes.add()
    first.start()
    second.start()
    wait_until(second, "has 2 of 4 slots, gives up 0 and gets 0")
    found = tier(nodes, "status", "--slots")
    assert found.exit_code == 0, found.output
    assert "(1 broker): 4 slots" in found.output
    assert f"127.0.0.1:{second.port}" in found.output
    assert sorted(owners(nodes), key=str) == [1, 1, 2, 2]
    shown = AdminClient({"bootstrap.servers": second.bootstrap}).list_topics(timeout=10)
    for name in ("__share_group_state", "__consumer_offsets"):
        slots = shown.topics[name].partitions
        assert [slots[slot].leader - FIRST_NODE_ID for slot in range(4)] == owners(nodes)

    assert tier(nodes, "move", "0", "--to", "7").output == "sharecore: unknown node 7; nodes: 1, 2\n"
    assert "there is no slot 9" in tier(nodes, "move", "9", "--to", "1").output
    for slot in (0, 1):
        assert tier(nodes, "move", str(slot), "--to", "2").output == f"slot {slot}: on node 2\n"
    assert owners(nodes)[:2] == [2, 2]
    create_topic(cluster.bootstrap, "moved", 4)
    moved = tier(nodes, "move", "moved:3", "--to", "1")
    assert (moved.exit_code, moved.output.endswith(": on node 1\n")) == (0, True)
    for what in ("0", "1", "moved:3"):
        assert tier(nodes, "move", what, "--undo").exit_code == 0

    drained = tier(nodes, "drain", "2")
    assert (drained.exit_code, drained.output) == (0, "node 2 has no slots\n")
    assert owners(nodes) == [1, 1, 1, 1]
    assert "drained" in tier(nodes, "status").output
    assert "the only one that may own slots" in tier(nodes, "drain", "1").output
    assert tier(nodes, "drain", "2", "--undo").exit_code == 0
    wait_until(second, "has 2 of 4 slots, gives up 0 and gets 0", 2)
    nodes.kill()


def test_a_state_topic_that_was_damaged_is_put_right(cluster: Broker, nodes: Nodes) -> None:
    node = nodes.add()
    create_topic(cluster.bootstrap, "kept")
    node.start()
    configure_group(node.bootstrap, "keeps", share_auto_offset_reset="earliest")
    produce(cluster.bootstrap, "kept", [b"%d" % number for number in range(20)])
    with share_consumer(node.bootstrap, "keeps", ["kept"]) as consumer:
        settle(consumer, 20)
    node.terminate()
    assert "is intact: 4 slots" in tier(nodes, "repair").output
    # a node that stops soon after its start is a member until its session expires
    until(lambda: not json.loads(tier(nodes, "status", "--json").stdout)["nodes"], seconds=120)

    # an unreadable claim, after the last one of each slot
    async def damage(operator: Operator) -> None:
        await operator.load()
        for slot in range(4):
            finding = await repairs.look(operator, slot)
            await repairs.rewrite(
                operator, finding._replace(kept=[*finding.kept, (b"\x03\xe8", b"nonsense")])
            )

    run(nodes, damage)
    found = tier(nodes, "repair")
    assert (found.exit_code, found.output.count(": SlotClaimValue")) == (1, 4), found.output
    assert "stop the nodes and run: sharecore tier repair --yes" in found.output
    repaired = tier(nodes, "repair", "--yes")
    assert (repaired.exit_code, repaired.output.count("were rewritten")) == (0, 4), repaired.output
    assert "is intact: 4 slots" in tier(nodes, "repair").output
    node.start()
    assert "stop them first" not in tier(nodes, "repair", "--yes").output, "there is nothing to do"
    produce(cluster.bootstrap, "kept", [b"one more"])
    with share_consumer(node.bootstrap, "keeps", ["kept"]) as consumer:
        assert [message.offset() for message in settle(consumer, 1)] == [20], "what was settled stays so"


ONE_COPY = ("-s", "sharecore.tier.replication.factor=1", "-s", "sharecore.tier.min.insync.replicas=1")


def settled(cluster: Broker, nodes: Nodes, group: str, topic: str) -> Broker:
    """Return a node on which a group has settled twenty records, all there are."""
    node = nodes.add()
    create_topic(cluster.bootstrap, topic)
    node.start()
    configure_group(node.bootstrap, group, share_auto_offset_reset="earliest")
    produce(cluster.bootstrap, topic, [b"settled"] * 20)
    with share_consumer(node.bootstrap, group, [topic]) as consumer:
        settle(consumer, 20)
    return node


def delete_state(cluster: Broker, nodes: Nodes) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.delete_topics([nodes.topic])[nodes.topic].result(30)


def make_state_anew(nodes: Nodes) -> None:
    repaired = tier(nodes, "repair", "--yes", *ONE_COPY)
    assert (repaired.exit_code, "was created" in repaired.output) == (0, True), repaired.output


def test_a_state_topic_that_was_deleted_is_made_anew(cluster: Broker, nodes: Nodes) -> None:
    """While a node runs, which goes on by itself then."""
    node = settled(cluster, nodes, "anew", "again")
    delete_state(cluster, nodes)
    wait_until(node, f"{nodes.topic} was deleted upstream")
    found = tier(nodes, "repair")
    assert (found.exit_code, f"{nodes.topic} is missing" in found.output) == (1, True), found.output
    refused = tier(nodes, "repair", "--yes")
    assert refused.exit_code != 0, "three copies on one broker"
    assert "sharecore.tier.replication.factor=3" in refused.output
    make_state_anew(nodes)
    assert "is intact: 4 slots" in tier(nodes, "repair").output
    with share_consumer(node.bootstrap, "anew", ["again"]) as consumer:
        # the group's settings remain: it starts at the earliest record, including finished ones
        assert {message.offset() for message in settle(consumer, 20, timeout=60)} == set(range(20))


def test_a_node_says_what_to_do_where_its_state_topic_is_gone(cluster: Broker, nodes: Nodes) -> None:
    """It was deleted while no node ran: nothing is begun anew before somebody says so."""
    node = settled(cluster, nodes, "begins", "left")
    node.terminate()
    delete_state(cluster, nodes)
    with pytest.raises(RuntimeError, match=rf"(?s){nodes.topic}.*sharecore tier repair"):
        node.start()
    make_state_anew(nodes)
    node.start()
    with share_consumer(node.bootstrap, "begins", ["left"]) as consumer:
        assert {message.offset() for message in settle(consumer, 20, timeout=60)} == set(range(20))


@pytest.mark.timeout(240)
def test_no_group_begins_while_the_settings_are_gone(cluster: Broker, nodes: Nodes) -> None:
    """A group that had asked for all records would begin behind them, without a word."""
    node = settled(cluster, nodes, "first", "has-begun")
    configure_group(node.bootstrap, "second", share_auto_offset_reset="earliest")
    settings = settings_topic(nodes.topic)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.delete_topics([settings])[settings].result(30)
    with share_consumer(node.bootstrap, "second", ["has-begun"]) as consumer:
        while f"no share partition starts until {settings} can be read upstream" not in node.read_log():
            assert list(consumer.poll(1.0)) == []
        # started work continues
        produce(cluster.bootstrap, "has-begun", [b"later"] * 20)
        with share_consumer(node.bootstrap, "first", ["has-begun"]) as other:
            assert {message.offset() for message in settle(other, 20)} == set(range(20, 40))
    node.terminate()
    with pytest.raises(RuntimeError, match=rf"(?s){settings} is gone upstream"):
        node.start()
    compacted = NewTopic(settings, num_partitions=1, config={"cleanup.policy": "compact"})
    admin.create_topics([compacted])[settings].result(30)
    node.start()
    configure_group(node.bootstrap, "second", share_auto_offset_reset="earliest")
    with share_consumer(node.bootstrap, "second", ["has-begun"]) as consumer:
        assert {message.offset() for message in settle(consumer, 40, timeout=60)} == set(range(40))


def settings_of(cluster: Broker, topic: str) -> dict[str, str | None]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    return {
        name: entry.value for name, entry in admin.describe_configs([resource])[resource].result(30).items()
    }


def alter(cluster: Broker, topic: str, name: str, value: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(30)


def test_topics_that_were_made_by_hand_are_set_right_or_refused(cluster: Broker, nodes: Nodes) -> None:
    """With the cluster's defaults state would be deleted after a week, and settings with it."""
    settings = settings_topic(nodes.topic)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    state = NewTopic(nodes.topic, num_partitions=4, config={"cleanup.policy": "compact"})
    for made in admin.create_topics([state, NewTopic(settings, num_partitions=1)]).values():
        made.result(30)
    node = nodes.add()
    with pytest.raises(RuntimeError, match=rf"(?s){nodes.topic}: its cleanup.policy upstream is compact"):
        node.start()
    alter(cluster, nodes.topic, "cleanup.policy", "delete")
    node.start()
    wanted = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    assert settings_of(cluster, nodes.topic).items() >= wanted.items()
    assert settings_of(cluster, settings)["cleanup.policy"] == "compact"
    log = node.read_log()
    assert re.search(rf"WARNING .*{nodes.topic}: retention.ms is 604800000.*it was set to -1", log)
    assert re.search(rf"WARNING .*{settings}: cleanup.policy is delete.*it was set to compact", log)

    for topic, name, value in (
        (nodes.topic, "retention.ms", "60000"),
        (settings, "cleanup.policy", "delete"),
    ):
        alter(cluster, topic, name, value)
        status, looked = tier(nodes, "status"), tier(nodes, "repair")
        assert f"{topic}: {name} is {value}" in status.output
        assert (looked.exit_code, f"{topic}: {name} is {value}" in looked.output) == (1, True), looked.output
    repaired = tier(nodes, "repair", "--yes", *ONE_COPY)
    assert repaired.exit_code == 0, repaired.output
    assert settings_of(cluster, nodes.topic)["retention.ms"] == "-1"
    assert settings_of(cluster, settings)["cleanup.policy"] == "compact"
    assert " is 60000" not in tier(nodes, "status").output


def run(nodes: Nodes, work: Callable[[Operator], Awaitable[Any]]) -> None:
    async def main() -> None:
        given = {
            "sharecore.upstream.bootstrap.servers": nodes.bootstrap,
            "sharecore.tier.state.topic": nodes.topic,
        }
        async with Operator.connect(BrokerConfig.from_properties(given)) as operator:
            await work(operator)

    try:
        asyncio.run(main())
    except KafkaError as error:
        raise AssertionError(str(error)) from error
