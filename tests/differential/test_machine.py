"""The Rust engine against the reference: hypothesis looks for the shortest trace that parts them.

No operation is left out, since both are ours: log starts that move under open writes, strangers, nonsense.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.differential.compare import against_rust
from tests.differential.minimize import minimize
from tests.differential.step import Operation, replay

from sharecore.reference import Partition as ReferencePartition
from sharecore.trace.driver import Driver
from sharecore.trace.engines import engine

EXAMPLES = 200
STEPS = 30

members = st.sampled_from(["m0", "m1", "m2"])
small = st.integers(0, 40)
codes = st.sampled_from([-1, 3, 16])
kinds = st.sampled_from([0, 1, 1, 1, 2, 2, 3, 4])
limits = st.fixed_dictionaries(
    {},
    optional={
        "max_delivery_count": st.integers(1, 6),
        "max_inflight": st.integers(1, 60),
        "lock_ms": st.sampled_from([1, 10, 1000]),
        "renew_enabled": st.booleans(),
        "dead_letters": st.booleans(),
    },
)


@st.composite
def state_batches(draw: st.DrawFn, start_offset: int) -> list[dict[str, int]]:
    batches = []
    offset = start_offset
    for gap, length, state, count in draw(
        st.lists(
            st.tuples(st.integers(0, 6), st.integers(1, 6), st.sampled_from([0, 2, 3, 4]), st.integers(0, 6)),
            max_size=5,
        )
    ):
        first = offset + gap
        offset = first + length
        batches.append({"first": first, "last": offset - 1, "state": state, "delivery_count": count})
    return batches


class PartedError(Exception):
    """The engines answered the last operation of `trace` differently."""

    def __init__(self, trace: list[Operation]) -> None:
        self.trace = list(trace)
        super().__init__(f"after {len(trace)} operations")


class Engines(RuleBasedStateMachine):
    """One partition in both engines; every step is an operation of a trace."""

    def __init__(self) -> None:
        super().__init__()
        self.reference = Driver(engine("reference"))
        self.rust = Driver(engine("rust"))
        self.trace: list[Operation] = []

    def apply(self, operation: Operation) -> None:
        self.trace.append(operation)
        expected = self._answer(self.reference, operation)
        try:
            answer = self._answer(self.rust, operation)
        except Exception as error:
            answer = {"raised": repr(error)}
        if answer != expected:
            raise PartedError(self.trace)

    @staticmethod
    def _answer(driver: Driver, operation: Operation) -> dict[str, Any]:
        result = driver.apply(operation)
        driver.partition.check()
        return {**result, "next_deadline_ms": driver.partition.next_deadline_ms}

    @initialize(start_offset=st.sampled_from([0, 0, 7]), fields=limits, data=st.data())
    def init(self, start_offset: int, fields: dict[str, Any], data: st.DataObject) -> None:
        state = data.draw(st.one_of(st.just([]), state_batches(start_offset)))
        self.apply({"op": "init", "start_offset": start_offset, "state_batches": state, **fields})

    @rule(
        member=members,
        back=st.sampled_from([0, 0, 0, 1, 5, 30]),
        shape=st.lists(
            st.tuples(st.sampled_from([0, 0, 0, 1, 7]), st.integers(1, 9)), min_size=1, max_size=4
        ),
        fields=st.fixed_dictionaries(
            {},
            optional={
                "max_fetch_records": st.integers(0, 20),
                "batch_size": st.integers(1, 12),
                "mode": st.just("record_limit"),
            },
        ),
        told=st.booleans(),
    )
    def acquire(
        self, member: str, back: int, shape: list[tuple[int, int]], fields: dict[str, Any], told: bool
    ) -> None:
        offset = first = max(0, self.reference.partition.next_fetch_offset - back)
        batches = []
        for gap, length in shape:
            batches.append([offset + gap, offset + gap + length - 1])
            offset += gap + length
        where = {"fetch_offset": first} if told else {}
        self.apply({"op": "acquire", "member": member, "batches": batches, **fields, **where})

    @rule(
        member=members,
        batches=st.lists(
            st.tuples(small, st.integers(1, 9), st.one_of(kinds, st.none())), min_size=1, max_size=3
        ),
        data=st.data(),
    )
    def acknowledge(
        self, member: str, batches: list[tuple[int, int, int | None]], data: st.DataObject
    ) -> None:
        start = max(0, self.reference.partition.start_offset - 3)
        self.apply(
            {
                "op": "ack",
                "member": member,
                "batches": [
                    {
                        "first": start + at,
                        "last": start + at + length - 1,
                        "types": [kind]
                        if kind is not None
                        else data.draw(st.lists(kinds, min_size=length, max_size=length)),
                    }
                    for at, length, kind in batches
                ],
            }
        )

    @rule(lease=small, kind=kinds, cut=st.integers(0, 2))
    def acknowledge_what_is_leased(self, lease: int, kind: int, cut: int) -> None:
        """The owner settles a stretch of what it holds: the case that random offsets rarely meet."""
        partition = self.reference.partition
        assert isinstance(partition, ReferencePartition)
        held = [(offset, record.member) for offset, record in partition.records() if record.member]
        if not held:
            return
        first, member = held[lease % len(held)]
        last = first
        while (last + 1, member) in held:
            last += 1
        first, last = (first, last) if cut == 0 else (first, first) if cut == 1 else (last, last)
        self.apply(
            {"op": "ack", "member": member, "batches": [{"first": first, "last": last, "types": [kind]}]}
        )

    @rule(member=members)
    def release(self, member: str) -> None:
        self.apply({"op": "release", "member": member})

    @rule(ms=st.sampled_from([0, 1, 9, 10, 999, 1000]))
    def advance(self, ms: int) -> None:
        self.apply({"op": "advance", "ms": ms})

    @rule(
        ms=st.sampled_from([0, 1, 9, 10, 999, 1000]),
        kept=st.lists(members, min_size=1, unique=True),
        kept_ms=st.sampled_from([10, 15, 1000, 1500, 1_000_000]),
    )
    def advance_keeping(self, ms: int, kept: list[str], kept_ms: int) -> None:
        self.apply({"op": "advance", "ms": ms, "keep": kept, "keep_ms": kept_ms})

    @rule(step=st.integers(-2, 30))
    def move_log_start(self, step: int) -> None:
        self.apply({"op": "lso", "offset": max(0, self.reference.partition.start_offset + step)})

    @rule(at=small, length=st.integers(1, 9))
    def archive(self, at: int, length: int) -> None:
        first = self.reference.partition.start_offset + at
        self.apply({"op": "archive", "first": first, "last": first + length - 1})

    @rule(fields=limits)
    def configure(self, fields: dict[str, Any]) -> None:
        self.apply({"op": "configure", **fields})

    @rule(hold=st.booleans(), fail_next=st.integers(0, 2), code=codes)
    def answer_writes(self, hold: bool, fail_next: int, code: int) -> None:
        self.apply({"op": "writes", "hold": hold, "fail_next": fail_next, "error_code": code})

    @precondition(lambda self: any(operation.get("hold") for operation in self.trace))
    @rule(fields=st.fixed_dictionaries({}, optional={"n": st.integers(1, 3), "error_code": codes}))
    def complete(self, fields: dict[str, Any]) -> None:
        self.apply({"op": "complete", **fields})

    @rule(fields=st.fixed_dictionaries({}, optional={"n": st.integers(1, 3)}))
    def letters(self, fields: dict[str, Any]) -> None:
        self.apply({"op": "letters", **fields})

    @rule()
    def reload(self) -> None:
        self.apply({"op": "reload"})


def _differs(trace: list[Operation]) -> bool:
    return against_rust(replay(trace)) is not None


def _told(trace: list[Operation]) -> str:
    short = minimize(trace, _differs, apache=False)
    return "\n".join(
        [
            "the engines part at the last line of this trace:",
            *(json.dumps(operation) for operation in short),
            str(against_rust(replay(short))),
            "see it again, with these lines as trace.jsonl:",
            "diff <(python -m sharecore.trace --engine rust trace.jsonl) "
            "<(python -m sharecore.trace --engine reference trace.jsonl)",
        ]
    )


@pytest.mark.timeout(900)  # hypothesis takes up to five minutes to shrink a trace
def test_engines_never_part() -> None:
    profile = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
    )
    try:
        run_state_machine_as_test(Engines, settings=profile)
    except PartedError as parted:
        pytest.fail(_told(parted.trace))
