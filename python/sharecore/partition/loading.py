"""What a share-partition leader begins with: the state that was persisted, and where it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from sharecore.clock import Clock
from sharecore.config import GroupConfig
from sharecore.errors import KafkaError
from sharecore.partition.failures import load_error
from sharecore.partition.reset import find_first_offset
from sharecore.persister import LoadedState, Persister, SharePartitionKey

if TYPE_CHECKING:
    from sharecore.storage import Log

_UNKNOWN = -1


class Loaded(NamedTuple):
    """The state of a share partition.

    Args:
        start_offset: where it starts, by the group's reset policy where nothing was persisted.
        start_is_persisted: whether something was.
    """

    state: LoadedState
    start_offset: int
    start_is_persisted: bool


def load(
    key: SharePartitionKey,
    leader_epoch: int,
    persister: Persister,
    log: Log,
    config: GroupConfig,
    clock: Clock,
    done: Callable[[Loaded | KafkaError], object],
) -> None:
    """Asks the persister, then the log where there is no start offset yet; `done` may be called at once."""

    def read(state: LoadedState | KafkaError) -> None:
        if isinstance(state, KafkaError):
            done(load_error(state))
        else:
            log.when_known(lambda error: begin(state, error))

    def begin(state: LoadedState, error: KafkaError | None) -> None:
        def found(start_offset: int | KafkaError) -> None:
            if isinstance(start_offset, KafkaError):
                done(start_offset)
            else:
                done(Loaded(state, start_offset, start_is_persisted=False))

        if error is not None:
            done(error)
        elif state.start_offset != _UNKNOWN:
            done(Loaded(state, state.start_offset, start_is_persisted=True))
        else:
            find_first_offset(config, log, clock.now_ms(), found)

    try:
        persister.read(key, leader_epoch, read)
    except KafkaError as error:
        done(load_error(error))
