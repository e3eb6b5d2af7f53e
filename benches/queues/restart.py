"""How soon a broker that was killed delivers again where many records wait in a partition."""

from __future__ import annotations

import time
from pathlib import Path

from benches.queues.shapes import DAY_S, Figures
from benches.queues.subjects import HEADER
from confluent_kafka import Producer
from tests.differential.dlq.member import RELEASE, Member
from tests.differential.dlq.side import Side
from tests.harness.clients import QUIET, configure_group

WAITING = 16_000
_GROUP, _TOPIC = "waits", "waits"
_SPARE = 100


def restart(home: Path, waiting: int) -> Figures:
    """Return the seconds from a killed broker's start to its first record, and to one behind all that wait.

    Args:
        home: a directory that is not there yet.
        waiting: how many records are due in a day; one that may be delivered lies before them, one behind.
    """
    side = Side(home, "sharecore")
    try:
        side.start()
        side.create(_TOPIC)
        settings = {"share_deliver_at_header": HEADER, "share_partition_max_waiting": waiting + 1_000}
        configure_group(side.broker.bootstrap, _GROUP, share_auto_offset_reset="earliest", **settings)
        _fill(side.broker.bootstrap, waiting)
        last = waiting + 1
        member = Member(side, _GROUP, _TOPIC)
        found = _offsets(member, {0, last})
        assert found.keys() == {0, last}, found
        # both are there for the next life, and counted as delivered
        member.acknowledge((0, 0, RELEASE), (last, last, RELEASE))
        side.stop()
        began = time.monotonic()
        side.start()
        loaded = time.monotonic()
        came = _offsets(Member(side, _GROUP, _TOPIC, name="next"), {0, last})
        assert came.keys() == {0, last}, came
        return {
            "coordinators answer after, s": loaded - began,
            "first record after, s": came[0] - began,
            "the record behind all of them after, s": came[last] - began,
        }
    finally:
        side.stop()


def _fill(bootstrap: str, waiting: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, **QUIET})
    due = b"%d" % ((time.time_ns() // 1_000_000) + DAY_S * 1000)
    for number in range(waiting + 2):
        waits = 0 < number <= waiting
        producer.produce(_TOPIC, bytes(_SPARE), partition=0, headers=[(HEADER, due)] if waits else [])
        producer.poll(0)
    assert producer.flush(60) == 0


def _offsets(member: Member, wanted: set[int]) -> dict[int, float]:
    """Return when each offset came, by the monotonic clock; nothing but what is wanted may come."""
    came: dict[int, float] = {}
    end = time.monotonic() + 60
    while came.keys() < wanted:
        assert time.monotonic() < end, f"{wanted - came.keys()} did not come"
        for ranges in member.fetch().values():
            for first, last, _ in ranges:
                came |= dict.fromkeys(range(first, last + 1), time.monotonic())
    return came
