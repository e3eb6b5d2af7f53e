"""The steps of a simulated machine's store: what its threads do elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from tests.simulation.loop import SimulatedLoop

from sharecore import _core


class DiskSteps(ABC):
    """A machine whose store writes, reads and maintains its disk a step at a time."""

    loop: SimulatedLoop
    _store: _core.Store | None = None
    _writing = _reading = _maintaining = False

    @abstractmethod
    def _latency_s(self) -> float:
        """Draw how long a step takes."""

    def _later(self, delay_s: float, step: Callable[[_core.Store], None], store: _core.Store) -> None:
        """Schedule a step."""
        self.loop.call_later(delay_s, step, store)

    def _outcome(self, store: _core.Store) -> None:
        """Wake those who wait for a step."""
        self.loop.readable(store.fileno())

    def _written(self, store: _core.Store) -> None:
        """Wake those who wait for a write."""
        self._outcome(store)

    def _opened(self, store: _core.Store) -> _core.Store:
        self._store = store
        self._writing = self._reading = self._maintaining = False
        return store

    def _abandon(self) -> None:
        """Leave the store as a process does that is killed."""
        if self._store is not None:
            self._store.abandon()
            self.loop.readers.pop(self._store.fileno(), None)
            self._store = None

    def _step_disk(self, store: _core.Store) -> None:
        """Schedule a write and a read if there is something to write and to read."""
        if not self._writing and store.has_work:
            self._writing = True
            self._later(self._latency_s(), self._write, store)
        if not self._reading and store.has_reads:
            self._reading = True
            self._later(self._latency_s(), self._read, store)

    def _write(self, store: _core.Store) -> None:
        if store is not self._store:
            return
        self._writing = False
        store.step()
        self._written(store)
        if not self._maintaining:
            self._maintaining = True
            self._later(self._latency_s(), self._maintain, store)

    def _read(self, store: _core.Store) -> None:
        if store is not self._store:
            return
        self._reading = False
        store.step_read()
        self._outcome(store)

    def _maintain(self, store: _core.Store) -> None:
        if store is not self._store:
            return
        self._maintaining = store.maintain()
        self._outcome(store)
        if self._maintaining:
            self._later(1.0 if store.maintenance_error else self._latency_s(), self._maintain, store)

    def nap(self, seconds: float) -> None:
        """Step the store while a thread of the log cleaner waits for a segment to be sealed."""
        store = self._store
        while store is not None and (store.step() or (not store.maintenance_error and store.maintain())):
            self.loop.readable(store.fileno())  # others may wait for other staged operations
