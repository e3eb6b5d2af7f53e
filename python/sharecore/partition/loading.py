"""Initial state of a share-partition leader: the persisted state and the start offset."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sharecore.clock import Clock
from sharecore.config import GroupConfig
from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition.failures import load_error
from sharecore.persister import LoadedState, Persister, SharePartitionKey, StateBatch
from sharecore.waiting import Done

if TYPE_CHECKING:
    from sharecore.storage import Found, Log

_UNKNOWN = -1
_AVAILABLE, _ACQUIRED = 0, 1


class Loaded(NamedTuple):
    """State of a share partition.

    Args:
        start_offset: the persisted start offset, or the one chosen by the group's reset policy.
        start_is_persisted: whether the start offset was persisted.
    """

    state: LoadedState
    start_offset: int
    start_is_persisted: bool


def without_locks(batches: Sequence[StateBatch]) -> tuple[Sequence[StateBatch], int]:
    """Make acquired records available, as their locks have no owner; return the number of such batches.

    Leaders never persist this state, but Kafka's share coordinator accepts it from any writer.
    """
    freed = sum(batch[2] == _ACQUIRED for batch in batches)
    if not freed:
        return batches, 0
    available = [
        (first, last, _AVAILABLE if state == _ACQUIRED else state, count)
        for first, last, state, count in batches
    ]
    return available, freed


def load(
    key: SharePartitionKey,
    leader_epoch: int,
    persister: Persister,
    source: Callable[[], tuple[Log, GroupConfig]],
    when_configured: Callable[[Done], object],
    clock: Clock,
    done: Callable[[Loaded | KafkaError], object],
) -> None:
    """Read the persisted state, then find a start offset if it has none; `done` may be called at once.

    Args:
        source: returns the log and the group's configuration as currently known.
        when_configured: calls back once that configuration is current, or with an error. It is called only
            to choose a first start offset; without an answer the partition does not start.
    """

    def read(state: LoadedState | KafkaError) -> None:
        if isinstance(state, KafkaError):
            done(load_error(state))
        elif state.start_offset == _UNKNOWN:
            when_configured(lambda error: begin(state, error))
        else:
            source()[0].when_known(partial(end, Loaded(state, state.start_offset, start_is_persisted=True)))

    def end(loaded: Loaded, error: KafkaError | None) -> None:
        done(loaded if error is None else error)

    def begin(state: LoadedState, error: KafkaError | None) -> None:
        if error is not None:
            done(load_error(error))
            return
        log, config = source()
        log = log.isolate(committed=config.read_committed)

        def found(start_offset: int | KafkaError) -> None:
            if isinstance(start_offset, KafkaError):
                done(start_offset)
            else:
                done(Loaded(state, start_offset, start_is_persisted=False))

        def known(error: KafkaError | None) -> None:
            if error is not None:
                done(error)
            else:
                find_first_offset(config, log, clock.now_ms(), found)

        log.when_known(known)

    try:
        persister.read(key, leader_epoch, read)
    except KafkaError as error:
        done(load_error(error))


def find_first_offset(
    config: GroupConfig, log: Log, now_ms: int, done: Callable[[int | KafkaError], object]
) -> None:
    """Find the start offset by the group's reset policy (`share.auto.offset.reset`).

    Args:
        now_ms: wall-clock time, as in record timestamps.
        done: called with the offset or an error; immediately unless a timestamp lookup is needed.
    """

    def latest() -> int:
        return log.last_stable_offset if config.read_committed else log.high_watermark

    def found(looking: asyncio.Future[Found | None]) -> None:
        if looking.cancelled():
            return
        error = looking.exception()
        if error is None:
            first = looking.result()
            done(latest() if first is None else first[0])
        else:
            done(
                error
                if isinstance(error, KafkaError)
                else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
            )

    reset = config.offset_reset
    if reset.strategy == "by_duration":
        log.find_offset(now_ms - reset.duration_ms).add_done_callback(found)
    else:
        done(log.start_offset if reset.strategy == "earliest" else latest())
