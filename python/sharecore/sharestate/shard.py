"""One partition of `__share_group_state`."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

from sharecore._core import StateFold
from sharecore.clock import stopwatch
from sharecore.coordinator_log.staged_log import StagedLog
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import key_of
from sharecore.sharestate.state import ShareState
from sharecore.waiting import Done, Spans

logger = logging.getLogger(__name__)

_PRUNE_RECORDS = 20_000


class StateShard:
    """The states in one partition of the topic.

    Args:
        staged: the partition.
        loads: collects load durations.
    """

    def __init__(self, staged: StagedLog, loads: Spans | None = None) -> None:
        self.states: dict[SharePartitionKey, ShareState] = {}
        self.index = staged.log.index
        self.repaired = 0
        """State batches that were repaired on load."""
        self._log = staged.log
        self._staged = staged
        self._prune_at = _PRUNE_RECORDS
        self._unreadable = ""
        self._loads = loads or Spans()

    def ensure_loaded(self) -> None:
        """Replay the partition if it was not loaded, or if a failed write left memory ahead of it.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS while writes are pending; UNKNOWN_SERVER_ERROR for an
                unreadable record.
        """
        if not self._staged.stale:
            return
        if self._staged.under_way:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        took_ms = stopwatch()
        fold = StateFold()
        offset = self._log.start_offset
        repaired: list[int] = []
        # replay creates no garbage, but the collector would scan all of it repeatedly
        collects = gc.isenabled()
        gc.disable()
        try:
            for offset, _timestamp, key, value in self._log.scan(self._log.start_offset):
                passed_over = fold.take(offset, key, value)
                if passed_over is not None:
                    logger.warning("%s at offset %d: %s", self._staged.name, offset, passed_over)
                if fold.repaired and not repaired:
                    repaired.append(offset)
        except ValueError as error:
            text = f"{self._staged.name} at offset {offset}: {error}"
            if text != self._unreadable:
                self._unreadable = text
                logger.error("cannot read share state: %s", text)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error
        else:
            self.states = {state.key: state for state in _drain(fold)}
            if repaired:
                self.repaired += fold.repaired
                logger.error(
                    "%s, from offset %d on: redelivering the records of %d invalid state batches",
                    self._staged.name,
                    repaired[0],
                    fold.repaired,
                )
        finally:
            if collects:
                gc.enable()
        self._loads.add(took_ms(), len(self.states))
        self._staged.stale = False

    def forget(self) -> None:
        """Discard the loaded states; the next use reloads them."""
        self.states = {}
        self._staged.stale = True

    def note_move(self) -> None:
        """Invalidate cached states of writers after a deletion."""
        self._staged.note_move()

    def append(
        self, record: Record, now_ms: int, done: Done | None, *, snapshot_of: ShareState | None = None
    ) -> None:
        """Stage a record.

        Args:
            done: called when the record is durable or lost.
            snapshot_of: the state, if the record is a snapshot.
        """
        if snapshot_of is None:
            self._staged.append([record], now_ms, done)
            return
        state, at = snapshot_of, snapshot_of.snapshot_offset

        def placed(offset: int) -> None:
            nonlocal at
            at = offset

        def ended(error: KafkaError | None) -> None:
            # until then, a restart begins with the previous snapshot
            if error is None:
                state.snapshot_offset = at
                if at - self._log.start_offset > self._prune_at:
                    self.prune()
            if done is not None:
                done(error)

        self._staged.append([record], now_ms, ended, placed=placed)

    @property
    def is_loaded(self) -> bool:
        """Whether the states are current, so that `ensure_loaded` would do nothing."""
        return not self._staged.stale

    @property
    def is_durable(self) -> bool:
        """Whether the current states are durable."""
        return self._staged.is_settled

    def when_durable(self, done: Done) -> None:
        """Call back when the current states are durable, or when a write was lost."""
        self._staged.when_ended(done)

    def flush(self) -> None:
        """Append the staged records."""
        self._staged.flush()

    def prune(self) -> None:
        """Delete records that later snapshots have made redundant.

        Deletes nothing while a write is lost: it may have been one of these snapshots.
        """
        if self._staged.ahead:
            return
        keep_from = min(
            (state.snapshot_offset for state in self.states.values()), default=self._log.high_watermark
        )
        if keep_from > self._log.start_offset:
            self._log.delete_records(keep_from)
        self._prune_at = max(_PRUNE_RECORDS, 2 * (self._log.end_offset - keep_from))

    def snapshot_cold(self, now_ms: int, older_than_ms: int) -> int:
        """Rewrite snapshots that pin old records; return their number.

        Only if the log after them has grown by more than a new round of snapshots, so that an idle log does
        not grow. Never while a write is lost: the snapshots would contain the abandoned change.
        """
        if self._staged.ahead:
            return 0
        end = self._log.end_offset
        slack = 2 * len(self.states) + 100
        count = 0
        for state in self.states.values():
            if end - state.snapshot_offset > slack and now_ms - state.content.write_ms >= older_than_ms:
                self.append(state.snapshot(now_ms, state.content.create_ms), now_ms, None, snapshot_of=state)
                count += 1
        return count


def _drain(fold: StateFold) -> Iterator[ShareState]:
    for key, snapshot_offset, content in fold.drain():
        yield ShareState(key_of(key), content, snapshot_offset)
