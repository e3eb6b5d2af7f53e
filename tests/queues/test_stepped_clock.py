"""Delivery times follow a broker's wall clock that is set anew; locks and back-offs do not (libfaketime)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, ShareConsumer
from tests.harness.broker import Broker
from tests.harness.clients import (
    ACCEPT,
    QUIET,
    RELEASE,
    configure_group,
    create_topic,
    nothing_comes,
    share_consumer,
    take,
)

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
GROUP, TOPIC, HEADER = "clocks", "clocks", "deliver-at"
LOCK_S, BACKOFF_S, HOUR_S = 30, 20, 3600
TICK_S = 0.05
SECONDS_MAX = 90
"""A clock that is set anew is noticed within a minute."""

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not FAKETIME.exists(), reason="takes Debian's package libfaketime"),
]


class Clock:
    """A broker's wall clock, which can be set.

    Args:
        file: what libfaketime reads.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.step(0)

    def step(self, seconds: int) -> None:
        """Set the clock ahead of the machine's, or behind it."""
        fresh = self._file.with_suffix(".fresh")
        fresh.write_text(f"{seconds:+d}s\n")
        fresh.rename(self._file)

    def environment(self) -> dict[str, str]:
        """Return variables of the process that has this clock."""
        return {
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.fixture
def bootstrap(tmp_path: Path, clock: Clock) -> Iterator[str]:
    broker = Broker(tmp_path / "broker")
    broker.environment |= clock.environment()
    broker.start()
    create_topic(broker.bootstrap, TOPIC)
    configure_group(
        broker.bootstrap,
        GROUP,
        share_deliver_at_header=HEADER,
        share_retry_backoff_ms=BACKOFF_S * 1000,
        share_retry_backoff_jitter=0,
        share_record_lock_duration_ms=LOCK_S * 1000,
        share_auto_offset_reset="earliest",
    )
    yield broker.bootstrap
    broker.kill()


def test_a_step_forward_brings_what_is_due_and_ends_no_lock_nor_backoff(bootstrap: str, clock: Clock) -> None:
    one_at_a_time = {"max.poll.records": 1}
    with (
        share_consumer(bootstrap, GROUP, [TOPIC], **one_at_a_time) as holder,
        share_consumer(bootstrap, GROUP, [TOPIC]) as other,
    ):
        _produce(bootstrap, "held")
        (held,) = take(holder)
        held_at = time.monotonic()
        _produce(bootstrap, "tired", "later", later_s=HOUR_S)
        (tired,) = take(other)
        assert (held.value(), tired.value()) == (b"held", b"tired")
        other.acknowledge(tired, RELEASE)
        released_at = time.monotonic()
        assert set(other.commit_sync(20).values()) == {None}
        clock.step(2 * HOUR_S)
        came = _take_all(other, {b"held", b"tired", b"later"})
    assert came[b"tired"] > released_at + BACKOFF_S - TICK_S
    assert came[b"held"] > held_at + LOCK_S - TICK_S


def test_a_step_back_keeps_what_was_nearly_due(bootstrap: str, clock: Clock) -> None:
    with share_consumer(bootstrap, GROUP, [TOPIC]) as consumer:
        _produce(bootstrap, "now", "soon", later_s=5)
        (now,) = take(consumer)
        assert now.value() == b"now"
        consumer.acknowledge(now, ACCEPT)
        assert set(consumer.commit_sync(20).values()) == {None}
        clock.step(-HOUR_S)
        assert nothing_comes(consumer, 15)
        clock.step(0)
        _take_all(consumer, {b"soon"})


def _produce(bootstrap: str, *values: str, later_s: int = 0) -> None:
    """Produce records; the last one is due later."""
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    due = b"%d" % (time.time_ns() // 1_000_000 + later_s * 1000)
    for value in values:
        headers: list[tuple[str, str | bytes | None]] = []
        if later_s and value == values[-1]:
            headers.append((HEADER, due))
        producer.produce(TOPIC, value.encode(), headers=headers)
    assert producer.flush(20) == 0


def _take_all(consumer: ShareConsumer, wanted: set[bytes]) -> dict[bytes, float]:
    """Accept records until all that are wanted have come; return when each came."""
    came: dict[bytes, float] = {}
    end = time.monotonic() + SECONDS_MAX
    while came.keys() < wanted:
        assert time.monotonic() < end, f"{wanted - came.keys()} did not come"
        for message in consumer.poll(0.5):
            assert message.error() is None, message.error()
            came[message.value() or b""] = time.monotonic()
            consumer.acknowledge(message, ACCEPT)
        consumer.commit_sync(20)
    return came
