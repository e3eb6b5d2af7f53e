"""Share state and Apache Kafka's code: its formatter on our topic, our dump on its topic, its persister."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from tests.harness import java
from tests.harness.broker import SHARECORE, Broker
from tests.harness.clients import QUIET, create_topic, leave_share_state

PROBE = java.PROBES / "PersisterProbe.java"
CONSOLE = f"{java.TOOLS}.consumer.ConsoleConsumer"
FORMATTER = f"{java.TOOLS}.consumer.group.share.ShareGroupStateMessageFormatter"
STATE_TOPIC = "__share_group_state"
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.snapshot.update.records.per.snapshot": "4",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """Provide a broker of the kind that the test asks for, with share state of its own."""
    broker = Broker(tmp_path, request.param, SETTINGS)
    broker.start()
    yield broker
    broker.kill()


def dumped(bootstrap: str, *arguments: str) -> list[dict[str, Any]]:
    command = [SHARECORE, "state", "dump", "-b", bootstrap, "--format", "json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def at_rest(bootstrap: str) -> list[dict[str, Any]]:
    """The live state, once nothing is written any more: a consumer that leaves gives back what it fetched."""
    before: list[dict[str, Any]] = []
    for _ in range(30):
        now = dumped(bootstrap)
        if now == before:
            return now
        before = now
        time.sleep(0.3)
    raise AssertionError("the state does not come to rest")


def formatted(bootstrap: str, count: int) -> dict[str, list[dict[str, Any]]]:
    """What Apache's formatter prints of `count` records, by share partition: type and fields of each."""
    shown = java.run(
        CONSOLE,
        *("--bootstrap-server", bootstrap, "--topic", STATE_TOPIC, "--from-beginning"),
        *("--formatter", FORMATTER, "--max-messages", str(count), "--timeout-ms", "30000"),
    )
    text = shown[shown.index('{"key"') :]
    records: dict[str, list[dict[str, Any]]] = defaultdict(list)
    while text.startswith("{"):
        record, end = json.JSONDecoder().raw_decode(text)
        key, value = record["key"]["data"], record["value"]
        fields = {} if value is None else {"deliveryCompleteCount": -1} | value["data"]
        name = "tombstone" if value is None else ("ShareSnapshot", "ShareUpdate")[record["key"]["type"]]
        text_key = f"{key['groupId']}:{key['topicId']}:{key['partition']}"
        records[text_key].append({"type": name, **fields})
        text = text[end:].lstrip()
    return records


def folded(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What records come to, offset by offset."""
    start, offsets, state = -1, dict[int, tuple[int, int]](), dict[str, Any]()
    for record in records:
        if record["type"] == "ShareSnapshot":
            offsets.clear()
        state |= {name: value for name, value in record.items() if name not in ("type", "startOffset")}
        for batch in record["stateBatches"]:
            for offset in range(batch["firstOffset"], batch["lastOffset"] + 1):
                new = (batch["deliveryCount"], batch["deliveryState"])
                offsets[offset] = max(new, offsets.get(offset, new))
        start = record["startOffset"] if record["startOffset"] != -1 else start
    return state | {"startOffset": start, "stateBatches": {o: s for o, s in offsets.items() if o >= start}}


def spread(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state of the dump, its batches offset by offset."""
    ours = {"key", "groupId", "topic", "topicId", "partition"}
    batches = {
        offset: (batch["deliveryCount"], batch["deliveryState"])
        for batch in state["stateBatches"]
        for offset in range(batch["firstOffset"], batch["lastOffset"] + 1)
    }
    return {name: value for name, value in state.items() if name not in ours} | {"stateBatches": batches}


@pytest.mark.parametrize(
    "fresh", ["sharecore", pytest.param("apache", marks=pytest.mark.long)], indirect=True
)
def test_our_dump_and_apaches_formatter_agree_on_every_share_partition(fresh: Broker) -> None:
    bootstrap = fresh.bootstrap
    leave_share_state(bootstrap, "orders", ["workers"])
    live = at_rest(bootstrap)
    assert [(each["groupId"], each["topic"], each["partition"]) for each in live] == [
        ("workers", "orders", partition) for partition in range(2)
    ]
    history = {each["key"]: dumped(bootstrap, "--key", each["key"], "--history") for each in live}
    records = formatted(bootstrap, sum(map(len, history.values())))
    assert {type["type"] for some in history.values() for type in some} == {"ShareSnapshot", "ShareUpdate"}
    place = {"partition", "offset", "timestamp"}
    assert records == {
        key: [{name: each[name] for name in each.keys() - place} for each in some]
        for key, some in history.items()
    }
    assert {each["key"]: spread(each) for each in live} == {
        key: folded(some) for key, some in records.items()
    }


OPERATIONS = {
    "init 0,1,2 3 0": "0 NONE | 1 NONE | 2 NONE",
    "read 0,1,2 0": "0 epoch 3 start 0 | 1 epoch 3 start 0 | 2 epoch 3 start 0",
    "write 0,1 3 0 5 2 8:9:2:1 12:20:0:2": "0 NONE | 1 NONE",
    "write 0 3 0 5 3 15:16:4:3": "0 NONE",
    "read 0,1,2 4": "0 epoch 3 start 5 8:9:2:1 12:14:0:2 15:16:4:3 17:20:0:2"
    " | 1 epoch 3 start 5 8:9:2:1 12:20:0:2 | 2 epoch 3 start 0",
    "summary 0,1,2": "0 epochs 3 4 start 5 complete 3 | 1 epochs 3 4 start 5 complete 2"
    " | 2 epochs 3 4 start 0 complete 0",
    "write 1 3 3 6 0": "1 FENCED_LEADER_EPOCH",
    "write 1 2 4 6 0": "1 FENCED_STATE_EPOCH",
    "read 1 3": "1 FENCED_LEADER_EPOCH",
    "init 1 2 0": "1 FENCED_STATE_EPOCH",
    "init 1 4 40": "1 NONE",
    "read 0,1 5": "0 epoch 3 start 5 8:9:2:1 12:14:0:2 15:16:4:3 17:20:0:2 | 1 epoch 4 start 40",
    "write 2 3 4 0 1 30:30:2:1": "2 NONE",
    "read 2 4": "2 epoch 3 start 0 30:30:2:1",
    "write 7 3 4 0 0": "7 INVALID_REQUEST",
    "read 7 4": "7 INVALID_REQUEST",
    "delete 0": "0 NONE",
    "read 0 5": "0 INVALID_REQUEST",
    "write 0 3 5 6 0": "0 INVALID_REQUEST",
    "summary 0,2": "0 epochs 0 0 start -1 complete -1 | 2 epochs 3 4 start 0 complete 1",
}
"""What Apache's persister is asked to do, and what comes of it on Apache's coordinator."""


@pytest.mark.long
def test_apaches_persister_is_served(broker: Broker, topic: str, group: str) -> None:
    create_topic(broker.bootstrap, f"{topic}-of-three", 3)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    names = TopicCollection([f"{topic}-of-three"])
    (described,) = [future.result(30) for future in admin.describe_topics(names).values()]
    # Kafka's own text form of an id is safe in URLs
    topic_id = str(described.topic_id).replace("+", "-").replace("/", "_")
    shown = java.run_program(
        PROBE,
        *broker.bootstrap.split(":"),
        *(group, topic_id),
        stdin="".join(f"{line}\n" for line in OPERATIONS),
    )
    answers = [line for line in shown.splitlines() if re.match(r"\d ", line)]
    assert dict(zip(OPERATIONS, answers, strict=True)) == OPERATIONS
