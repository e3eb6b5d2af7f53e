"""Apache's own tools on a node: what is not about share groups they do on the cluster (`make tier`)."""

from __future__ import annotations

import re

from tests.harness import java
from tests.harness.broker import Broker
from tests.harness.clients import produce
from tests.harness.tier import Nodes
from tests.interop.tier.test_tier import cluster, nodes

__all__ = ["cluster", "nodes"]
_TOPICS = f"{java.TOOLS}.TopicCommand"
_GROUPS = f"{java.TOOLS}.consumer.group.ConsumerGroupCommand"
_CONFIGS = "kafka.admin.ConfigCommand"


def test_topics_groups_and_settings(cluster: Broker, nodes: Nodes) -> None:
    node = nodes.add()
    node.start()
    at = ("--bootstrap-server", node.bootstrap)
    topic = ("--topic", "tooled")
    made = ("--partitions", "2", "--replication-factor", "1", "--config", "retention.ms=60000")
    assert "Created topic tooled" in java.run(_TOPICS, *at, "--create", *topic, *made)
    described = java.run(_TOPICS, *at, "--describe", *topic)
    assert "PartitionCount: 2" in described
    assert "retention.ms=60000" in described
    java.run(_TOPICS, *at, "--alter", *topic, "--partitions", "3")
    entity = ("--entity-type", "topics", "--entity-name", "tooled")
    java.run(_CONFIGS, *at, "--alter", *entity, "--add-config", "retention.ms=120000")
    assert "retention.ms=120000" in java.run(_CONFIGS, *at, "--describe", *entity)
    for broker in (node, cluster):
        described = java.run(_TOPICS, "--bootstrap-server", broker.bootstrap, "--describe", *topic)
        assert re.search(r"PartitionCount: 3.*retention.ms=120000", described)
    produce(node.bootstrap, "tooled", [b"%d" % number for number in range(10)])
    consumed = java.run(
        f"{java.TOOLS}.consumer.ConsoleConsumer",
        *(
            *at,
            *topic,
            "--group",
            "tools",
            "--from-beginning",
            "--max-messages",
            "10",
            "--timeout-ms",
            "20000",
        ),
    )
    assert "Processed a total of 10 messages" in consumed
    group = ("--group", "tools")
    assert "tools" in java.run(_GROUPS, *at, "--list").split()
    rows = java.run(_GROUPS, *at, "--describe", *group).splitlines()
    found = [line.split() for line in rows if line.startswith("tools")]
    assert sum(int(row[3]) for row in found) == sum(int(row[4]) for row in found) == 10
    reset = ("--reset-offsets", "--to-earliest", "--topic", "tooled", "--execute")
    java.run(_GROUPS, *at, *group, *reset)
    java.run(_GROUPS, *at, *group, "--delete")
    java.run(_TOPICS, *at, "--delete", *topic)
    assert "tooled" not in java.run(_TOPICS, *at, "--list").split()
