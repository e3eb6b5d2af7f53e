"""The clock of leases and sessions."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

import pytest

from sharecore.clock import SystemClock

BRACKETED = """
import time
from sharecore.clock import SystemClock
before = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
found = SystemClock().monotonic_ms()
after = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
assert before <= found <= after, (before, found, after)
"""
_SUSPENDED = ["unshare", "--time", "--boottime", "86400", "--fork"]
"""As on a machine that was suspended for a day: the two clocks of Linux are that far apart."""


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="no clock of that name here")
def test_time_goes_on_while_the_machine_is_suspended() -> None:
    apart = (
        shutil.which("unshare")
        and not subprocess.run([*_SUSPENDED, "true"], capture_output=True, check=False).returncode
    )
    command = [*(_SUSPENDED if apart else ()), sys.executable, "-c", BRACKETED]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_time_never_goes_back() -> None:
    clock = SystemClock()
    times = [clock.monotonic_ms() for _ in range(1000)]
    assert times == sorted(times)
