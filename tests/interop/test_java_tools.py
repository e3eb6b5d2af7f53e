"""Apache Kafka's own command-line tools, unchanged."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from tests.harness import java
from tests.harness.broker import Broker
from tests.harness.clients import configure_group
from tests.harness.java import TOOLS

RECORDS = 100_000


def at(broker: Broker) -> tuple[str, str]:
    return ("--bootstrap-server", broker.bootstrap)


def test_topics(broker: Broker, group: str) -> None:
    command = f"{TOOLS}.TopicCommand"
    name = f"of-{group}"
    creation = ("--create", "--topic", name, "--partitions", "3", "--config", "retention.ms=3600000")
    assert f"Created topic {name}" in java.run(command, *at(broker), *creation)
    assert name in java.run(command, *at(broker), "--list").split()
    java.run(command, *at(broker), "--alter", "--topic", name, "--partitions", "5")
    described = java.run(command, *at(broker), "--describe", "--topic", name)
    assert "PartitionCount: 5" in described
    assert "retention.ms=3600000" in described
    java.run(command, *at(broker), "--delete", "--topic", name)
    assert name not in java.run(command, *at(broker), "--list").split()


def test_configs_of_a_group(broker: Broker, group: str) -> None:
    command = "kafka.admin.ConfigCommand"
    entity = ("--entity-type", "groups", "--entity-name", group)
    java.run(command, *at(broker), *entity, "--alter", "--add-config", "share.record.lock.duration.ms=20000")
    assert "share.record.lock.duration.ms=20000" in java.run(command, *at(broker), *entity, "--describe")
    java.run(command, *at(broker), *entity, "--alter", "--delete-config", "share.record.lock.duration.ms")
    assert "share.record.lock.duration.ms=20000" not in java.run(command, *at(broker), *entity, "--describe")


def test_performance_tools(broker: Broker, topic: str, group: str) -> None:
    size = ("--num-records", str(RECORDS))
    sent = java.run(
        f"{TOOLS}.ProducerPerformance",
        *at(broker),
        *("--topic", topic, *size, "--record-size", "100", "--throughput", "-1"),
    )
    assert f"{RECORDS} records sent" in sent
    shared = java.run(
        f"{TOOLS}.ShareConsumerPerformance",
        *at(broker),
        *("--topic", topic, "--group", group, *size, "--timeout", "30000"),
    )
    assert int(last_row(shared)["data.consumed.in.nMsg"]) >= RECORDS
    plain = java.run(f"{TOOLS}.ConsumerPerformance", *at(broker), "--topic", topic, *size)
    assert int(last_row(plain)["data.consumed.in.nMsg"]) >= RECORDS


def last_row(table: str) -> dict[str, str]:
    """Header and last line of the comma-separated table that the performance tools print."""
    rows = [[cell.strip() for cell in line.split(",")] for line in table.splitlines() if line.count(",") > 5]
    return dict(zip(rows[0], rows[-1], strict=True))


def test_console_share_consumer(broker: Broker, topic: str, group: str) -> None:
    lines = "".join(f"line-{number}\n" for number in range(30))
    java.run(f"{TOOLS}.ConsoleProducer", *at(broker), "--topic", topic, stdin=lines)
    taking = ("--topic", topic, "--group", group, "--max-messages")
    command = f"{TOOLS}.consumer.ConsoleShareConsumer"
    first = java.run(command, *at(broker), *taking, "10", "--timeout-ms", "20000")
    assert [line for line in first.splitlines() if line.startswith("line-")] == lines.split()[:10]
    rejected = java.run(command, *at(broker), *taking, "5", "--reject", "--timeout-ms", "20000")
    assert rejected.count("line-") == 5
    rest = java.run(command, *at(broker), *taking, "15", "--timeout-ms", "20000")
    seen = [line for line in (first + rejected + rest).splitlines() if line.startswith("line-")]
    assert sorted(seen) == sorted(lines.split())


def test_verifiable_producer_with_verifiable_share_consumer(
    broker: Broker, topic: str, group: str, tmp_path: Path
) -> None:
    produced = java.run_alone(
        f"{TOOLS}.VerifiableProducer", *at(broker), "--topic", topic, "--max-messages", "1000"
    )
    assert events(produced, "producer_send_success") == 1000
    consuming = ("--topic", topic, "--group-id", group, "--max-messages", "1000")
    consumed = java.run_alone(f"{TOOLS}.VerifiableShareConsumer", *at(broker), *consuming)
    assert sum(event["count"] for event in parsed(consumed, "records_consumed")) == 1000
    assert sum(event["count"] for event in parsed(consumed, "offsets_acknowledged")) == 1000


def parsed(output: str, name: str) -> list[dict[str, int]]:
    found = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [event for event in found if event["name"] == name]


def events(output: str, name: str) -> int:
    return len(parsed(output, name))


def test_groups_and_share_groups(broker: Broker, topic: str, group: str) -> None:
    configure_group(broker.bootstrap, group, share_auto_offset_reset="latest")
    member = subprocess.Popen(
        java.command(
            f"{TOOLS}.consumer.ConsoleShareConsumer", *at(broker), "--topic", topic, "--group", group
        ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        command = f"{TOOLS}.consumer.group.ShareGroupCommand"
        until = time.monotonic() + 60
        # a group with a member is stable, even before the member has its partitions
        describe = ("--describe", "--group", group, "--members", "--verbose")
        while topic not in (members := java.run(command, *at(broker), *describe)):
            assert time.monotonic() < until, members
            time.sleep(0.1)
        listed = java.run(command, *at(broker), "--list", "--state")
        assert f"{group} Stable" in " ".join(listed.split())
        assert f"{group} Share" in " ".join(java.run(f"{TOOLS}.GroupsCommand", *at(broker), "--list").split())
    finally:
        member.terminate()
        member.wait(20)
