"""A broker whose answers wait for a bucket, for which a directory stands in; tests/bucket has S3."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.bucket.home import TOPIC, home_settings, lose_again_and_again, numbers_in
from tests.harness.broker import Broker, free_port
from tests.harness.clients import create_topic


@pytest.mark.timeout(180)
def test_nothing_answered_is_lost_with_the_machine(tmp_path: Path) -> None:
    bucket, metrics_port = tmp_path / "bucket", free_port()
    bucket.mkdir()
    broker = Broker(tmp_path / "broker", settings=home_settings(f"file://{bucket}", metrics_port))
    lose_again_and_again(broker, metrics_port, losses=2, seed=1)


class Pair:
    """Two brokers of one home: the first leads, the second waits."""

    def __init__(self, path: Path) -> None:
        bucket = path / "bucket"
        bucket.mkdir()
        self.brokers = [
            Broker(
                path / f"broker{node}",
                settings=home_settings(f"file://{bucket}", free_port()) | {"node.id": str(node)},
            )
            for node in (1, 2)
        ]
        self.first, self.second = self.brokers
        self.first.start()
        create_topic(self.first.bootstrap, TOPIC, 1)
        self.second.start()
        assert self.is_waiting()

    def produce(self, broker: Broker, numbers: range) -> None:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        answered: list[object] = []
        for number in numbers:
            producer.produce(TOPIC, b"%d" % number, on_delivery=lambda error, _: answered.append(error))
        producer.flush(60)
        assert answered == [None] * len(numbers)

    def until_second_serves(self) -> None:
        end = time.monotonic() + 60
        while self.is_waiting():
            assert time.monotonic() < end
            time.sleep(0.05)

    def is_waiting(self) -> bool:
        return "sharecore serves" not in self.second.read_log()

    def stop(self) -> None:
        for broker in self.brokers:
            if broker.running():
                broker.kill()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    both = Pair(tmp_path)
    yield both
    both.stop()


@pytest.mark.timeout(120)
def test_a_standby_takes_over_when_the_leader_is_killed(pair: Pair) -> None:
    pair.produce(pair.first, range(100))
    time.sleep(8)
    assert pair.is_waiting(), "the leader gives signs of life"
    pair.first.kill()
    pair.until_second_serves()
    pair.produce(pair.second, range(100, 200))
    assert pair.second.terminate() == 0
    assert numbers_in(pair.second.home / "data", TOPIC).keys() == set(range(200))


@pytest.mark.timeout(120)
def test_a_standby_takes_over_at_once_when_the_leader_stops(pair: Pair) -> None:
    pair.produce(pair.first, range(100))
    assert pair.first.terminate() == 0
    pair.until_second_serves()
    pair.produce(pair.second, range(100, 200))


@pytest.mark.timeout(120)
def test_a_leader_that_stood_still_ends_once_another_leads(pair: Pair) -> None:
    pair.produce(pair.first, range(100))
    os.kill(pair.first.pid, signal.SIGSTOP)
    pair.until_second_serves()
    pair.produce(pair.second, range(100, 200))
    os.kill(pair.first.pid, signal.SIGCONT)
    assert pair.first.wait() == 75
    assert "This broker ends" in pair.first.read_log()


@pytest.mark.timeout(120)
def test_a_standby_that_is_stopped_ends(pair: Pair) -> None:
    assert pair.second.terminate() == 0
