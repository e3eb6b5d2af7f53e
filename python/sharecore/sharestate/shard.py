"""One partition of `__share_group_state`: the share partitions whose records it holds."""

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
        loads: how long reading took is added there.
    """

    def __init__(self, staged: StagedLog, loads: Spans | None = None) -> None:
        self.states: dict[SharePartitionKey, ShareState] = {}
        self.index = staged.log.index
        self.repaired = 0
        """State batches that were read and could not be as they were."""
        self._log = staged.log
        self._staged = staged
        self._prune_at = _PRUNE_RECORDS
        self._unreadable = ""
        self._loads = loads or Spans()

    def ensure_loaded(self) -> None:
        """Replays the partition, when that has not been done yet or a failed write left memory ahead of it.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS while writes whose end is open are under way;
                UNKNOWN_SERVER_ERROR when the partition holds a record that cannot be read.
        """
        if not self._staged.stale:
            return
        if self._staged.under_way:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        took_ms = stopwatch()
        fold = StateFold()
        offset = self._log.start_offset
        repaired: list[int] = []
        # nothing that is replayed is garbage, and the collector would walk all of it again and again
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
                logger.error("share state cannot be read: %s", text)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error
        else:
            self.states = {state.key: state for state in _drain(fold)}
            if repaired:
                self.repaired += fold.repaired
                logger.error(
                    "%s, from offset %d on: records of %d impossible state batches are delivered again",
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
        """Lets go of what was read; the next use reads again."""
        self.states = {}
        self._staged.stale = True

    def note_move(self) -> None:
        """A state is gone: leaders that write look for theirs again."""
        self._staged.note_move()

    def append(
        self, record: Record, now_ms: int, done: Done | None, *, snapshot_of: ShareState | None = None
    ) -> None:
        """Stages a record.

        Args:
            done: called when it is durable, or lost.
            snapshot_of: the state whose snapshot the record is.
        """
        if snapshot_of is None:
            self._staged.append([record], now_ms, done)
            return
        state, at = snapshot_of, snapshot_of.snapshot_offset

        def placed(offset: int) -> None:
            nonlocal at
            at = offset

        def ended(error: KafkaError | None) -> None:
            # until here the snapshot before it is what a restart begins with
            if error is None:
                state.snapshot_offset = at
                if at - self._log.start_offset > self._prune_at:
                    self.prune()
            if done is not None:
                done(error)

        self._staged.append([record], now_ms, ended, placed=placed)

    @property
    def is_loaded(self) -> bool:
        """Whether the states are what `ensure_loaded` would find."""
        return not self._staged.stale

    @property
    def is_durable(self) -> bool:
        """Whether the states are on the disk as they are now."""
        return self._staged.is_settled

    def when_durable(self, done: Done) -> None:
        """Call back when the states are on the disk as they are now, or when a write was lost."""
        self._staged.when_ended(done)

    def flush(self) -> None:
        """Append what is staged."""
        self._staged.flush()

    def prune(self) -> None:
        """Delete records that later snapshots have made redundant.

        Deletes none while a write is lost: it may have been one of these snapshots.
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
        """Rewrites the snapshots that keep old records from being pruned; returns their number.

        Only where the log has grown behind them by more than a new round of snapshots takes: an idle log
        stays as it is. And none while a write is lost: they would hold what was given up.
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
