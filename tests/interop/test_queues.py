"""Settings of share groups that Apache Kafka does not have, with clients that know nothing of them."""

from __future__ import annotations

import json

import pytest
from tests.harness import java
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, produce, settle, share_consumer
from tests.interop.conftest import KIND
from tests.interop.test_admin import sharecore

pytestmark = pytest.mark.skipif(KIND == "apache", reason="settings that Apache Kafka does not have")


def test_a_group_is_paused_and_resumed_on_the_command_line(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"x"] * 3)
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        paused = sharecore(broker, "pause", group, "--for", "10m")
        assert (paused[0], paused[2]) == (0, "")
        assert paused[1].startswith(f"share group {group}: paused until 2")
        assert list(consumer.poll(1.5)) == []
        assert "its members get no records" in sharecore(broker, "describe", group)[1]
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
