"""The Rust engine with rules against the reference: hypothesis looks for a sequence that parts them."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test
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
            # earlier where the log has lost what waited: its time is passed over when it comes
            assert ours.next_time_ms is not None
            assert ours.next_time_ms <= theirs.next_time_ms

    @rule(ms=st.sampled_from([1, 500, 2000, 10_000]))
    def let_time_pass(self, ms: int) -> None:
        self.apply({"op": "advance", "ms": ms})


def test_both_engines_make_the_same_records_wait() -> None:
    run_state_machine_as_test(
        ManagedEngines,
        settings=settings(
            max_examples=150,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )
