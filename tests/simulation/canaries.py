"""Bugs to be planted: the simulator must find each of them.

Each is a way to change the product while a simulation runs, and the actors and faults that it needs to show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from sharecore._core import Partition
from sharecore.broker import store_ground as ground_module
from sharecore.broker.retention import Retention
from sharecore.broker.share import ShareServices
from sharecore.coordinator.transactions.coordinator import TransactionCoordinator
from sharecore.errors import KafkaError
from sharecore.network import Connection, Server
from sharecore.partition import leader as leader_module
from sharecore.partition.leader import SharePartition
from sharecore.partition.leasing import Leasing
from sharecore.partition.loading import Loaded
from sharecore.persister import CoordinatorPersister, LoadedState
from sharecore.session.cache import ShareSessionCache
from sharecore.storage import Slice, Storage, StoreLog
from sharecore.storage.log import ANY_RECORDS
from sharecore.waiting import DelayedFetch

Patch = Callable[[], Any]
MEMBERS = "members,misfits,idempotent,transactions"
CRASHES = f"{MEMBERS},kills,power failures"


@dataclass(frozen=True)
class Canary:
    """A bug.

    Args:
        plant: a context in which the product has it.
        features: what has to be on.
    """

    plant: Patch
    features: str = MEMBERS


def _nothing(*_: Any, **__: Any) -> None:
    """Forgets to do it."""


async def _never(*_: Any) -> None:
    """Waits for nothing and does nothing."""


def _instead(target: Any, name: str, new: Any) -> Patch:
    return lambda: mock.patch.object(target, name, new)


def _engine(**changes: Callable[[int], int]) -> Patch:
    """Another setting than the group's."""

    def made(*args: Any, **settings: Any) -> Partition:
        return Partition(
            *args, **{**settings, **{key: change(settings[key]) for key, change in changes.items()}}
        )

    return _instead(leader_module, "Partition", made)


def _loaded(change: Callable[[LoadedState], LoadedState]) -> Patch:
    """State is another when it is loaded."""
    begin = SharePartition._begin

    def begun(self: SharePartition, loaded: Loaded) -> None:
        state = change(loaded.state)
        start = state.start_offset if state.start_offset >= 0 else loaded.start_offset
        begin(self, loaded._replace(state=state, start_offset=start))

    return _instead(SharePartition, "_begin", begun)


def _answered_first(self: SharePartition, member: str, batches: Any, done: Any) -> None:
    assert self.engine is not None
    write = self.engine.acknowledge(self._clock.monotonic_ms(), member, batches)
    done(None)
    self._persist(write)


_acknowledge = SharePartition.acknowledge
_persist = SharePartition._persist
_resume = ShareSessionCache.resume
_append = StoreLog.append
_read_cached = StoreLog.read_cached
_summary = CoordinatorPersister.summary
_trim = Retention._trim
_end = TransactionCoordinator.end
_options = ground_module._storage_options


def _refusals_hidden(self: SharePartition, member: str, batches: Any, done: Any) -> None:
    try:
        _acknowledge(self, member, batches, done)
    except KafkaError:
        done(None)


def _renewals_forgotten(self: SharePartition, member: str, batches: Any, done: Any) -> None:
    kept = [each for each in batches if each[2] != b"\4"]
    if kept:
        _acknowledge(self, member, kept, done)
    else:
        done(None)


def _epoch_ignored(self: ShareSessionCache, group: Any, member: Any, epoch: int) -> Any:
    session = self._sessions.get((group, member))
    if session is None or epoch <= 0:
        return _resume(self, group, member, epoch)
    session.epoch = epoch
    return _resume(self, group, member, epoch)


def _sequences_forgotten(self: StoreLog, records: bytes, *, now_ms: int) -> Any:
    self._store.expire_producers(now_ms + 3_600_000_000, 0)
    return _append(self, records, now_ms=now_ms)


def _outcome_flipped(self: Any, *args: Any, commit: bool, **rest: Any) -> Any:
    return _end(self, *args, commit=not commit, **rest)


def _settled_at_once(self: Storage, sequence: int) -> Any:
    return self._settled


def _rolled_forward(self: SharePartition, write: Any, done: Any = None) -> None:
    """A failed write is committed."""

    def written(key: Any, state_epoch: int, leader_epoch: int, write: Any, ended: Any) -> None:
        persister.write(key, state_epoch, leader_epoch, write, lambda error: ended(None))

    persister = self._persister
    with mock.patch.object(self, "_persister", mock.Mock(write=written)):
        _persist(self, write, done)


def _whole_lag(self: CoordinatorPersister, key: Any, done: Any) -> None:
    """Nobody counts what is settled behind the start offset."""

    def read(summary: Any) -> None:
        known = not isinstance(summary, KafkaError) and summary.delivery_complete_count > 0
        done(summary._replace(delivery_complete_count=0) if known else summary)

    _summary(self, key, read)


def _neighbours(self: StoreLog, offset: int, max_bytes: int, **rest: Any) -> Any:
    if self.topic == "first" and self.index == 0:
        with suppress(KafkaError):
            most = rest.get("max_records", ANY_RECORDS)
            found = self._store.read_cached(self.log_id + 1, offset, max_bytes, None, True, most)
            return None if found is None else Slice(*found)
    return _read_cached(self, offset, max_bytes, **rest)


async def _trimmed_early(self: Retention, partition: Any, config: Any, now_ms: int) -> None:
    await _trim(self, partition, config, now_ms + 20_000)


@contextmanager
def _read_uncommitted() -> Iterator[None]:
    end = property(lambda self: self.log.high_watermark)
    with (
        mock.patch.object(SharePartition, "readable_end", end),
        mock.patch.object(Leasing, "_aborted", return_value=[]),
    ):
        yield


CANARIES: dict[str, Canary] = {
    "locks without a timer": Canary(_instead(SharePartition, "_arm", _nothing)),
    "locks that run out early": Canary(_engine(lock_ms=lambda ms: ms // 2)),
    "no delivery limit": Canary(_engine(max_delivery_count=lambda limit: limit + 5)),
    "nobody is woken": Canary(_instead(SharePartition, "wake", _nothing)),
    "fetches whose time never comes": Canary(_instead(DelayedFetch, "_time_is_over", _nothing)),
    "answers before the write": Canary(_instead(SharePartition, "acknowledge", _answered_first), CRASHES),
    "answers before the sync": Canary(_instead(Storage, "_ticket", _settled_at_once), CRASHES),
    "no sync": Canary(
        _instead(
            ground_module, "_storage_options", lambda config: replace(_options(config), durability="os")
        ),
        CRASHES,
    ),
    "a rollback that commits": Canary(
        _instead(SharePartition, "_persist", _rolled_forward), f"{CRASHES},failing disk,full disk"
    ),
    "refusals that are not told": Canary(_instead(SharePartition, "acknowledge", _refusals_hidden)),
    "renewals that are forgotten": Canary(_instead(SharePartition, "acknowledge", _renewals_forgotten)),
    "session epochs that are not checked": Canary(_instead(ShareSessionCache, "resume", _epoch_ignored)),
    "sessions that keep what they hold": Canary(_instead(ShareServices, "_session_closed", _nothing)),
    "counts that begin anew": Canary(
        _loaded(lambda state: state._replace(batches=[(a, b, s, 0) for a, b, s, _ in state.batches])), CRASHES
    ),
    "settled state that is not loaded": Canary(
        _loaded(lambda state: state._replace(batches=[(a, b, 0, n) for a, b, _, n in state.batches])), CRASHES
    ),
    "a start offset that goes back": Canary(
        _loaded(lambda state: state._replace(start_offset=max(state.start_offset - 5, -1))), CRASHES
    ),
    "aborted records": Canary(_instead(Leasing, "_aborted", lambda self, part: [])),
    "read committed that reads all": Canary(_read_uncommitted),
    "sequence numbers that are forgotten": Canary(
        _instead(StoreLog, "append", _sequences_forgotten), f"{CRASHES},cuts,pieces,slow network"
    ),
    "commits that abort": Canary(_instead(TransactionCoordinator, "end", _outcome_flipped)),
    "memory that is not given back": Canary(_instead(Connection, "_free", _nothing)),
    "connections that are remembered": Canary(_instead(Server, "forget", _nothing)),
    "lags that count what is settled": Canary(_instead(CoordinatorPersister, "summary", _whole_lag)),
    "records of a neighbour": Canary(_instead(StoreLog, "read_cached", _neighbours)),
    "retention that does not wait": Canary(_instead(Retention, "_trim", _trimmed_early)),
    "retention that never comes": Canary(_instead(Retention, "_trim", _never)),
}
