"""Bugs planted in the order, the waits and the window of a share partition: each of them is found.

The reference gets the bug, as it is made of records and not of chains and heaps. What tells the two apart
is what would tell a faulty engine from it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from tests.differential.step import Operation
from tests.differential.test_backoff import ManagedEngines
from tests.differential.test_delivery_times import TimedEngines, timed_drivers
from tests.differential.test_machine import PartedError
from tests.differential.test_order import KeyedEngines

from sharecore import _core, reference
from sharecore.reference.record import ARCHIVING, Record

Keyed = reference.KeyedPartition
Admitting = reference.AdmittingPartition
Managed = reference.ManagedPartition
EXAMPLES = 2000


def _instead(target: Any, name: str, new: Any) -> Callable[[], Any]:
    return lambda: mock.patch.object(target, name, new)


_reorder = Keyed._reorder
_look_anew = Admitting._look_anew
_come_up = Admitting._come_up
_move_start = Keyed.move_log_start
_is_open = Keyed._is_open


def _freed_when_begun(self: Any) -> None:
    """A record that is being settled holds its key no longer."""
    pending = [record for _, record in self._window.all() if record.before is not None]
    members = [record.member for record in pending]
    for record in pending:
        record.member, record.digest = "", -record.digest
    _reorder(self)
    for record, member in zip(pending, members, strict=True):
        record.member, record.digest = member, -record.digest


def _at_the_end(self: Any) -> None:
    """A record that was delivered before comes after the others of its key."""
    keys: dict[int, list[Record]] = {}
    for _, record in self._window.all():
        record.is_behind = False
        if record.digest and _is_open(record):
            keys.setdefault(record.digest, []).append(record)
    for records in keys.values():
        left = 0 if any(record.member for record in records) else self._rules.run_max
        for record in sorted(records, key=lambda record: record.delivery_count):
            if not record.member:
                left = 0 if record.waits else left
                record.is_behind = left == 0
                left -= left > 0


def _read_already(self: Any) -> None:
    """Records that were loaded can be acquired before they are read."""
    _look_anew(self)
    for _, record in self._window.all():
        record.unseen = False


def _chain_left_behind(self: Any, now_ms: int, offset: int) -> None:
    """The log start passes records, and those behind them wait for them for good."""
    behind = [record for _, record in self._window.all() if record.is_behind]
    _move_start(self, now_ms, offset)
    for record in behind:
        record.is_behind = record.is_free


def _ready_though_behind(self: Any, now_ms: int, wall_ms: int) -> None:
    """A delivery time that comes makes a record ready that is not the first of its key."""
    waited = [record for _, record in self._window.all() if record.not_before_ms is not None]
    _come_up(self, now_ms, wall_ms)
    for record in waited:
        if record.not_before_ms is None:
            record.digest = 0


def _monotonic(self: Any, now_ms: int, wall_ms: int) -> None:
    """Delivery times are compared with a clock that begins anew with the process."""
    _come_up(self, now_ms, now_ms + 500_000)


def _run_goes_on(self: Any) -> None:
    """The next fetch goes on with a run that a member holds the first records of."""
    keys: dict[int, list[Record]] = {}
    for _, record in self._window.all():
        record.is_behind = False
        if record.digest and _is_open(record):
            keys.setdefault(record.digest, []).append(record)
    for records in keys.values():
        left = self._rules.run_max
        for record in records:
            left = 0 if record.waits else left
            record.is_behind = left == 0
            left -= left > 0


def _archiving_uncounted(self: Any) -> bool:
    """Records that wait for their dead letter take no room in the window."""
    window = self._window
    archiving = sum(record.state == ARCHIVING for _, record in window.all())
    taken = window.in_flight - window.delivery_complete_count - self._leased - archiving
    return bool(taken < self._rules.max_waiting)


def _no_wait_when_loaded(self: Any, offsets: range, now_ms: int) -> None:
    """A back-off counts from 0 again after a restart."""
    if now_ms > 0 and self._loaded_once:
        _hold_back(self, offsets, now_ms)


_hold_back = Managed._hold_back


@contextmanager
def _never_held_back_when_loaded() -> Any:
    begin = Managed.__init__

    def begun(self: Any, *args: Any, **named: Any) -> None:
        self._loaded_once = False
        begin(self, *args, **named)
        self._loaded_once = True

    with (
        mock.patch.object(Managed, "__init__", begun),
        mock.patch.object(Managed, "_hold_back", _no_wait_when_loaded),
    ):
        yield


@contextmanager
def _free_after_rollback() -> Any:
    """A write fails after the lock ran out, and the key stays free."""
    roll = Keyed.rollback

    def rolled(self: Any, write_id: int, now_ms: int) -> None:
        begun = self._batches_of(write_id)
        roll(self, write_id, now_ms)
        for first, last, *_ in begun:
            for offset in range(first, last + 1):
                record = self._window.records.get(offset)
                if record is not None and record.is_free:
                    record.digest = 0
        self._reorder()

    with mock.patch.object(Keyed, "rollback", rolled):
        yield


PLANTED: dict[str, tuple[type[RuleBasedStateMachine], Callable[[], Any]]] = {
    "the key is free when an acknowledgement begins": (
        KeyedEngines,
        _instead(Keyed, "_reorder", _freed_when_begun),
    ),
    "a released record goes to the end of its key": (KeyedEngines, _instead(Keyed, "_reorder", _at_the_end)),
    "loaded records are not read before": (KeyedEngines, _instead(Admitting, "_look_anew", _read_already)),
    "the log start leaves a chain behind": (
        KeyedEngines,
        _instead(Keyed, "move_log_start", _chain_left_behind),
    ),
    "a time readies a record that is not the first of its key": (
        KeyedEngines,
        _instead(Admitting, "_come_up", _ready_though_behind),
    ),
    "a run goes on in the next fetch": (KeyedEngines, _instead(Keyed, "_reorder", _run_goes_on)),
    "delivery times are monotonic": (TimedEngines, _instead(Admitting, "_come_up", _monotonic)),
    "archiving records are not counted": (
        ManagedEngines,
        lambda: mock.patch.object(Managed, "_may_admit", property(_archiving_uncounted)),
    ),
    "no back-off after a restart": (ManagedEngines, _never_held_back_when_loaded),
}
"""What the bug does, by which machine it is looked for."""
QUICK = ("a released record goes to the end of its key", "a run goes on in the next fetch")


def look_for(name: str) -> None:
    machine, plant = PLANTED[name]
    with plant(), pytest.raises((PartedError, AssertionError)):
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=40,
                deadline=None,
                derandomize=True,
                database=None,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate],
            ),
        )


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_bug_is_found(name: str) -> None:
    look_for(name)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in PLANTED if name not in QUICK])
def test_each_planted_bug_is_found(name: str) -> None:
    look_for(name)


def _roll_back_late() -> None:
    """Two records of a key: a write about the first one fails after its lock ran out."""
    engines = KeyedEngines()
    rules = _core.Rules(ordering="key", run_max=1)
    engines.rust, engines.reference = timed_drivers(rules, Keyed)
    entries = [(0, None, None, 1), (1, None, None, 1)]
    ack = {"first": 0, "last": 0, "types": [1]}
    operations: list[Operation] = [
        {"op": "init", "start_offset": 0, "state_batches": [], "lock_ms": 1000},
        {"op": "admit", "args": [0, [(0, 1)], entries, 500]},
        {"op": "acquire", "member": "m", "batches": [[0, 1]]},
        {"op": "writes", "hold": True},
        {"op": "ack", "member": "m", "batches": [ack]},
        {"op": "advance", "ms": 2000},
        {"op": "complete", "error_code": 16},
        {"op": "acquire", "member": "n", "batches": [[0, 1]]},
    ]
    for operation in operations:
        engines.apply(operation)


def test_a_rollback_after_the_lock_ran_out_keeps_the_key_and_one_that_does_not_is_found() -> None:
    _roll_back_late()
    with _free_after_rollback(), pytest.raises((PartedError, AssertionError)):
        _roll_back_late()
