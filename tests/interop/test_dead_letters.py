"""Letters of records that stock share consumers and ours reject, and the way back with `sharecore dlq`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness import java
from tests.harness.broker import ROOT, SHARECORE, Broker
from tests.harness.clients import REJECT, configure_group, create_topic, produce, settle, share_consumer
from tests.harness.tour import steps_of

from sharecore.client import ShareConsumer

PAGE = ROOT / "docs/dead-letters.md"
SETTINGS = {"errors.deadletterqueue.auto.create.topics.enable": "true"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("letters"), settings=SETTINGS)
    made.start()
    yield made
    made.kill()


def sharecore(broker: Broker, directory: Path, *arguments: str) -> str:
    environment = os.environ | {"SHARECORE_BOOTSTRAP_SERVER": broker.bootstrap}
    shown = subprocess.run(
        [SHARECORE, *arguments], capture_output=True, text=True, timeout=60, env=environment, cwd=directory
    )
    assert shown.returncode == 0, f"{arguments}\n{shown.stderr}"
    return shown.stdout


def test_the_tour_prints_what_the_page_shows(broker: Broker, tmp_path: Path) -> None:
    steps = steps_of(PAGE)
    assert len(steps) > 8
    for step in steps:
        program, *arguments = step.command.split()
        assert program == "sharecore"
        shown = sharecore(broker, tmp_path, *arguments)
        assert step.is_what_was_printed(shown), f"{step.command}\n{shown}"


async def reject_with_ours(bootstrap: str, group: str, topic: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    async with ShareConsumer(settings) as consumer:
        consumer.subscribe([topic])
        left = 5
        while left:
            for record in await consumer.poll():
                consumer.reject(record)
                left -= 1
            consumer.commit_async()


def reject_with_confluent(bootstrap: str, group: str, topic: str) -> None:
    with share_consumer(bootstrap, group, [topic]) as consumer:
        settle(consumer, 5, lambda _: REJECT)


def reject_with_java(bootstrap: str, group: str, topic: str) -> None:
    shown = java.run(
        f"{java.TOOLS}.consumer.ConsoleShareConsumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--group", group, "--reject"),
        *("--max-messages", "5", "--timeout-ms", "20000"),
    )
    assert shown.split()[:5] == [f"v{number}" for number in range(5)]


@pytest.mark.parametrize(
    "client",
    [
        pytest.param("java", id="KafkaShareConsumer"),
        pytest.param("confluent", id="confluent-kafka"),
        pytest.param("ours", id="sharecore.client"),
    ],
)
def test_what_a_client_rejects_is_in_the_topic_and_comes_back(
    broker: Broker, tmp_path: Path, client: str
) -> None:
    topic, group, queue = f"topic-{client}", f"group-{client}", f"dlq.{client}"
    create_topic(broker.bootstrap, topic)
    configure_group(
        broker.bootstrap,
        group,
        **{"share.auto.offset.reset": "earliest", "errors.deadletterqueue.topic.name": queue},
    )
    produce(broker.bootstrap, topic, [f"v{number}".encode() for number in range(5)])
    if client == "ours":
        asyncio.run(reject_with_ours(broker.bootstrap, group, topic))
    else:
        {"java": reject_with_java, "confluent": reject_with_confluent}[client](broker.bootstrap, group, topic)
    until = time.monotonic() + 20
    while len(lines := sharecore(broker, tmp_path, "dlq", "show", queue).splitlines()[1:]) < 5:
        assert time.monotonic() < until, lines
    assert [line.split()[2:4] for line in lines] == [
        [f"{topic}-0@{offset}", "rejected"] for offset in range(5)
    ]
    # letters without their records: those are read from their topic
    out = sharecore(broker, tmp_path, "dlq", "redrive", queue, "--cause", "rejected", "--group", group)
    assert out.startswith(f"5 records produced to {topic}\n")
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        back = settle(consumer, 5)
    assert [message.value() for message in back] == [f"v{number}".encode() for number in range(5)]
    assert dict(back[0].headers() or ())["__redrive.group"] == group.encode()
