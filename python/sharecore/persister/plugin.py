"""A persister provided by the user (`group.share.persister.class.name=package.module:Class`)."""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from sharecore._core import Write
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.persister.spi import Done, LoadedState, Persister
from sharecore.sharestate.coordinator import StateSummary
from sharecore.sharestate.keys import SharePartitionKey

logger = logging.getLogger(__name__)

_OPERATIONS = ("initialize", "read", "write", "write_start", "delete", "summary", "close")


class Loop(Protocol):
    """The part of an event loop that is used."""

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: object) -> object: ...


def load_plugin(name: str, settings: Mapping[str, str], loop: Loop) -> Persister:
    """Import a persister and create it.

    Args:
        name: `package.module:Class`.
        settings: passed to the class.
        loop: runs callbacks.

    Raises:
        ConfigError: the class does not exist, cannot be instantiated, or is not a persister.
    """
    setting = f"group.share.persister.class.name={name}"
    module_name, _, class_name = name.partition(":")
    try:
        made = getattr(importlib.import_module(module_name), class_name)(settings)
    except Exception as error:
        raise ConfigError(
            f"{setting}: {type(error).__name__}: {error}; allowed: a class that can be imported, "
            "called with a mapping of settings (see docs/persister.md)"
        ) from error
    missing = [each for each in _OPERATIONS if not callable(getattr(made, each, None))]
    if missing:
        raise ConfigError(
            f"{setting}: not a persister; it lacks {', '.join(missing)} (see docs/persister.md)"
        )
    return Guarded(made, loop)


class Guarded:
    """Enforce the persister contract on third-party code.

    Its callbacks may come from any thread. An exception fails only its own operation, and each operation
    completes exactly once.
    """

    def __init__(self, persister: Persister, loop: Loop) -> None:
        self._persister = persister
        self._loop = loop
        self._thread = threading.get_ident()

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done) -> None:
        self._run(done, self._persister.initialize, key, state_epoch, start_offset)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[LoadedState | KafkaError], None]
    ) -> None:
        self._run(done, self._persister.read, key, leader_epoch)

    def write(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, write: Write, done: Done
    ) -> None:
        self._run(done, self._persister.write, key, state_epoch, leader_epoch, write)

    def write_start(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, start_offset: int, done: Done
    ) -> None:
        self._run(done, self._persister.write_start, key, state_epoch, leader_epoch, start_offset)

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        self._run(done, self._persister.delete, key)

    def summary(self, key: SharePartitionKey, done: Callable[[StateSummary | KafkaError], None]) -> None:
        self._run(done, self._persister.summary, key)

    def close(self) -> None:
        try:
            self._persister.close()
        except Exception:
            logger.exception("cannot close the persister")

    def _run(self, done: Callable[[Any], None], operation: Callable[..., object], *args: object) -> None:
        ended = False

        def end(outcome: object) -> None:
            nonlocal ended
            if ended:
                return
            ended = True
            if threading.get_ident() == self._thread:
                done(outcome)
            else:
                with suppress(RuntimeError):  # the loop has ended: no caller waits any more
                    self._loop.call_soon_threadsafe(done, outcome)

        try:
            operation(*args, end)
        except KafkaError as error:
            end(error)
        except Exception as error:
            logger.exception("the persister failed: %s", operation)
            end(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the persister failed: {error}"))
