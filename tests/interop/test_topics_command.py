"""`sharecore topics`, on sharecore and, as BROKER=apache, on Apache Kafka."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.harness.broker import ROOT, SHARECORE, Broker
from tests.harness.clients import produce, settle, share_consumer


def topics(broker: Broker, *arguments: str) -> tuple[int, str, str]:
    environment = os.environ | {"SHARECORE_BOOTSTRAP_SERVER": broker.bootstrap}
    done = subprocess.run(
        [SHARECORE, "topics", *arguments], capture_output=True, text=True, timeout=60, env=environment
    )
    return done.returncode, done.stdout, done.stderr


def life_of_a_topic(broker: Broker, name: str) -> None:
    made = topics(broker, "create", name, "--partitions", "2", "--config", "retention.ms=3600000")
    assert made == (0, f"{name}: created\n", "")
    status, shown, said = topics(broker, "create", name)
    assert (status, shown, f"sharecore: {name}: TOPIC_ALREADY_EXISTS" in said) == (1, "", True)
    assert topics(broker, "create", name, "--if-not-exists") == (0, f"{name}: exists already\n", "")
    listed = json.loads(topics(broker, "list", "--output", "json")[1])
    assert {"topic": name, "partitions": 2, "replicationFactor": 1} in listed
    assert [name, "2", "1"] in [line.split() for line in topics(broker, "list")[1].splitlines()]
    more = ("--partitions", "3", "--config", "max.message.bytes=2000", "--unset", "retention.ms")
    assert topics(broker, "alter", name, *more) == (0, f"{name}: changed\n", "")
    described = json.loads(topics(broker, "describe", name, "-o", "json")[1])
    assert [part["partition"] for part in described["partitions"]] == [0, 1, 2]
    assert described["configs"] == {"max.message.bytes": "2000"}
    status, _, said = topics(broker, "alter", name, "--partitions", "1")
    assert (status, "INVALID_PARTITIONS" in said) == (1, True)
    status, shown, said = topics(broker, "delete", name, f"{name}-missing")
    assert (status, shown) == (1, f"{name}: deleted\n")
    assert said.startswith(f"sharecore: {name}-missing: UNKNOWN_TOPIC_OR_PARTITION")
    assert topics(broker, "delete", name, "--if-exists") == (0, f"{name}: does not exist\n", "")


def test_a_topic_from_its_creation_to_its_end(broker: Broker, group: str) -> None:
    life_of_a_topic(broker, f"of-{group}")


@pytest.mark.long
def test_a_topic_of_kafka_before_share_groups(tmp_path: Path) -> None:
    broker = Broker(tmp_path, "apache", libs=ROOT / "build/jars/kafka-3.9.1")
    broker.start()
    try:
        assert topics(broker, "create", "old") == (0, "old: created\n", "")
        status, shown, _ = topics(broker, "describe", "old")
        assert (status, shown.splitlines()[-1][:18]) in ((0, "no share group rea"), (0, "share groups: not "))
        life_of_a_topic(broker, "older")
    finally:
        broker.kill()


def test_the_groups_that_read_a_topic_are_shown_with_their_lag(
    broker: Broker, topic: str, group: str
) -> None:
    produce(broker.bootstrap, topic, [b"x"] * 5)
    with share_consumer(broker.bootstrap, group, [topic], **{"max.poll.records": 2}) as consumer:
        settle(consumer, 2)
    described = json.loads(topics(broker, "describe", topic, "-o", "json")[1])
    (found,) = described["shareGroups"]
    assert (found["group"], found["state"], found["members"]) == (group, "Empty", 0)
    assert 0 <= found["lag"] <= 3
    assert described["partitions"][0]["endOffset"] == 5
    last = topics(broker, "describe", topic)[1].splitlines()[-1].split()
    assert last == [group, "Empty", "0", str(found["lag"])]


def test_a_lag_that_is_known_in_part_is_shown(broker: Broker, topic: str, group: str) -> None:
    """A share partition where nothing came yet has no start offset."""
    assert topics(broker, "alter", topic, "--partitions", "2")[0] == 0
    produce(broker.bootstrap, topic, [b"x"] * 2, 0)
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        settle(consumer, 2)
    (found,) = json.loads(topics(broker, "describe", topic, "-o", "json")[1])["shareGroups"]
    assert found["lag"] is None
    last = topics(broker, "describe", topic)[1].splitlines()[-1].split(maxsplit=3)
    assert last[:3] == [group, "Empty", "0"]
    assert last[3] == "0 in 1 of 2 partitions"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("alter", "t"), "nothing to change"),
        (("create", "t", "--config", "retention.ms"), "not KEY=VALUE"),
        (("create", "t", "--partitions", "0"), "--partitions"),
        (("list", "-o", "xml"), "table, json"),
    ],
)
def test_a_command_that_cannot_be_understood_ends_with_2(
    broker: Broker, arguments: tuple[str, ...], words: str
) -> None:
    status, shown, said = topics(broker, *arguments)
    assert (status, shown, words in said) == (2, "", True)
