"""The wall clock of a process, stepped with libfaketime."""

from __future__ import annotations

from pathlib import Path

_PLACES = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib*/faketime/libfaketimeMT.so.1")
_LIBRARY = next((found for place in _PLACES for found in Path("/").glob(place[1:])), None)


class Clock:
    """The wall clock of one process; its monotonic clock stays as it is.

    Some programs cannot run with libfaketime: version 0.9.10 refuses to sleep until a time of the monotonic
    clock, as Python's `time.sleep` does.

    Args:
        file: where the library reads the difference from the machine's clock.
    """

    can_step = _LIBRARY is not None

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the process that has this clock."""
        self.step(0)
        return {
            "LD_PRELOAD": str(_LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def step(self, seconds: float) -> None:
        """Set the clock to a difference from the machine's; the process notices within a second."""
        fresh = self._file.with_suffix(".fresh")
        fresh.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(f"{seconds:+.3f}s\n")
        fresh.rename(self._file)
