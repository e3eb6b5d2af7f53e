"""State of share partitions whose window is full: one record holds it, and Apache Kafka loads it.

The window is filled in the way that takes the most state batches: each second record is settled.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.differential.oracle import Oracle

from sharecore import _core
from sharecore.sharestate.records import pack_batches

ACCEPT, RELEASE = 1, 2
RECORD_BYTES_MAX = 1_048_588 - 512
"""`max.message.bytes` by default, less what a snapshot has besides its batches."""
MAX_WAITING, LOCKS = 16_000, 4_000
"""The default of `share.partition.max.waiting`, and the most locks of a share partition by default."""
BATCHES_MAX = 2 * (MAX_WAITING + LOCKS) + 2
STEP = 500
RULES = {
    "back-off": _core.Rules(backoff_ms=86_400_000, backoff_max_ms=86_400_000, max_waiting=MAX_WAITING),
    "order": _core.Rules(ordering="key", max_waiting=MAX_WAITING),
    "order and back-off": _core.Rules(
        ordering="key", backoff_ms=86_400_000, backoff_max_ms=86_400_000, max_waiting=MAX_WAITING
    ),
    "delivery times": _core.Rules(deliver_at_header="at", max_waiting=MAX_WAITING),
}


def entries(rules: str, first: int, last: int) -> list[tuple[int, int | None, int | None, int]]:
    """Return what is read of records: each second one can be delivered at once, alone of its key."""
    later = 1 << 50 if rules == "delivery times" else None
    read: list[tuple[int, int | None, int | None, int]] = []
    for offset in range(first, last + 1):
        key = 0
        if rules.startswith("order"):
            key = offset // 2 % 3 + 1 if offset % 2 else offset + 9
        read.append((offset, later if offset % 2 else None, None, key))
    return read


def filled(name: str) -> tuple[int, list[tuple[int, int, int, int]]]:
    """Return start offset and state of a partition that takes no new records."""
    rules = RULES[name]
    engine = _core.Partition(rules=rules, max_inflight=LOCKS, max_delivery_count=100)
    looks = name != "back-off"
    now_ms = end = 0
    while True:
        now_ms += 1
        if looks:
            following = engine.next_admission
            if following is None:
                break
            batches = [(following, following + STEP - 1)]
            read = entries(name, following, following + STEP - 1)
            assert engine.admit(now_ms, now_ms, following, batches, read)
            end = following + STEP
        else:
            if not engine.can_acquire:
                break
            end = max(end, engine.next_fetch_offset) + STEP
        first = engine.next_fetch_offset
        spans = [(offset, offset) for offset in range(first, end)]
        acquired = engine.acquire(now_ms, "m", spans, first, STEP)
        for span_first, span_last, _ in acquired:
            kinds = bytes(
                RELEASE if offset % 2 and name != "order" else ACCEPT
                for offset in range(span_first, span_last + 1)
            )
            write = engine.acknowledge(now_ms, "m", [(span_first, span_last, kinds)])
            assert write is not None
            engine.commit(write.id, now_ms)
    engine.check()
    state = [
        (first, last, 0 if kind == 1 else kind, count if kind != 1 else count - 1)
        for first, last, kind, count in engine.inflight()
    ]
    assert engine.waiting()[1], "the window is full"
    return engine.start_offset, state


@pytest.mark.timeout(600)  # the first use of the oracle fetches Kafka's jars
@pytest.mark.parametrize("name", RULES)
def test_a_full_window_fits_a_record_and_apaches_class_delivers_all_of_it(oracle: Oracle, name: str) -> None:
    start_offset, state = filled(name)
    assert MAX_WAITING / 4 < len(state) <= BATCHES_MAX
    bytes_each = len(pack_batches(state)) / len(state)
    assert BATCHES_MAX * bytes_each < RECORD_BYTES_MAX
    settled = {
        offset for first, last, kind, _ in state if kind in (2, 4) for offset in range(first, last + 1)
    }
    end = state[-1][1]
    names = ("first", "last", "state", "delivery_count")
    begin: dict[str, Any] = {
        "op": "init",
        "start_offset": start_offset,
        "state_batches": [dict(zip(names, batch, strict=True)) for batch in state],
        "max_inflight": 1_000_000,
        "max_delivery_count": 1000,
    }
    take = {
        "op": "acquire", "member": "a", "batches": [[start_offset, end]], "max_fetch_records": 1_000_000,
        "fetch_offset": start_offset,
    }  # fmt: skip
    (_, answer) = oracle.run([begin, take])
    taken = {offset for first, last, _ in answer["acquired"] for offset in range(first, last + 1)}
    assert taken == set(range(start_offset, end + 1)) - settled
