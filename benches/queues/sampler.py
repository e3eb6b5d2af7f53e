"""CPU time and memory of a process while something runs."""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

EVERY_S = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Sample(NamedTuple):
    """What a process has used at a time, in nanoseconds since the epoch."""

    at_ns: int
    cpu_s: float
    resident: int


def sample(pid: int) -> Sample:
    """Return what the process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return Sample(time.time_ns(), (int(fields[11]) + int(fields[12])) / _TICKS, resident)


class Sampler:
    """Samples a process ten times a second, in a thread of its own."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._samples = [sample(pid)]
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._is_over.wait(EVERY_S):
            self._samples.append(sample(self._pid))

    def cpu_s(self, began_ns: int, ended_ns: int) -> float:
        """Return the CPU seconds used between two times."""
        return self._at(ended_ns).cpu_s - self._at(began_ns).cpu_s

    def grown_bytes(self) -> int:
        """Return how much more memory was resident at most than at the beginning."""
        return max(each.resident for each in self._samples) - self._samples[0].resident

    def _at(self, at_ns: int) -> Sample:
        index = bisect(self._samples, at_ns, key=lambda each: each.at_ns)
        return self._samples[min(index, len(self._samples) - 1)]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._samples.append(sample(self._pid))
