"""Letters of records that stock share consumers and ours reject, and the way back with `sharecore dlq`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.harness import java
from tests.harness.broker import ROOT, SHARECORE, Broker
from tests.harness.clients import (
    QUIET,
    REJECT,
    configure_group,
    create_topic,
    produce,
    settle,
    share_consumer,
)
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
    # dead-letter records without copies: the originals are read from their topic
    out = sharecore(broker, tmp_path, "dlq", "redrive", queue, "--cause", "rejected", "--group", group)
    assert out.startswith(f"5 records produced to {topic}\n")
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        back = settle(consumer, 5)
    assert [message.value() for message in back] == [f"v{number}".encode() for number in range(5)]
    assert dict(back[0].headers() or ())["__redrive.group"] == group.encode()


def delete_topic(broker: Broker, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    admin.delete_topics([name])[name].result(30)
    until = time.monotonic() + 20
    while name in admin.list_topics(timeout=10).topics:
        assert time.monotonic() < until


def reject_all(broker: Broker, group: str, topic: str, queue: str, count: int, *, copy: bool) -> None:
    """Have a group reject records, and wait for their letters."""
    settings = {
        "share.auto.offset.reset": "earliest",
        "errors.deadletterqueue.topic.name": queue,
        "errors.deadletterqueue.copy.record.enable": str(copy).lower(),
    }
    configure_group(broker.bootstrap, group, **settings)
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        settle(consumer, count, lambda _: REJECT)


def await_letters(broker: Broker, directory: Path, queue: str, count: int) -> None:
    until = time.monotonic() + 20
    while sharecore(broker, directory, "dlq", "show", queue).count("\n") != count + 1:
        assert time.monotonic() < until


def test_a_filter_leaves_letters_open_for_later_runs(broker: Broker, tmp_path: Path) -> None:
    topic, queue, to = "filtered", "dlq.filtered", "filtered-again"
    for name in (topic, to):
        create_topic(broker.bootstrap, name)
    produce(broker.bootstrap, topic, [b"bad-1", b"bad-2"])
    for group in ("filtered-g", "filtered-h"):
        reject_all(broker, group, topic, queue, 2, copy=True)
    await_letters(broker, tmp_path, queue, 4)

    def redriven(*filters: str) -> str:
        words = ("dlq", "redrive", queue, "--to", to, "--progress", "p.json", *filters)
        return sharecore(broker, tmp_path, *words).splitlines()[0]

    produced = f"{{}} produced to {to}"
    assert redriven("--group", "filtered-h", "--filter", "bad-2") == produced.format("1 record")
    assert redriven("--group", "filtered-g") == produced.format("2 records")
    assert redriven("--dry-run") == f"1 record would be produced to {to}"
    assert redriven() == produced.format("1 record")
    assert redriven() == "0 are no longer in their topic, 0 were skipped"
    delete_topic(broker, queue)
    produce(broker.bootstrap, topic, [b"bad-3"])
    reject_all(broker, "filtered-g", topic, queue, 1, copy=True)
    await_letters(broker, tmp_path, queue, 1)
    assert redriven() == produced.format("1 record")
    assert redriven() == "0 are no longer in their topic, 0 were skipped"


def test_a_bare_letter_gives_no_record_of_a_topic_that_was_created_again(
    broker: Broker, tmp_path: Path
) -> None:
    topic, queue, to = "again", "dlq.again", "again-again"
    create_topic(broker.bootstrap, to)
    for number in range(2):
        create_topic(broker.bootstrap, topic)
        produce(broker.bootstrap, topic, [b"bad-%d" % number])
        reject_all(broker, f"again-{number}", topic, queue, 1, copy=False)
        await_letters(broker, tmp_path, queue, number + 1)
        if number == 0:
            delete_topic(broker, topic)
    # two dead-letter records name offset 0 of a topic with this name; only the second belongs to the existing
    # topic
    shown = sharecore(broker, tmp_path, "dlq", "redrive", queue, "--to", to, "--progress", "p.json")
    assert shown == f"1 record produced to {to}\n1 is no longer in its topic, 0 were skipped\n"
    configure_group(broker.bootstrap, "again-reader", share_auto_offset_reset="earliest")
    with share_consumer(broker.bootstrap, "again-reader", [to]) as consumer:
        assert [message.value() for message in settle(consumer, 1)] == [b"bad-1"]
