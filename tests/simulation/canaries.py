"""Bugs to be planted: the simulator must find each of them.

Each is a way to change the product while a simulation runs, and the actors and faults that it needs to show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from sharecore._core import Partition, StoredLog, Tickets, Timeouts, call_by_name, plant_bug
from sharecore.broker.coordinators import share as share_module
from sharecore.broker.coordinators.share import ShareServices
from sharecore.broker.handlers import produce as produce_module
from sharecore.broker.store import backend as ground_module
from sharecore.broker.store.retention import Retention
from sharecore.coordinator.share import topic_state
from sharecore.coordinator.share.coordinator import ShareGroupCoordinator
from sharecore.coordinator.transactions.coordinator import TransactionCoordinator
from sharecore.deadletters.outbox import Outbox
from sharecore.errors import KafkaError
from sharecore.network import Connection, Server
from sharecore.partition import leader as leader_module
from sharecore.partition.leader import SharePartition
from sharecore.partition.leaders import SharePartitions
from sharecore.partition.leasing import Leasing
from sharecore.partition.loading import Loaded
from sharecore.persister import CoordinatorPersister, LoadedState
from sharecore.session.cache import ShareSessionCache
from sharecore.storage import storage as storage_module

Patch = Callable[[], Any]
MEMBERS = "members,misfits,idempotent,transactions"
CRASHES = f"{MEMBERS},kills,power failures"
LETTERS = "members,letters"
_ARCHIVING, _ARCHIVED = 3, 4
SALVAGES = "members,idempotent,transactions,power failures,lying disk,misdirected writes"


@dataclass(frozen=True)
class Canary:
    """A bug.

    Args:
        plant: a context in which the product has it.
        features: what has to be on.
        events: how long the actors of a seed act; 0: as long as in others of its world.
    """

    plant: Patch
    features: str = MEMBERS
    events: int = 0


def _nothing(*_: Any, **__: Any) -> None:
    """Forgets to do it."""


async def _never(*_: Any) -> None:
    """Waits for nothing and does nothing."""


def _instead(target: Any, name: str, new: Any) -> Patch:
    return lambda: mock.patch.object(target, name, new)


def _instead_of_rust(target: Any, name: str, new: Any) -> Patch:
    """As `_instead`, for a method that the compiled part has itself and otherwise calls without its name."""

    @contextmanager
    def planted() -> Iterator[None]:
        call_by_name(True)
        try:
            with mock.patch.object(target, name, new):
                yield
        finally:
            call_by_name(False)

    return planted


def _in_rust(name: str) -> Patch:
    """Plant a bug that the compiled part has itself: `planted.rs` of the engine, share and produce crates."""

    @contextmanager
    def planted() -> Iterator[None]:
        plant_bug(name)
        try:
            yield
        finally:
            plant_bug()

    return planted


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
_look_up = produce_module._look_up
_leases_of = Leasing.__init__
_summary = CoordinatorPersister.summary
_trim = Retention._trim
_end = TransactionCoordinator.end
_options = ground_module._storage_options
_lost = Connection.connection_lost
_kept_connections: list[Connection] = []
_hold = SharePartitions.hold


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


def _sequences_forgotten(context: Any, asked: Any) -> Any:
    find, _ = yield from _look_up(context, asked)

    def forgetting(topic: Any) -> Any:
        found: Any = find(topic)
        for log in found[0]:
            log._store.expire_producers(context.broker.clock.now_ms() + 3_600_000_000)
        return found

    return forgetting, False


def _outcome_flipped(self: Any, *args: Any, commit: bool, **rest: Any) -> Any:
    return _end(self, *args, commit=not commit, **rest)


def _without_timers(now_ms: Any, call_later: Any) -> Timeouts:
    """Time stands still for fetches that wait."""

    def later(seconds: float, callback: Any) -> Any:
        return mock.Mock() if seconds else call_later(seconds, callback)

    return Timeouts(now_ms, later)


def _settled_at_once() -> Any:
    return Tickets(1 << 63)


def _rolled_forward(self: SharePartition, write: Any, done: Any = None) -> None:
    """A failed write is committed."""

    def written(key: Any, state_epoch: int, leader_epoch: int, write: Any, ended: Any) -> None:
        persister.write(key, state_epoch, leader_epoch, write, lambda error: ended(None))

    persister = self._persister
    with mock.patch.object(self, "_persister", mock.Mock(write=written)):
        _persist(self, write, done)


def _nothing_written(self: Outbox, topic: Any) -> None:
    """Records are archived, and their letters never written."""
    letters = list(self._due)
    self._due.clear()
    self._done(letters)


def _whole_lag(self: CoordinatorPersister, key: Any, done: Any) -> None:
    """Nobody counts what is settled behind the start offset."""

    def read(summary: Any) -> None:
        known = not isinstance(summary, KafkaError) and summary.delivery_complete_count > 0
        done(summary._replace(delivery_complete_count=0) if known else summary)

    _summary(self, key, read)


def _dropped_first(self: SharePartitions, group_id: str, topics: Any = None) -> Any:
    """Leaders are ended before their state is replaced, and may load the old one again."""
    _hold(self, group_id, topics)()
    return lambda: None


def _neighbors(self: Leasing, log: Any, *others: Any) -> None:
    """Share fetches of one partition read another."""
    _leases_of(self, log, *others)
    if log.topic == "first" and log.index == 0:
        self.stored = self._stored = StoredLog(log._store, log.log_id + 1, Tickets(), log._disk)


def _kept(self: Connection, error: Exception | None) -> None:
    """A client that has gone leaves behind what it held."""
    if self.held_bytes:
        self.closed = True
        self._server.forget(self)
        _kept_connections.append(self)
    else:
        _lost(self, error)


async def _trimmed_early(self: Retention, partition: Any, config: Any, now_ms: int) -> None:
    await _trim(self, partition, config, now_ms + 20_000)


@contextmanager
def _read_uncommitted() -> Iterator[None]:
    end = property(lambda self: self.log.high_watermark)
    with (
        _instead_of_rust(SharePartition, "readable_end", end)(),
        mock.patch.object(Leasing, "aborted", return_value=[]),
    ):
        yield


CANARIES: dict[str, Canary] = {
    "locks without a timer": Canary(_instead(SharePartition, "_expire", _nothing)),
    "locks that run out early": Canary(_engine(lock_ms=lambda ms: ms // 2)),
    "no delivery limit": Canary(_engine(max_delivery_count=lambda limit: limit + 5)),
    "nobody is woken": Canary(_instead_of_rust(SharePartition, "wake", _nothing)),
    "fetches whose time never comes": Canary(_instead(share_module, "Timeouts", _without_timers)),
    "answers before the write": Canary(
        _instead_of_rust(SharePartition, "acknowledge", _answered_first), CRASHES
    ),
    "answers before the sync": Canary(_instead(storage_module, "Tickets", _settled_at_once), CRASHES),
    "no sync": Canary(
        _instead(
            ground_module, "_storage_options", lambda config: replace(_options(config), durability="os")
        ),
        CRASHES,
    ),
    "a rollback that commits": Canary(
        _instead_of_rust(SharePartition, "_persist", _rolled_forward), f"{CRASHES},failing disk,full disk"
    ),
    "refusals that are not told": Canary(_instead_of_rust(SharePartition, "acknowledge", _refusals_hidden)),
    "renewals that are forgotten": Canary(
        _instead_of_rust(SharePartition, "acknowledge", _renewals_forgotten)
    ),
    "session epochs that are not checked": Canary(
        _instead_of_rust(ShareSessionCache, "resume", _epoch_ignored)
    ),
    "sessions that keep what they hold": Canary(_instead(ShareServices, "_session_closed", _nothing)),
    "counts that begin anew": Canary(
        _loaded(lambda state: state._replace(batches=[(a, b, s, 0) for a, b, s, _ in state.batches])), CRASHES
    ),
    "settled state that is not loaded": Canary(
        _loaded(lambda state: state._replace(batches=[(a, b, 0, n) for a, b, _, n in state.batches])), CRASHES
    ),
    "letters that a crash forgets": Canary(
        _loaded(
            lambda state: state._replace(
                batches=[(a, b, _ARCHIVED if s == _ARCHIVING else s, n) for a, b, s, n in state.batches]
            )
        ),
        f"{LETTERS},kills,power failures",
    ),
    "letters that are archived unwritten": Canary(_instead(Outbox, "_write", _nothing_written), LETTERS),
    "a start offset that goes back": Canary(
        _loaded(lambda state: state._replace(start_offset=max(state.start_offset - 5, -1))), CRASHES
    ),
    "aborted records": Canary(_instead(Leasing, "aborted", lambda self, first, end: [])),
    "read committed that reads all": Canary(_read_uncommitted),
    "sequence numbers that are forgotten": Canary(
        _instead(produce_module, "_look_up", _sequences_forgotten), "idempotent,cuts,slow network,slow disk"
    ),
    "commits that abort": Canary(_instead(TransactionCoordinator, "end", _outcome_flipped)),
    "memory that is not given back": Canary(_instead(Connection, "connection_lost", _kept)),
    "connections that are remembered": Canary(_instead(Server, "forget", _nothing)),
    "lags that count what is settled": Canary(_instead(CoordinatorPersister, "summary", _whole_lag)),
    "records of a neighbor": Canary(_instead(Leasing, "__init__", _neighbors)),
    "state that is begun anew behind its leader": Canary(
        _instead(topic_state, "_is_state", lambda found: False), SALVAGES
    ),
    "lost state that nobody makes anew": Canary(
        _instead(ShareGroupCoordinator, "state_lost", _nothing),
        "members,misdirected writes,kills",
        events=3_000,
    ),
    "leaders that load while their state is replaced": Canary(
        _instead(SharePartitions, "hold", _dropped_first),
        "members,offset administrators,slow disk",
        events=20_000,
    ),
    "retention that does not wait": Canary(_instead(Retention, "_trim", _trimmed_early), "idempotent"),
    "retention that never comes": Canary(_instead(Retention, "_trim", _never)),
    "requests of a session that count twice": Canary(_in_rust("epoch repeats")),
    "batches that are confirmed unprocessed": Canary(_in_rust("last batch dropped")),
    "state that is confirmed unwritten": Canary(
        _in_rust("lost is written"), f"{CRASHES},failing disk,full disk"
    ),
    "watchers that are not notified of records": Canary(_in_rust("watcher never waits")),
    "acknowledge errors that fetches hide": Canary(_in_rust("acknowledge error hidden")),
    "delivery counts of another range": Canary(_in_rust("first count for all")),
    "closed sessions that keep records": Canary(_in_rust("end keeps records")),
    "responses that leave too early": Canary(_in_rust("first end answers"), CRASHES),
    "records that a fetch keeps back": Canary(_in_rust("enough ignored")),
    "failed appends that are confirmed": Canary(
        _in_rust("failed is written"), f"{CRASHES},failing disk,full disk"
    ),
}
