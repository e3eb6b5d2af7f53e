"""Delivery times and expiry: the Rust engine against the reference, over clock steps and changed rules."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test
from tests.differential.step import Operation
from tests.differential.test_backoff import BEGIN_MS, ManagedEngines
from tests.differential.test_machine import Engines, limits, members, state_batches

from sharecore import _core, reference
from sharecore.trace.driver import Driver
from sharecore.trace.engines import Engine, Write

AHEAD_MS = 500_000
"""How far the wall clock is ahead of the monotonic one at the beginning."""


def timed_rules(ttl_ms: int) -> st.SearchStrategy[_core.Rules]:
    """Rules of a group whose records have times; with another `ttl_ms` they are looked at anew."""
    return st.builds(
        _core.Rules,
        backoff_ms=st.sampled_from([0, 10, 1000]),
        backoff_max_ms=st.just(5000),
        jitter=st.sampled_from([0.0, 0.5]),
        on_release=st.booleans(),
        on_timeout=st.booleans(),
        max_waiting=st.sampled_from([5, 20, 1000]),
        ordering=st.sampled_from(["none", "none", "partition"]),
        run_max=st.sampled_from([1, 3, 500]),
        deliver_at_header=st.just("at"),
        ttl_ms=st.just(ttl_ms),
        expired_letters=st.booleans(),
    )


class TimedDriver(Driver):
    """A driver whose partitions have a wall clock, too."""

    ahead_ms = AHEAD_MS

    @property
    def wall_ms(self) -> int:
        return self.now_ms + self.ahead_ms

    def _end_locks(self) -> Write | None:
        partition: Any = self.partition
        ended: Write | None = partition.advance(self.now_ms, self.wall_ms)
        return ended


def timed_drivers(
    chosen: _core.Rules, kind: type[reference.AdmittingPartition]
) -> tuple[TimedDriver, TimedDriver]:
    """Our engine and a reference, with rules."""
    made: dict[str, Any] = {"rules": chosen, "now_ms": BEGIN_MS}
    ours: Any = partial(_core.Partition, **made)
    theirs: Any = partial(kind, **made)
    return (
        TimedDriver(Engine("rust", ours, _core.combine)),
        TimedDriver(Engine("reference", theirs, reference.combine)),
    )


class TimedEngines(ManagedEngines):
    """A share partition whose records have times, in both engines."""

    rust: TimedDriver
    reference: TimedDriver

    @initialize(start_offset=st.sampled_from([0, 0, 7]), fields=limits, chosen=timed_rules(1), data=st.data())
    def init_timed(
        self, start_offset: int, fields: dict[str, Any], chosen: _core.Rules, data: st.DataObject
    ) -> None:
        self.rust, self.reference = timed_drivers(chosen, reference.AdmittingPartition)
        state = data.draw(st.one_of(st.just([]), state_batches(start_offset)))
        self.apply({"op": "init", "start_offset": start_offset, "state_batches": state, **fields})

    def init_managed(self) -> None:
        """`init_timed` begins."""

    def apply(self, operation: Operation) -> None:
        Engines.apply(self, operation)
        ours: Any = self.rust.partition
        theirs: Any = self.reference.partition
        seen = [record for _, record in theirs.records() if not record.unseen and record.is_free]
        fresh = [r for r in seen if not r.has_expired and r.not_before_ms is None]
        waits = [r.waits_until_ms for r in fresh if r.waits_until_ms is not None]
        if waits:
            # or earlier if waiting records were deleted
            assert ours.next_time_ms <= min(waits)
        times = [r.not_before_ms for r in seen if r.not_before_ms is not None]
        times += [r.expires_ms for r in seen if r.expires_ms is not None]
        if times:
            assert ours.next_wall_ms <= min(times)

    @staticmethod
    def _answer(driver: Driver, operation: Operation) -> dict[str, Any]:
        if operation["op"] == "admit":
            assert isinstance(driver, TimedDriver)
            partition: Any = driver.partition
            admitted = partition.admit(driver.now_ms, driver.wall_ms, *operation["args"])
            partition.check()
            return {"admitted": admitted, "waiting": partition.waiting(), **driver._snapshot()}
        result = ManagedEngines._answer(driver, operation)
        partition = driver.partition
        return {**result, "next_admission": partition.next_admission}

    @rule(
        back=st.sampled_from([0, 0, 0, 0, 1, 5, -1]),
        shape=st.lists(
            st.tuples(st.sampled_from([0, 0, 0, 1, 7]), st.integers(1, 9)), min_size=1, max_size=4
        ),
        times=st.lists(
            st.tuples(
                st.integers(0, 3),
                st.sampled_from([None, None, -5, 0, 1, 400, 3000]),
                st.sampled_from([None, None, 0, 2, 700, 5000]),
            ),
            min_size=1,
            max_size=12,
        ),
        batch_size=st.sampled_from([1, 4, 500]),
    )
    def admit(
        self,
        back: int,
        shape: list[tuple[int, int]],
        times: list[tuple[int, int | None, int | None]],
        batch_size: int,
    ) -> None:
        partition: Any = self.reference.partition
        offset = first = max(0, (partition.next_admission or 0) - back)
        batches = []
        for gap, length in shape:
            batches.append((offset + gap, offset + gap + length - 1))
            offset += gap + length
        wall_ms = self.reference.wall_ms
        entries = []
        at = batches[0][0]
        for step, not_before, ttl in times:
            due = None if not_before is None else wall_ms + not_before
            entries.append((at, due, None if ttl is None else max(wall_ms, due or 0) + ttl, 0))
            at += step + 1
        self.apply({"op": "admit", "args": [first, batches, entries, batch_size]})

    @rule(ms=st.sampled_from([-2000, -1, 3, 2000]))
    def step_the_wall_clock(self, ms: int) -> None:
        self.rust.ahead_ms += ms
        self.reference.ahead_ms += ms

    @rule(member=members, wanted=st.integers(1, 20))
    def acquire_what_is_ready(self, member: str, wanted: int) -> None:
        first = self.reference.partition.next_fetch_offset
        batches = [[at, at + 2] for at in range(first, first + 30, 3)]
        self.apply(
            {
                "op": "acquire", "member": member, "batches": batches, "fetch_offset": first,
                "max_fetch_records": wanted,
            }
        )  # fmt: skip

    @rule(chosen=timed_rules(2))
    def change_rules(self, chosen: _core.Rules) -> None:
        ours: Any = self.rust.partition
        theirs: Any = self.reference.partition
        ours.set_rules(chosen)
        theirs.change(chosen)


def test_both_engines_deliver_no_record_before_its_time_and_give_up_the_same() -> None:
    run_state_machine_as_test(
        TimedEngines,
        settings=settings(
            max_examples=50,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )
