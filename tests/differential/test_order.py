"""The Rust engine ordered by key against the reference: hypothesis looks for a sequence that parts them."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test
from tests.differential.step import Operation
from tests.differential.test_delivery_times import TimedEngines, timed_drivers
from tests.differential.test_machine import limits, members, state_batches

from sharecore import _core, reference


def keyed_rules(header: str) -> st.SearchStrategy[_core.Rules]:
    """Rules of a group that is ordered by key; with another `header` the records are looked at anew."""
    return rule_fields(header).map(lambda fields: _core.Rules(**fields))


def rule_fields(header: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return the arguments of such rules."""
    return st.builds(
        dict[str, Any],
        backoff_ms=st.sampled_from([0, 0, 10, 1000]),
        backoff_max_ms=st.sampled_from([1000, 5000]),
        multiplier=st.sampled_from([1.0, 3.7]),
        jitter=st.sampled_from([0.0, 1.0]),
        on_release=st.booleans(),
        on_timeout=st.booleans(),
        max_waiting=st.sampled_from([5, 20, 1000]),
        ordering=st.just("key"),
        run_max=st.sampled_from([1, 1, 2, 4, 500]),
        key_header=st.just(header),
        expired_letters=st.booleans(),
    )


KEYS = st.sampled_from([0, 1, 1, 2, 3])
DELAYS = st.sampled_from([None, None, None, 1, 400])
TTLS = st.sampled_from([None, None, None, 0, 700])


class KeyedEngines(TimedEngines):
    """A share partition whose records come in the order of their keys, in both engines."""

    @initialize(
        start_offset=st.sampled_from([0, 0, 7]), fields=limits, chosen=keyed_rules(""), data=st.data()
    )
    def init_timed(
        self, start_offset: int, fields: dict[str, Any], chosen: _core.Rules, data: st.DataObject
    ) -> None:
        self.rust, self.reference = timed_drivers(chosen, reference.KeyedPartition)
        state = data.draw(st.one_of(st.just([]), state_batches(start_offset)))
        self.apply({"op": "init", "start_offset": start_offset, "state_batches": state, **fields})

    def apply(self, operation: Operation) -> None:
        super().apply(operation)
        ours: Any = self.rust.partition
        theirs: Any = self.reference.partition
        ours.check()
        assert ours.keys(5)[0] == theirs.behind()

    @rule(
        shape=st.lists(
            st.tuples(
                st.sampled_from([0, 0, 0, 2]), st.lists(st.tuples(KEYS, DELAYS, TTLS), min_size=1, max_size=8)
            ),
            min_size=1,
            max_size=3,
        )
    )
    def admit(self, shape: list[tuple[int, list[tuple[int, int | None, int | None]]]]) -> None:
        """Read on: batches with gaps between them."""
        partition: Any = self.reference.partition
        offset = first = partition.next_admission or 0
        wall_ms = self.reference.wall_ms
        batches, entries = [], []
        for gap, records in shape:
            offset += gap
            batches.append((offset, offset + len(records) - 1))
            for at, (key, delay, ttl) in enumerate(records):
                due = None if delay is None else wall_ms + delay
                expires = None if ttl is None else max(wall_ms, due or 0) + ttl
                entries.append((offset + at, due, expires, key))
            offset += len(records)
        self.apply({"op": "admit", "args": [first, batches, entries, 500]})

    @rule(member=members, wanted=st.sampled_from([1, 2, 5, 500]))
    def take(self, member: str, wanted: int) -> None:
        """Acquire as a fetch does: from what is ready on."""
        first = self.reference.partition.next_fetch_offset
        batches = [[offset, offset + 3] for offset in range(first, first + 40, 4)]
        self.apply({"op": "acquire", "member": member, "batches": batches, "max_fetch_records": wanted})

    @rule(
        at=st.integers(0, 5),
        kind=st.sampled_from([1, 2, 3]),
        ending=st.sampled_from(["well", "held", "failed"]),
    )
    def settle(self, at: int, kind: int, ending: str) -> None:
        """Acknowledge records that are held; the write of it ends well, later, or not."""
        partition: Any = self.reference.partition
        leases = partition.leases()
        if not leases:
            return
        first, _, member, _ = leases[at % len(leases)]
        hold, fail = ending == "held", int(ending == "failed")
        self.apply({"op": "writes", "hold": hold, "fail_next": fail, "error_code": 16})
        batch = {"first": first, "last": first, "types": [kind]}
        self.apply({"op": "ack", "member": member, "batches": [batch]})

    @rule(chosen=st.sampled_from(["", "", "other"]).flatmap(keyed_rules))
    def change_rules(self, chosen: _core.Rules) -> None:
        ours: Any = self.rust.partition
        theirs: Any = self.reference.partition
        ours.set_rules(chosen)
        theirs.change(chosen)
        ours.check()


def test_both_engines_have_the_same_records_come_after_others_of_their_key() -> None:
    run_state_machine_as_test(
        KeyedEngines,
        settings=settings(
            max_examples=60,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )
