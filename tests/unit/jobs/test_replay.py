"""A trace through the engine, under the recorded limits and under others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sharecore.jobs.replay import replay
from sharecore.trace.operation import TraceError

TRACE: list[dict[str, Any]] = [
    {"op": "init", "max_delivery_count": 2, "max_inflight": 100, "lock_ms": 1000},
    {"op": "acquire", "member": "a", "batches": [[0, 9]]},
    {"op": "advance", "ms": 400},
    {"op": "ack", "member": "a", "batches": [{"first": 0, "last": 4, "types": [1]}]},
    {"op": "ack", "member": "a", "batches": [{"first": 5, "last": 6, "types": [2, 3]}]},
    {"op": "advance", "ms": 600},
    {"op": "ack", "member": "a", "batches": [{"first": 7, "last": 9, "types": [1]}]},
    {"op": "acquire", "member": "b", "batches": [[0, 9]]},
    {"op": "release", "member": "b"},
]


def lines(operations: list[dict[str, Any]] = TRACE) -> list[str]:
    return [json.dumps(operation) for operation in operations]


def test_what_a_trace_says() -> None:
    out = replay(lines())
    assert (out.arrived, out.accepted, out.unfinished) == (10, 5, 0)
    assert (out.deliveries, out.redeliveries) == (14, 4)
    assert (out.lock_timeouts, out.refused) == (3, 3)
    # one rejected; four were released at their second delivery, which is the limit
    assert out.archived == 5
    assert out.latency_max_ms == 400
    assert out.inflight_max == 10
    assert out.leased_mean == pytest.approx((10 * 400 + 3 * 600) / 1000)


def test_other_limits_than_it_was_recorded_with() -> None:
    out = replay(lines(), {"lock_ms": 1001, "max_delivery_count": 5})
    assert (out.lock_timeouts, out.refused, out.accepted) == (0, 0, 8)
    assert (out.archived, out.unfinished) == (1, 1)


def test_each_init_is_a_share_partition_of_its_own() -> None:
    out = replay(lines(TRACE + TRACE))
    assert (out.arrived, out.accepted, out.archived) == (20, 10, 10)


@pytest.mark.parametrize("line", ["{", "[]", '{"op": "nothing"}', '{"op": "reload"}', '{"op": "writes"}'])
def test_a_line_that_cannot_be_replayed_is_named(line: str) -> None:
    with pytest.raises(TraceError, match="line 2"):
        replay([*lines()[:1], line])


def test_a_trace_that_does_not_begin() -> None:
    with pytest.raises(TraceError, match="begins with init"):
        replay(lines()[1:])
