"""Traces with rules through the C ABI: the same answers as the reference, step by step."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test
from tests.capi.partition import CPartition, combine
from tests.differential.step import Operation
from tests.differential.test_backoff import BEGIN_MS
from tests.differential.test_delivery_times import TimedDriver, timed_drivers
from tests.differential.test_machine import Engines, limits, state_batches
from tests.differential.test_order import KeyedEngines, rule_fields

from sharecore import _core, reference
from sharecore.trace.driver import Driver
from sharecore.trace.engines import Engine


class CEngines(KeyedEngines):
    """A share partition whose records come in the order of their keys: the C ABI and the reference."""

    @initialize(
        start_offset=st.sampled_from([0, 0, 7]), fields=limits, chosen=rule_fields(""), data=st.data()
    )
    def init_timed(
        self, start_offset: int, fields: dict[str, Any], chosen: dict[str, Any], data: st.DataObject
    ) -> None:
        _, self.reference = timed_drivers(_core.Rules(**chosen), reference.KeyedPartition)
        made: Any = partial(CPartition, rules=chosen, now_ms=BEGIN_MS)
        self.rust = TimedDriver(Engine("rust", made, combine))
        state = data.draw(st.one_of(st.just([]), state_batches(start_offset)))
        self.apply({"op": "init", "start_offset": start_offset, "state_batches": state, **fields})

    def apply(self, operation: Operation) -> None:
        Engines.apply(self, operation)
        ours: Any = self.rust.partition
        theirs: Any = self.reference.partition
        reasons = ours.reasons()
        assert reasons.behind == theirs.behind()
        assert reasons.is_full or not theirs.waiting()[1], "or as many are leased as may be"
        records = [record for _, record in theirs.records()]
        assert reasons.leased == sum(bool(record.member) for record in records)
        details = ours.details()
        assert (details.ordering, details.is_in_line) == (1, False)
        assert (details.behind, details.leased) == (reasons.behind, reasons.leased)
        keys = Counter(record.digest for record in records if record.digest and theirs._is_open(record))
        assert details.keys == len(keys)
        assert sum(number for _, number, _ in ours.keys(len(keys))) == keys.total()

    @staticmethod
    def _answer(driver: Driver, operation: Operation) -> dict[str, Any]:
        if operation["op"] != "admit":
            return Engines._answer(driver, operation)
        assert isinstance(driver, TimedDriver)
        partition: Any = driver.partition
        admitted = partition.admit(driver.now_ms, driver.wall_ms, *operation["args"])
        partition.check()
        return {"admitted": admitted, **driver._snapshot()}

    @rule()
    def read_on(self) -> None:
        """Where the next read begins."""
        ours: Any = self.rust.partition
        theirs: Any = self.reference.partition
        now_ms, wall_ms = self.rust.now_ms, self.rust.wall_ms
        theirs._come_up(now_ms, wall_ms)
        theirs._reorder()
        offset, _, admits = ours.wanted(now_ms, wall_ms)
        assert offset == -1 or admits == (offset == theirs.next_admission)

    @rule(chosen=st.sampled_from(["", "", "other"]).flatmap(rule_fields))
    def change_rules(self, chosen: dict[str, Any]) -> None:
        ours: Any = self.rust.partition
        theirs: Any = self.reference.partition
        ours.set_rules(chosen)
        theirs.change(_core.Rules(**chosen))
        ours.check()


def test_the_library_has_the_same_records_come_after_others_of_their_key() -> None:
    run_state_machine_as_test(
        CEngines,
        settings=settings(
            max_examples=40,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )
