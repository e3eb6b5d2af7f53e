"""Both answers to each difference that is kept on purpose: docs/decisions/differences-from-apache.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from tests.differential.known import KNOWN, known
from tests.differential.oracle import Oracle
from tests.differential.step import Operation, Result, replay

from sharecore.trace.driver import Driver
from sharecore.trace.engines import EngineName, engine

ACCEPT, RELEASE, REJECT = 1, 2, 3


def _init(**fields: Any) -> Operation:
    return {"op": "init", **fields}


def _acquire(member: str, *batches: tuple[int, int], **fields: Any) -> Operation:
    return {"op": "acquire", "member": member, "batches": [list(batch) for batch in batches], **fields}


def _ack(member: str, first: int, last: int, *types: int) -> Operation:
    return {
        "op": "ack",
        "member": member,
        "batches": [{"first": first, "last": last, "types": list(types) or [ACCEPT]}],
    }


def _release(member: str) -> Operation:
    return {"op": "release", "member": member}


@dataclass(frozen=True, slots=True)
class Case:
    """A trace, and what its last operation was answered.

    Attributes:
        name: of a difference that the comparison knows; empty when generated traces leave it out.
    """

    trace: list[Operation]
    apache: Result
    ours: Result
    name: str = ""
    about: str = ""


CASES = [
    Case(
        [
            _init(),
            _acquire("m", (0, 9)),
            _acquire("m", (20, 29)),
            _ack("m", 2, 2),
            _release("m"),
            _acquire("m", (20, 29), fetch_offset=20),
            {"op": "lso", "offset": 15},
            _ack("m", 20, 29),
        ],
        {"error": None, "start_offset": 15, "delivery_complete_count": 10, "inflight": [[20, 29, 2, 2]]},
        {"error": None, "start_offset": 30, "delivery_complete_count": 0, "inflight": []},
        "frozen start offset",
    ),
    Case(
        [
            _init(max_inflight=8),
            _acquire("m", (0, 7)),
            _release("m"),
            _acquire("m", (10, 14), fetch_offset=0),
        ],
        {"threw": "IllegalArgumentException", "inflight": [[0, 7, 4, 1]]},
        {"acquired": [], "inflight": [[0, 7, 4, 1]]},
        "inconsistent range",
    ),
    Case(
        [
            _init(),
            _acquire("m", (0, 9)),
            _acquire("m", (10, 19)),
            {"op": "lso", "offset": 10},
            _ack("m", 10, 19),
        ],
        {"start_offset": 10, "end_offset": 19, "delivery_complete_count": 10},
        {"start_offset": 20, "end_offset": 20, "delivery_complete_count": 0},
        "pinned start offset",
    ),
    Case(
        [_init(), _acquire("m", (0, 4)), {"op": "lso", "offset": 20}, _release("m")],
        {"start_offset": 5, "end_offset": 5, "next_fetch_offset": 5, "persisted": [[0, 4, 4, 1]]},
        {"start_offset": 20, "end_offset": 20, "next_fetch_offset": 20, "persisted": [[0, 4, 4, 1]]},
        "start offset goes back",
    ),
    Case(
        [
            _init(state_batches=[{"first": 5, "last": 9, "state": 2, "delivery_count": 1}]),
            {"op": "lso", "offset": 3},
        ],
        {"start_offset": 3, "next_fetch_offset": 0},
        {"start_offset": 3, "next_fetch_offset": 3},
        "fetch below the start offset",
    ),
    Case(
        [_init(), _acquire("m", (0, 4)), _acquire("n", (10, 14)), _ack("n", 7, 14)],
        {"error": "InvalidRecordStateException", "inflight": [[0, 4, 1, 1], [10, 14, 1, 1]]},
        {"error": None, "inflight": [[0, 4, 1, 1], [10, 14, 2, 1]]},
        "acknowledgement from a gap",
    ),
    Case(
        [_init(), _acquire("m", (0, 4)), _ack("m", 0, 4), _ack("m", 3, 9)],
        {"threw": "NullPointerException", "start_offset": 5},
        {"error": "InvalidRecordStateException", "start_offset": 5},
        "null pointer in acknowledge",
    ),
    Case(
        [
            _init(start_offset=9, state_batches=[{"first": 11, "last": 11, "state": 4, "delivery_count": 1}]),
            _acquire("m", (20, 24)),
            {
                "op": "ack",
                "member": "m",
                "batches": [
                    {"first": 20, "last": 21, "types": [ACCEPT]},
                    {"first": 8, "last": 10, "types": [ACCEPT]},
                ],
            },
        ],
        {"threw": "NullPointerException", "inflight": [[11, 11, 4, 1], [20, 21, 2, 1], [22, 24, 1, 1]]},
        {"error": "InvalidRecordStateException", "inflight": [[11, 11, 4, 1], [20, 24, 1, 1]]},
        "null pointer in acknowledge",
        "after a batch that was in order",
    ),
    Case(
        [
            _init(
                state_batches=[
                    {"first": 2, "last": 2, "state": 2, "delivery_count": 1},
                    {"first": 97, "last": 104, "state": 2, "delivery_count": 1},
                ]
            ),
            _acquire("m", (96, 96), (97, 104)),
            _acquire("m", (70, 73), fetch_offset=70),
        ],
        {"acquired": [[70, 73, 1]], "next_fetch_offset": 105},
        {"acquired": [[70, 73, 1]], "next_fetch_offset": 74},
        "forgotten gap",
    ),
    Case(
        [
            _init(),
            _acquire("m", (0, 4), (5, 9), batch_size=5),
            {"op": "writes", "fail_next": 1},
            {"op": "advance", "ms": 30000},
            {"op": "reload"},
        ],
        {"read": [[5, 9, 0, 1]]},
        {"read": []},
        about="one write a lock, one of which fails",
    ),
    Case(
        [
            _init(max_delivery_count=2),
            _acquire("m", (0, 0)),
            _release("m"),
            _acquire("m", (0, 0)),
            _acquire("m", (1, 1)),
            {"op": "advance", "ms": 30000},
            {"op": "reload"},
        ],
        {"read_start_offset": 1, "read": [[1, 1, 0, 1]], "start_offset": 1},
        {"read_start_offset": 0, "read": [[0, 0, 4, 2], [1, 1, 0, 1]], "start_offset": 1},
        about="the second write carries the start offset that the first one moved",
    ),
    Case(
        [
            _init(),
            _acquire("m", (0, 9)),
            {"op": "writes", "hold": True},
            _ack("m", 0, 9, RELEASE),
            {"op": "lso", "offset": 5},
        ],
        {"start_offset": 5, "next_fetch_offset": 5},
        {"start_offset": 5, "next_fetch_offset": 10},
        about="a release that is being written when its batch is split",
    ),
    Case(
        [_init(), _acquire("m", (0, 9)), _ack("m", 0, 9, ACCEPT, RELEASE, REJECT)],
        {
            "threw": "NullPointerException",
            "inflight": [[0, 0, 2, 1], [1, 1, 0, 1], [2, 2, 4, 1], [3, 9, 1, 1]],
        },
        {"error": "InvalidRequestException", "inflight": [[0, 9, 1, 1]]},
        about="acknowledge types that are neither one nor one an offset",
    ),
    Case(
        [
            _init(max_delivery_count=2, dead_letters=True),
            _acquire("m", (0, 0)),
            _release("m"),
            _acquire("m", (0, 0)),
            {"op": "writes", "hold": True},
            _ack("m", 0, 0, REJECT),
            {"op": "advance", "ms": 30000},
            {"op": "complete", "error_code": 7},
        ],
        {"letters": [], "inflight": [[0, 0, 4, 2]]},
        {"letters": [[0, 0, 2, "limit"]], "inflight": [[0, 0, 3, 2]]},
        "no letter after a failed write",
    ),
    Case(
        [
            _init(dead_letters=True),
            _acquire("m", (0, 9)),
            _ack("m", 2, 2, REJECT),
            {"op": "lso", "offset": 5},
            _ack("m", 5, 9),
        ],
        {"start_offset": 5, "end_offset": 9},
        {"start_offset": 10, "end_offset": 10},
        "pinned start offset",
        about="by a record that waits for its dead letter",
    ),
    Case(
        [_init(), _acquire("m", (0, 9)), _ack("m", 9, 0)],
        {"error": None, "inflight": [[0, 9, 1, 1]]},
        {"error": "InvalidRequestException", "inflight": [[0, 9, 1, 1]]},
        about="a batch that ends before it begins",
    ),
]


def _id(case: Case) -> str:
    return ", ".join(filter(None, (case.name, case.about)))


def _part(result: Result, like: Result) -> Result:
    return {key: result.get(key) for key in like}


@pytest.mark.timeout(600)  # the first of them fetches Kafka's jars
@pytest.mark.parametrize("case", CASES, ids=_id)
def test_apache_answers_as_listed(case: Case, oracle: Oracle) -> None:
    answers = oracle.run(case.trace)
    assert _part(answers[-1], case.apache) == case.apache
    if case.name:
        difference = known(replay(case.trace)[-1], answers[-1])
        assert difference is not None
        assert difference.name == case.name


@pytest.mark.parametrize("name", ["rust", "reference"])
@pytest.mark.parametrize("case", CASES, ids=_id)
def test_ours_answers_as_listed(case: Case, name: EngineName) -> None:
    driver = Driver(engine(name))
    results = [driver.apply(operation) for operation in case.trace]
    assert _part(results[-1], case.ours) == case.ours


def test_every_known_difference_has_a_case() -> None:
    assert {difference.name for difference in KNOWN} == {case.name for case in CASES if case.name}
