"""One share partition on its leader: the engine, the log it reads, and its persisted state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sharecore._core import ExpandedCache, Leader, Partition, Rules
from sharecore.clock import Clock
from sharecore.config import GroupConfig
from sharecore.deadletters import DeadLetter, DeadLetterService
from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition.failures import client_error, is_fenced
from sharecore.partition.leasing import Leasing
from sharecore.partition.loading import Loaded, load, without_locks
from sharecore.persister import Persister, SharePartitionKey
from sharecore.waiting import CallLater, Done, Spans, Timer, settle

if TYPE_CHECKING:
    from sharecore.deadletters.outbox import Outbox
    from sharecore.storage import Log

logger = logging.getLogger(__name__)

Engine = Partition
Answer = TypeVar("Answer")

_UNKNOWN = -1
_KEPT_S = 1.0
"""How long to cache records read for a fetch that ended before they arrived."""


class SharePartition(Leader):
    """Leader of one share partition; `_core.Leader` implements its fetches and acknowledgements.

    The leader loads its state from the persister on first use. A change starts in the engine, is persisted,
    and is then committed or rolled back. A callback reports the result to the caller.

    Args:
        persister: stores the state.
        clock: `monotonic_ms` for locks, `now_ms` for the reset policy.
        call_later: schedules lock expiry.
        fenced: called when another leader or state epoch has taken over, or the engine has failed:
            the object must not be used afterwards.
        loads: collects load durations.
        dead_letter_service: writes dead-letter records; None disables them.
        stateless: called if the persister has no state for this share partition.
        repaired: called with the number of state batches that were repaired on load.
        is_connected: returns whether a group member has a share session on this broker.
        when_configured: calls back once the configuration is current on every node; `configure` delivers
            changes made in the meantime.
        expanded: caches expanded batches; None disables the cache.
        predecessor_ms: since when members may hold records of the previous leader; None if they hold none.
    """

    __slots__ = (
        "_call_later",
        "_clock",
        "_closed",
        "_dead_letters",
        "_expanded",
        "_fenced",
        "_is_connected",
        "_load_began_ms",
        "_loading",
        "_loads",
        "_on_loaded",
        "_on_read",
        "_outbox",
        "_paused",
        "_persister",
        "_predecessor_ms",
        "_repaired",
        "_rests",
        "_stateless",
        "_switches",
        "_takeover",
        "_when_configured",
        "key",
        "wall_ms",
    )  # fmt: skip

    log: Log
    config: GroupConfig
    leasing: Leasing

    def __init__(
        self,
        key: SharePartitionKey,
        log: Log,
        config: GroupConfig,
        *,
        persister: Persister,
        clock: Clock,
        call_later: CallLater,
        fenced: Callable[[SharePartition], None],
        dead_letter_service: DeadLetterService | None = None,
        leader_epoch: int = 0,
        loads: Spans | None = None,
        stateless: Callable[[SharePartitionKey], None] = lambda key: None,
        repaired: Callable[[int], None] = lambda batches: None,
        is_connected: Callable[[str, str], bool] = lambda group_id, member_id: False,
        when_configured: Callable[[Done], object] = lambda done: done(None),
        expanded: ExpandedCache | None = None,
        predecessor_ms: int | None = None,
    ) -> None:
        self.key = key
        self.id = key.topic_id, key.partition
        self.log = log.isolate(committed=config.read_committed)
        self.config = config
        self.leader_epoch = leader_epoch
        self.used_ms = clock.monotonic_ms()
        self._persister = persister
        self._clock = clock
        self.now_ms = clock.monotonic_ms
        self.wall_ms = clock.now_ms
        self._call_later = call_later
        self._fenced = fenced
        self._stateless = stateless
        self._repaired = repaired
        self._is_connected = is_connected
        self._when_configured = when_configured
        self._dead_letters = dead_letter_service
        self._outbox: Outbox | None = None
        self._loading = False
        self._rests = self._switches = self._paused = False
        self._predecessor_ms = predecessor_ms
        self._takeover: Timer | None = None
        self._closed: KafkaError | None = None
        self._loads = loads or Spans()
        self._load_began_ms = 0
        self._on_loaded: list[Callable[[], object]] = []
        self._on_read: dict[Callable[[], object], None] = {}
        self._expanded = expanded or ExpandedCache(0)
        self.leasing = Leasing(self.log, self._read, self._expanded)
        self.leasing.read_committed = config.read_committed

    # lifecycle

    def load(self) -> None:
        """Request the state, unless it is loading or loaded. A failed load may be retried."""
        if self.engine is not None or self._loading:
            return
        self._loading = True
        self._load_began_ms = self._clock.monotonic_ms()
        self.error = None
        load(
            self.key,
            self.leader_epoch,
            self._persister,
            lambda: (self.log, self.config),
            self._when_configured,
            self._clock,
            self._loaded,
        )

    def when_loaded(self, callback: Callable[[], object]) -> None:
        """Call back once loading has finished or failed; immediately if it already has."""
        if self._loading:
            self._on_loaded.append(callback)
        else:
            callback()

    def _loaded(self, loaded: Loaded | KafkaError) -> None:
        self._loading = False
        self._loads.add(self._clock.monotonic_ms() - self._load_began_ms)
        if self._closed is not None:
            self.error = self._closed
        elif isinstance(loaded, KafkaError):
            self.error = loaded
            if loaded.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._stateless(self.key)
        else:
            self._begin(loaded)
        callbacks, self._on_loaded = self._on_loaded, []
        settle(callbacks)

    def _begin(self, loaded: Loaded) -> None:
        state, start_offset, self._start_is_persisted = loaded
        batches, freed = without_locks(state.batches)
        if freed:
            self._log(
                logging.ERROR, "state of %s: released the locks of %s state batches without an owner", freed
            )
            self._repaired(freed)
        try:
            self.engine = Partition(
                start_offset,
                batches,
                rules=self._rules(),
                now_ms=self._clock.monotonic_ms(),
                **self._limits(),
            )
        except (KafkaError, ValueError) as error:
            self._log(logging.ERROR, "persisted state of %s is invalid: %s", error)
            self.error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the persisted share state is damaged")
            return
        self.state_epoch = state.state_epoch
        self.log.on_advance(self._log_advanced)
        if self.log.start_offset > start_offset:
            self._run_engine(self.engine.move_log_start, self._clock.monotonic_ms(), self.log.start_offset)
        self._send_dead_letters()
        if self.engine is not None:
            self._rearm()

    def configure(self, config: GroupConfig) -> None:
        """Apply a changed configuration; running locks keep their deadlines."""
        self.config = config
        log = self.log.isolate(committed=config.read_committed)
        # after a notification of the new isolation level, no fetch may still read with the old one
        self._switches = log is not self.log
        self._rest()
        if log is self.log:
            self.leasing.read_committed = config.read_committed
        else:
            log.when_known(partial(self._read_on, log))
        if self.engine is not None:
            self._run_engine(partial(self.engine.configure, **self._limits()))
            if self.engine is not None:
                self._run_engine(self.engine.set_rules, self._rules())
            if self.engine is not None:
                self._rearm()
            self.wake()

    def _read_on(self, log: Log, error: KafkaError | None) -> None:
        """Switch to the log of another isolation level; acquired records stay acquired."""
        if self._closed is not None or log is not self.log.isolate(committed=self.config.read_committed):
            return
        if error is not None:
            self._fenced(self)
            return
        self._switches = False
        self._rest()
        before, self.log = self.log, log
        self.leasing = Leasing(log, self._read, self._expanded)
        self.leasing.read_committed = self.config.read_committed
        if self.engine is not None:
            log.on_advance(self._log_advanced)
            before.off_advance(self._log_advanced)
            self.wake()

    def rest(self, *, resting: bool) -> None:
        """Stop acquiring records, or resume."""
        self._rests = resting
        self._rest()

    def pause(self, *, paused: bool) -> None:
        """Stop acquiring records while the group is paused, or resume."""
        self._paused = paused
        self._rest()

    @property
    def takeover_left_ms(self) -> int:
        """How long nothing is acquired, as members may hold records of the previous leader."""
        if self._predecessor_ms is None or not self.config.share_ordering_takeover_wait:
            return 0
        until_ms = self._predecessor_ms + self.config.share_record_lock_duration_ms
        return max(0, until_ms - self._clock.monotonic_ms())

    def _rest(self) -> None:
        left_ms = self.takeover_left_ms
        self._forget_takeover()
        if left_ms:
            self._takeover = self._call_later(left_ms / 1000, self._takeover_ended)
        self.resting = self._rests or self._switches or self._paused or left_ms > 0

    def _takeover_ended(self) -> None:
        self._rest()
        self.wake()

    def _forget_takeover(self) -> None:
        if self._takeover is not None:
            self._takeover.cancel()
            self._takeover = None

    def _limits(self) -> dict[str, Any]:
        return {
            "max_delivery_count": self.config.share_delivery_count_limit,
            "max_inflight": self.config.share_partition_max_record_locks,
            "lock_ms": self.config.share_record_lock_duration_ms,
            "renew_enabled": self.config.share_renew_acknowledge_enable,
            "dead_letters": self._dead_letters is not None
            and self._dead_letters.wanted(self.key.group_id, self.config),
        }

    def _rules(self) -> Rules | None:
        """Return the delivery rules (order, back-off, delay, expiry); None if the group has none."""
        config = self.config
        if not config.has_rules:
            return None
        return Rules(
            ordering=config.share_ordering,
            run_max=config.share_ordering_run_max,
            key_header=config.share_ordering_key_header,
            backoff_ms=config.share_retry_backoff_ms,
            backoff_max_ms=max(config.share_retry_backoff_ms, config.share_retry_backoff_max_ms),
            multiplier=config.share_retry_backoff_multiplier,
            jitter=config.share_retry_backoff_jitter,
            on_release="release" in config.share_retry_backoff_on,
            on_timeout="timeout" in config.share_retry_backoff_on,
            max_waiting=config.share_partition_max_waiting,
            deliver_at_header=config.share_deliver_at_header,
            ttl_ms=config.share_record_ttl_ms if config.share_record_ttl_ms >= 0 else None,
            ttl_header=config.share_record_ttl_header,
            expired_letters=config.share_record_ttl_dead_letter,
        )

    def close(self, error: KafkaError) -> None:
        """End the leader: its topic or group was deleted, or another leader has taken over."""
        self._closed = self.error = error
        if self.engine is not None:
            self.log.off_advance(self._log_advanced)
            self.engine = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._forget_takeover()
        if self._outbox is not None:
            self._outbox.close()
        for each in self._take_subscribers():
            each.failed(self)
        self._freed()

    @property
    def holds(self) -> bool:
        """Whether a lease, a write or a dead-letter record is pending."""
        return bool(
            self._loading
            or self._writes
            or (self._outbox is not None and self._outbox.busy)
            or (self.engine is not None and self.engine.next_deadline_ms is not None)
        )

    @property
    def busy(self) -> bool:
        """Whether the leader holds anything or a fetch waits for it."""
        return self.holds or any(each.waiting for each in self._subscribers)

    @property
    def knows_waits(self) -> bool:
        """Whether records wait, or have waited, for times that a reload would not know."""
        engine = self.engine
        try:
            return engine is not None and engine.knows_waits(self.config.share_retry_backoff_ms > 0)
        except KafkaError:
            return False  # a failed engine is reloaded by the next use

    @property
    def memory_bytes(self) -> int:
        """Memory of the engine; 0 if it has failed or is not loaded."""
        try:
            return 0 if self.engine is None else self.engine.memory_bytes
        except KafkaError:
            return 0

    # a failed engine is unusable: fence this leader, and let the next request load the state again

    def _run_engine(self, operation: Callable[..., Answer], *args: object) -> Answer | None:
        """Return the engine's result; an engine failure fences the leader and returns None."""
        try:
            return operation(*args)
        except KafkaError as error:
            self._check_engine(error)
            return None

    def _check_engine(self, error: KafkaError) -> None:
        """Fence this leader if the error means that the engine has failed; a refusal does not."""
        if error.code is ErrorCode.UNKNOWN_SERVER_ERROR and self.engine is not None:
            self._log(logging.ERROR, "the engine of %s failed: %s", error)
            self._fenced(self)

    # fetching

    def readable_bytes(self, max_bytes: int) -> int:
        """Return how many bytes a fetch could read, up to `max_bytes`; acquires nothing."""
        if not self.fetchable:
            return 0
        assert self.engine is not None
        offset = max(self.engine.next_fetch_offset, self.log.start_offset)
        return self.log.readable_bytes(offset, max_bytes, limit=self.readable_end)

    @property
    def reading(self) -> bool:
        """Whether a thread is reading records that a fetch may acquire."""
        return self.leasing.reading and self.fetchable

    def when_read(self, callback: Callable[[], object]) -> None:
        """Call back once when the current thread read completes."""
        self._on_read[callback] = None

    def _read(self) -> None:
        self.wake()
        callbacks, self._on_read = self._on_read, {}
        settle(callbacks)
        if self.leasing.keeps:
            # the next fetch takes the cached records, unless the member has left
            self._call_later(_KEPT_S, self.leasing.forget)

    # acknowledging

    def release(self, member: str) -> None:
        """Release a member's records after its session ended; archive those at their delivery limit."""
        engine = self.engine
        if engine is not None:
            self._persist(self._run_engine(engine.release, self._clock.monotonic_ms(), member))

    def _not_written(self, error: KafkaError) -> KafkaError:
        """Roll back a change that was not persisted; return the client's error."""
        self._log(logging.WARNING, "state of %s was not persisted: %s", error)
        if is_fenced(error) and self.engine is not None:
            self._fenced(self)
        return client_error(error)

    def _log(self, level: int, text: str, error: object) -> None:
        about = {"group": self.key.group_id, "topic": self.log.topic, "partition": self.key.partition}
        logger.log(level, text, self.key.coordinator_key(), error, extra=about)

    def _unreadable(self, batches: int) -> None:
        """Log record batches that could not be decompressed to read times and keys."""
        text = "%s: cannot decompress %s record batches; their records are delivered without times and keys"
        self._log(logging.WARNING, text, batches)

    def _send(self, due: Sequence[tuple[int, int, int, int]]) -> None:
        if self._dead_letters is not None:
            if self._outbox is None:
                # created on demand: few share partitions ever write a dead-letter record
                log = self.log.isolate(committed=False)
                self._outbox = self._dead_letters.outbox(
                    self.key.group_id, self.key.topic_id, log, self._archive
                )
            self._outbox.send(map(DeadLetter._make, due))

    def _archive(self, spans: Sequence[tuple[int, int]]) -> None:
        """Archive records whose dead-letter records are written or were abandoned."""
        for span in spans:
            if self.engine is not None:
                self._persist(
                    self._run_engine(self.engine.finish_archiving, self._clock.monotonic_ms(), *span)
                )

    def _persist_start(self) -> None:
        """Persist the start offset once records are out, so that a restart does not reset past them."""
        self._start_is_persisted = True
        engine = self.engine
        assert engine is not None

        def ended(error: KafkaError | None) -> None:
            self._start_is_persisted = error is None

        try:
            self._persister.write_start(
                self.key, self.state_epoch, self.leader_epoch, engine.start_offset, ended
            )
        except KafkaError as error:
            ended(error)

    # time

    def _expire(self) -> None:
        self._timer = None
        engine = self.engine
        if engine is None:
            return
        now_ms = self._clock.monotonic_ms()
        if self.config.share_record_lock_keep != "none":
            self._run_engine(self._keep_locks, engine, now_ms)
        self._persist(self._run_engine(engine.advance, now_ms, self._clock.now_ms()))
        self._rearm()
        # wake waiting fetches before the write completes: the longest-waiting one precedes newer requests
        if self._interested:
            self.wake()
        self._freed()

    def _keep_locks(self, engine: Partition, now_ms: int) -> None:
        """Renew expired locks whose members are still connected."""
        group_id = self.key.group_id
        connected = [member for member in engine.running_out(now_ms) if self._is_connected(group_id, member)]
        if connected:
            engine.keep_locks(now_ms, connected, self.config.share_record_lock_keep_max_ms)
