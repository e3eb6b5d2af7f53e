"""Settings of share groups that Apache Kafka does not have, with clients that know nothing of them."""

from __future__ import annotations

import json
import subprocess
import time

import pytest
from tests.harness import java
from tests.harness.broker import SHARECORE, Broker
from tests.harness.clients import (
    ACCEPT,
    commit,
    configure_group,
    create_topic,
    produce,
    settle,
    share_consumer,
)
from tests.interop.conftest import KIND, BrokerMaker
from tests.interop.test_admin import sharecore

from sharecore.client import BlockingProducer

pytestmark = pytest.mark.skipif(KIND == "apache", reason="settings that Apache Kafka does not have")


def test_a_group_is_paused_and_resumed_on_the_command_line(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"x"] * 3)
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        paused = sharecore(broker, "pause", group, "--for", "10m")
        assert (paused[0], paused[2]) == (0, "")
        assert paused[1].startswith(f"share group {group}: paused until 2")
        assert list(consumer.poll(1.5)) == []
        assert "its members get no records" in sharecore(broker, "describe", group)[1]
        assert f"\ngroup {group}: paused until 2" in sharecore(broker, "peek", group, topic)[1]
        (told,) = json.loads(sharecore(broker, "describe", group, "--output", "json")[1])
        assert told["paused"] is True
        assert told["pausedUntilMs"] > 0
        assert sharecore(broker, "pause", group)[1] == f"share group {group}: paused until it is resumed\n"
        assert sharecore(broker, "resume", group)[1] == f"share group {group}: gets records\n"
        settle(consumer, 3)
    status, _, said = sharecore(broker, "pause", group, "--for", "soon")
    assert (status, said.startswith("sharecore: --for soon: not a duration")) == (2, True)


def test_a_released_record_comes_to_javas_consumer_no_earlier_than_it_should(
    broker: Broker, topic: str, group: str
) -> None:
    configure_group(broker.bootstrap, group, share_retry_backoff_ms=300, share_retry_backoff_multiplier=3.0)
    produce(broker.bootstrap, topic, [b"x"])
    shown = java.run_program(
        java.PROBES / "ShareProbe.java", "retry", broker.bootstrap, group, topic, "3", libs=java.CLIENT_LIBS
    )
    deliveries = [line.split() for line in shown.splitlines() if line.startswith("delivery")]
    assert [int(each[1]) for each in deliveries] == [2, 3, 4]
    for each, least_ms in zip(deliveries, (300, 900, 2700), strict=True):
        assert int(each[3]) >= least_ms


def test_no_record_comes_before_its_delivery_time_over_kill_9(new_broker: BrokerMaker) -> None:
    """A ledger of stock consumers: each record comes, at its time or later, and never again."""
    broker = new_broker()
    broker.start()
    create_topic(broker.bootstrap, "jobs")
    configure_group(
        broker.bootstrap,
        "g",
        share_auto_offset_reset="earliest",
        share_deliver_at_header="deliver-at",
        share_record_ttl_header="ttl",
    )
    due: dict[bytes, int] = {}
    now_ms = time.time_ns() // 1_000_000
    with BlockingProducer({"bootstrap.servers": broker.bootstrap}) as producer:
        for number in range(60):
            value = b"%d" % number
            due[value] = now_ms + (number * 7919 % 6000)
            producer.submit("jobs", value, deliver_at=due[value])
        for _ in range(3):
            # expired before the next record is fetched
            producer.send("jobs", b"expired", ttl=0)
    early: list[tuple[bytes, int]] = []
    accepted: dict[bytes, int] = {}

    def consume(seconds: float) -> None:
        until = time.monotonic() + seconds
        with share_consumer(broker.bootstrap, "g", ["jobs"]) as consumer:
            while len(accepted) < len(due) and time.monotonic() < until:
                messages = list(consumer.poll(0.2))
                came_ms = time.time_ns() // 1_000_000
                for message in messages:
                    value = message.value() or b""
                    assert value in due, "a record whose time to live is over came"
                    if came_ms < due[value]:
                        early.append((value, came_ms))
                    consumer.acknowledge(message, ACCEPT)
                    accepted[value] = accepted.get(value, 0) + 1
                if messages:
                    commit(consumer)

    consume(3)
    before = dict(accepted)
    assert 0 < len(before) < len(due)
    broker.kill()
    broker.start()
    consume(60)
    assert early == []
    assert accepted.keys() == due.keys()
    assert {value: accepted[value] for value in before} == before, "what was accepted does not come again"


def run_program(*arguments: str) -> tuple[int, str, str]:
    ended = subprocess.run([SHARECORE, *arguments], capture_output=True, text=True, timeout=60)
    return ended.returncode, ended.stdout, ended.stderr


def test_javas_consumer_gets_delayed_records_of_the_command_line_no_earlier_than_it_should(
    broker: Broker, topic: str, group: str
) -> None:
    configure_group(broker.bootstrap, group, share_deliver_at_header="deliver-at")
    for delay in ("6s", "1ms"):
        ended = run_program("produce", topic, "x", "--delay", delay, "--bootstrap-server", broker.bootstrap)
        assert ended == (0, f"1 record written to {topic}\n", "")
    shown = java.run_program(
        java.PROBES / "ShareProbe.java", "due", broker.bootstrap, group, topic, "2", libs=java.CLIENT_LIBS
    )
    came = [line.split() for line in shown.splitlines() if line.startswith("due")]
    assert len(came) == 2
    assert all(int(each[1]) <= int(each[3]) for each in came)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"share.deliver.at.header": "t", "share.record.ttl.header": "t"}, "names the same header; use two"),
        ({"share.record.ttl.dead.letter": "true"}, "there is no topic for dead letters"),
        (
            {"share.record.lock.keep": "connected", "share.record.lock.keep.max.ms": "20000"},
            "share.record.lock.keep.max.ms=20000: shorter than share.record.lock.duration.ms=30000",
        ),
        ({"share.breaker.percent": "101"}, "share.breaker.percent"),
        ({"share.record.ttl.ms": "999"}, "share.record.ttl.ms"),
        ({"share.deliver.at.headers": "t"}, "share.deliver.at.headers"),
    ],
)
def test_settings_that_cannot_stand_are_refused_by_name(
    broker: Broker, group: str, settings: dict[str, str], said: str
) -> None:
    options = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    status, _, refused = sharecore(broker, "config", group, *options)
    assert status != 0
    assert said in refused
