"""The worked examples of KIP-932, in both engines.

In the KIP's tables, the end offset (SPEO) is the one after the last in flight; here it is the last.
"""

from __future__ import annotations

from tests.unit.reference.share_partition import (
    ACCEPT,
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    REJECT,
    RELEASE,
    RENEW,
    SharePartition,
)

from sharecore.trace.engines import Engine


def test_batched_case_moves_the_start_offset_once_a_batch(engine: Engine) -> None:
    p = SharePartition(engine, 100)
    assert p.window == (100, 100)
    assert p.partition.next_fetch_offset == 100

    assert p.fetch("c1", (100, 109)) == [(100, 109, 1)]
    assert p.window == (100, 109)
    assert p.inflight == [(100, 109, ACQUIRED, 1)]

    assert p.acknowledge("c1", 100, 109, ACCEPT) == [(100, 109, ACKNOWLEDGED, 1)]
    assert p.window == (110, 110)
    assert p.inflight == []


def test_messier_sequence_of_release_and_acknowledge(engine: Engine) -> None:
    p = SharePartition(engine, 110)
    p.fetch("c1", (110, 119))

    assert p.acknowledge("c1", 110, 110, RELEASE) == [(110, 110, AVAILABLE, 1)]
    assert p.inflight == [(110, 110, AVAILABLE, 1), (111, 119, ACQUIRED, 1)]

    assert p.acknowledge("c1", 119, 119, ACCEPT) == [(119, 119, ACKNOWLEDGED, 1)]
    assert p.inflight == [(110, 110, AVAILABLE, 1), (111, 118, ACQUIRED, 1), (119, 119, ACKNOWLEDGED, 1)]
    assert p.window == (110, 119)

    assert p.partition.next_fetch_offset == 110
    assert p.fetch("c2", (110, 119), (120, 120)) == [(110, 110, 2), (120, 120, 1)]
    assert p.window == (110, 120)

    # only the locks on 111 and 112 expire: their member renews the rest, and the second fetch came later
    p.now_ms += 20000
    p.acknowledge("c1", 113, 118, RENEW)
    p.acknowledge("c2", 110, 110, RENEW)
    p.acknowledge("c2", 120, 120, RENEW)
    assert p.pass_time(10000) == [(111, 112, AVAILABLE, 1)]
    assert p.inflight == [
        (110, 110, ACQUIRED, 2),
        (111, 112, AVAILABLE, 1),
        (113, 118, ACQUIRED, 1),
        (119, 119, ACKNOWLEDGED, 1),
        (120, 120, ACQUIRED, 1),
    ]

    assert p.acknowledge("c1", 113, 118, ACCEPT) == [(113, 118, ACKNOWLEDGED, 1)]
    assert p.fetch("c2", (110, 119), (120, 120)) == [(111, 112, 2)]
    assert p.inflight == [(110, 112, ACQUIRED, 2), (113, 119, ACKNOWLEDGED, 1), (120, 120, ACQUIRED, 1)]

    assert p.acknowledge("c2", 110, 110, ACCEPT) == [(110, 110, ACKNOWLEDGED, 2)]
    assert p.window == (111, 120)

    assert p.acknowledge("c2", 111, 112, ACCEPT) == [(111, 112, ACKNOWLEDGED, 2)]
    assert p.window == (120, 120)
    assert p.inflight == [(120, 120, ACQUIRED, 1)]


def test_state_of_the_messier_sequence_survives_as_persisted(engine: Engine) -> None:
    written = [(110, 110, AVAILABLE, 1), (119, 119, ACKNOWLEDGED, 1)]
    p = SharePartition(engine, 110, written)

    assert p.window == (110, 119)
    assert p.inflight == written
    assert p.partition.next_fetch_offset == 110
    assert p.fetch("c1", (110, 119)) == [(110, 110, 2), (111, 118, 1)]
    assert p.acknowledge("c1", 110, 118, ACCEPT) == [
        (110, 110, ACKNOWLEDGED, 2),
        (111, 118, ACKNOWLEDGED, 1),
    ]
    # only the next fetch shows whether there is more at 119
    assert p.window == (119, 119)
    assert p.fetch("c1", (120, 120)) == [(120, 120, 1)]
    p.acknowledge("c1", 120, 120, ACCEPT)
    assert p.window == (121, 121)


def test_in_flight_records_of_the_picture(engine: Engine) -> None:
    p = SharePartition(engine, 0)
    p.fetch("c1", (0, 3))
    p.fetch("c2", (4, 8))
    p.acknowledge("c1", 0, 1, REJECT)
    p.acknowledge("c1", 3, 3, RELEASE)
    assert p.fetch("c2", (2, 3)) == [(3, 3, 2)]
    p.acknowledge("c2", 3, 3, RELEASE)
    p.acknowledge("c2", 5, 8, ACCEPT, REJECT, RELEASE, RELEASE)

    assert p.window == (2, 8)
    assert p.inflight == [
        (2, 2, ACQUIRED, 1),
        (3, 3, AVAILABLE, 2),
        (4, 4, ACQUIRED, 1),
        (5, 5, ACKNOWLEDGED, 1),
        (6, 6, ARCHIVED, 1),
        (7, 8, AVAILABLE, 1),
    ]
    assert p.partition.next_fetch_offset == 3
    assert p.partition.delivery_complete_count == 2


def test_records_of_a_crashed_consumer_are_redelivered_after_later_ones(engine: Engine) -> None:
    p = SharePartition(engine, 100)
    assert p.fetch("crashed", (100, 109)) == [(100, 109, 1)]
    assert p.fetch("c2", (110, 119)) == [(110, 119, 1)]
    p.acknowledge("c2", 110, 119, ACCEPT)
    assert p.pass_time(29999) == []
    assert p.fetch("c2", (120, 120), fetch_offset=120) == [(120, 120, 1)]

    assert p.pass_time(1) == [(100, 109, AVAILABLE, 1)]
    assert p.partition.next_fetch_offset == 100
    assert p.fetch("c2", (100, 109)) == [(100, 109, 2)]


def test_delivery_ends_at_the_delivery_limit(engine: Engine) -> None:
    p = SharePartition(engine, 0, max_delivery_count=2)
    assert p.fetch("c1", (0, 0)) == [(0, 0, 1)]
    assert p.acknowledge("c1", 0, 0, RELEASE) == [(0, 0, AVAILABLE, 1)]
    assert p.fetch("c1", (0, 0)) == [(0, 0, 2)]
    assert p.acknowledge("c1", 0, 0, RELEASE) == [(0, 0, ARCHIVED, 2)]
    assert p.window == (1, 1)
