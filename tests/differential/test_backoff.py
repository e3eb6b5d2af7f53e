"""The Rust engine with rules against the reference: hypothesis looks for a sequence that parts them."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test
from tests.differential.oracle import Oracle
from tests.differential.step import Operation
from tests.differential.test_machine import Engines, limits, state_batches

from sharecore import _core, reference
from sharecore.trace.driver import Driver
from sharecore.trace.engines import Engine

BEGIN_MS = 1_000_000
"""The time of a driver when a partition is made or loaded."""

rules = st.builds(
    _core.Rules,
    backoff_ms=st.sampled_from([0, 1, 10, 1000]),
    backoff_max_ms=st.sampled_from([1000, 5000]),
    multiplier=st.sampled_from([1.0, 2.0, 3.7]),
    jitter=st.sampled_from([0.0, 0.3, 1.0]),
    on_release=st.booleans(),
    on_timeout=st.booleans(),
    max_waiting=st.sampled_from([5, 20, 1000]),
    ordering=st.sampled_from(["none", "partition"]),
    run_max=st.sampled_from([1, 3, 500]),
)


class ManagedEngines(Engines):
    """A share partition with rules in both engines."""

    @initialize(start_offset=st.sampled_from([0, 0, 7]), fields=limits, chosen=rules, data=st.data())
    def init_managed(
        self, start_offset: int, fields: dict[str, Any], chosen: _core.Rules, data: st.DataObject
    ) -> None:
        made: dict[str, Any] = {"rules": chosen, "now_ms": BEGIN_MS}
        ours: Any = partial(_core.Partition, **made)
        theirs: Any = partial(reference.ManagedPartition, **made)
        self.rust = Driver(Engine("rust", ours, _core.combine))
        self.reference = Driver(Engine("reference", theirs, reference.combine))
        state = data.draw(st.one_of(st.just([]), state_batches(start_offset)))
        self.apply({"op": "init", "start_offset": start_offset, "state_batches": state, **fields})

    def init(self) -> None:
        """`init_managed` begins."""

    @staticmethod
    def _answer(driver: Driver, operation: Operation) -> dict[str, Any]:
        result = Engines._answer(driver, operation)
        partition: Any = driver.partition
        return {**result, "waiting": partition.waiting()}

    def apply(self, operation: Operation) -> None:
        super().apply(operation)
        ours: Any = self.rust.partition
        theirs: Any = self.reference.partition
        if theirs.next_time_ms is not None:
            # earlier if waiting records were deleted: their time is skipped when it comes
            assert ours.next_time_ms is not None
            assert ours.next_time_ms <= theirs.next_time_ms

    @rule(ms=st.sampled_from([1, 500, 2000, 10_000]))
    def let_time_pass(self, ms: int) -> None:
        self.apply({"op": "advance", "ms": ms})


def test_both_engines_make_the_same_records_wait() -> None:
    run_state_machine_as_test(
        ManagedEngines,
        settings=settings(
            max_examples=60,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )


def _lived(seed: int) -> tuple[int, list[list[int]]]:
    """Start offset and state batches that a share partition has written whose records waited."""
    chance = random.Random(seed)
    backoff = _core.Rules(backoff_ms=1000, backoff_max_ms=60_000, jitter=0.5, max_waiting=1000)
    made: Any = partial(_core.Partition, rules=backoff, now_ms=BEGIN_MS)
    driver = Driver(Engine("rust", made, _core.combine))
    driver.apply({"op": "init", "start_offset": 3, "state_batches": [], "lock_ms": 2000})
    waited = 0
    for _ in range(200):
        first = driver.partition.next_fetch_offset
        batches = [[first + at, first + at] for at in range(10)]
        took: Any = driver.apply(
            {"op": "acquire", "member": "m", "batches": batches, "max_fetch_records": 10}
        )
        for begin, end, _ in took["acquired"]:
            types = [chance.choice([1, 1, 1, 2, 2, 3]) for _ in range(end - begin + 1)]
            if chance.random() < 0.8:
                ack = {"first": begin, "last": end, "types": types}
                driver.apply({"op": "ack", "member": "m", "batches": [ack]})
        driver.apply({"op": "advance", "ms": chance.choice([0, 10, 700])})
        partition: Any = driver.partition
        waited += partition.waiting()[0]
    assert waited > 0, "some waited"
    read: Any = driver.apply({"op": "reload"})
    return read["read_start_offset"], read["read"]


@pytest.mark.timeout(600)  # the first use of the oracle fetches Kafka's jars
@pytest.mark.parametrize("seed", range(1, 5))
def test_apaches_class_loads_what_was_written_and_delivers_everything_that_waits(
    oracle: Oracle, seed: int
) -> None:
    start_offset, state = _lived(seed)
    assert any(batch[2] == 0 for batch in state), "something waits"
    settled = {
        offset for first, last, kind, _ in state if kind in (2, 4) for offset in range(first, last + 1)
    }
    counts = {offset: count for first, last, _, count in state for offset in range(first, last + 1)}
    end = max(counts)
    names = ("first", "last", "state", "delivery_count")
    begin = {
        "op": "init",
        "start_offset": start_offset,
        "state_batches": [dict(zip(names, batch, strict=True)) for batch in state],
        "max_inflight": 100_000,
        "max_delivery_count": 100,
    }
    offsets = [[offset, offset] for offset in range(start_offset, end + 1)]
    take = {"op": "acquire", "member": "a", "batches": offsets, "max_fetch_records": 10_000}
    answers = oracle.run([begin, *[take | {"fetch_offset": start_offset}] * 3])
    taken = {
        offset: count
        for answer in answers[1:]
        for first, last, count in answer["acquired"]
        for offset in range(first, last + 1)
    }
    assert taken == {
        offset: counts.get(offset, 0) + 1 for offset in range(start_offset, end + 1) if offset not in settled
    }
