"""Bugs in what queue settings promise: the simulator must find each of them, from outside of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock
from weakref import WeakKeyDictionary

from tests.simulation.canaries import Canary, Patch, _in_rust, _instead, _instead_of_rust, _nothing
from tests.simulation.queues.settings import BOUNDS, CHANGES, ORDER, WAITS

from sharecore._core import Rules
from sharecore.config import GroupConfig
from sharecore.partition import leader as leader_module
from sharecore.partition.leader import SharePartition
from sharecore.partition.leaders import SharePartitions

_ORDERED = f"members,idempotent,{ORDER}"
_DISK = f"{_ORDERED},failing disk,full disk"
_CRASHES = f"members,{ORDER},{WAITS},kills,failing engines"
_persist = SharePartition._persist
_wake = SharePartition.wake


def _committed_first(self: SharePartition, member: str, batches: Any, done: Any) -> None:
    """Keys are free once an acknowledgement has begun, whatever becomes of it."""
    assert self.engine is not None
    now_ms = self._clock.monotonic_ms()
    write = self.engine.acknowledge(now_ms, member, batches)
    if write is None:
        done(None)
        return
    self.engine.commit(write.id, now_ms)
    self._persister.write(self.key, self.state_epoch, self.leader_epoch, write, done)
    self.wake()


def _without(**off: Any) -> Patch:
    """Rules of a group that are not heard of."""

    def rules(**given: Any) -> Rules:
        return Rules(**{**given, **off})

    return _instead(leader_module, "Rules", rules)


def _bounded(**other: Any) -> Patch:
    """Other bounds than a group's."""

    def bound(self: SharePartitions, group_id: str, config: GroupConfig) -> None:
        _bound(self, group_id, replace(config, **other))

    return _instead(SharePartitions, "_bound", bound)


def _weights_anew(self: SharePartition, write: Any, done: Any = None) -> None:
    """What topics are owed is forgotten."""
    _persist(self, write, done)
    if self.bounds is not None:
        config = self.config
        limits = config.share_records_per_second, config.share_member_max_record_locks
        self.bounds.configure(*limits, config.topic_weights, config.breaker)


def _closed_at_once(self: SharePartitions, group_id: str, given_up: int, ended: int) -> None:
    """A breaker is closed when its pause is over, whatever becomes of the next records."""

    def close() -> None:
        config = self.config(group_id)
        self._bound(group_id, replace(config, share_breaker_percent=0, share_records_per_second=10_000))
        self._bound(group_id, config)

    _broken(self, group_id, given_up, ended)
    self._call_later(self.config(group_id).share_breaker_pause_ms / 1000 - 0.001, close)


def _for_records_alone(self: SharePartition) -> None:
    """Fetches that wait hear of new records, and of nothing else."""
    if self.log.high_watermark != _woken.get(self):
        _woken[self] = self.log.high_watermark
        _wake(self)


def _monotonic(self: SharePartition, *args: Any, **given: Any) -> None:
    """Delivery times count from when the broker began."""
    _made(self, *args, **given)
    clock = given["clock"]
    begun_ms = clock.now_ms() - clock.monotonic_ms() if not _begun else _begun[0]
    _begun[:] = [begun_ms]
    self.wall_ms = lambda: begun_ms + clock.monotonic_ms()


@contextmanager
def _by_another_clock() -> Iterator[None]:
    _begun.clear()
    with mock.patch.object(SharePartition, "__init__", _monotonic):
        yield


_made = SharePartition.__init__
_begun: list[int] = []
_woken: WeakKeyDictionary[SharePartition, int] = WeakKeyDictionary()
_bound, _broken = SharePartitions._bound, SharePartitions._broken

QUEUE_CANARIES: dict[str, Canary] = {
    "keys that are free too early": Canary(
        _instead_of_rust(SharePartition, "acknowledge", _committed_first), _DISK
    ),
    "released records that come last": Canary(_in_rust("released last"), _ORDERED),
    "loaded records that nobody looks at": Canary(_in_rust("loaded ready"), f"{_ORDERED},kills"),
    "failed acknowledgements that free keys": Canary(_in_rust("rollback frees"), _DISK),
    "records without a key in one line": Canary(_in_rust("null is empty"), ORDER),
    "letters that leave room": Canary(_in_rust("archiving uncounted"), f"letters,{WAITS}"),
    "runs that go on": Canary(_in_rust("run goes on"), _ORDERED),
    "lost records that hold back": Canary(_in_rust("lost hold back"), ORDER),
    "times that pass others": Canary(_in_rust("time passes"), f"{_ORDERED},{WAITS}"),
    "answers without their last record": Canary(_in_rust("thinned short"), f"members,{ORDER}"),
    "expanded batches of another log": Canary(_in_rust("expanded by offset"), f"members,idempotent,{ORDER}"),
    "back-offs that a load forgets": Canary(_in_rust("load forgets back-off"), _CRASHES),
    "free keys that wake nobody": Canary(
        _instead_of_rust(SharePartition, "wake", _for_records_alone), _ORDERED
    ),
    "weights that begin anew": Canary(_instead_of_rust(SharePartition, "_persist", _weights_anew), BOUNDS),
    "breakers without a trial": Canary(_instead(SharePartitions, "_broken", _closed_at_once), BOUNDS),
    "delivery times by another clock": Canary(_by_another_clock, f"members,{WAITS},clock jumps"),
    "records that do not expire": Canary(_without(ttl_ms=None, ttl_header=""), WAITS),
    "pauses that nobody heeds": Canary(
        _instead(SharePartition, "pause", _nothing), f"members,{BOUNDS},{CHANGES}"
    ),
    "members without a bound": Canary(
        _bounded(share_member_max_record_locks=100_000), f"members,{BOUNDS},{CHANGES}"
    ),
    "rates that nobody heeds": Canary(
        _bounded(share_records_per_second=10_000_000), f"members,idempotent,{BOUNDS},{CHANGES}"
    ),
    "locks that do not last": Canary(_instead(SharePartition, "_keep_locks", _nothing), BOUNDS),
}
