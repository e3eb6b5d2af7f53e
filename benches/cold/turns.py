"""How much CPU time the turns of a broker's event loop take: other work on the machine does not change it."""

from __future__ import annotations

import array
import subprocess
import tempfile
from pathlib import Path

_SOURCE = Path(__file__).with_name("turns.c")


class Turns:
    """The turns of the event loop of a process that is started with `environment`.

    Args:
        scratch: a directory for what is compiled, and for what the process counts.
    """

    def __init__(self, scratch: Path) -> None:
        # a page of a file on the disk is written back now and then, and whoever counts in it waits for that
        memory = Path("/dev/shm")
        self._kept = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else scratch)
        library, self._file = scratch / "turns.so", Path(self._kept.name) / "turns"
        subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl"], check=True
        )
        self.environment = {"LD_PRELOAD": str(library), "TURNS_FILE": str(self._file)}
        self._before = array.array("Q")

    def begin(self) -> None:
        """Count from here on."""
        self._before = self._read()

    def longest(self, part: float = 1) -> float:
        """Milliseconds of CPU that the longest turn since `begin` took, or all but a part of them."""
        turns = [now - before for now, before in zip(self._read(), self._before, strict=True)]
        left = round(turns[0] * (1 - part))
        for number in range(len(turns) - 1, 0, -1):
            if turns[number] > left:
                return (number - 1) / 1000
            left -= turns[number]
        return 0.0

    def _read(self) -> array.array[int]:
        counts = array.array("Q")
        counts.frombytes(self._file.read_bytes())
        return counts
