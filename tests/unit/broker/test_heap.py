"""The heap of a broker's process: one for all threads."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from sharecore.broker.process.heap import Trimmer

PROGRAM = """
import ctypes, sys, threading
from sharecore._core import use_one_heap

if sys.argv[1] == "one":
    use_one_heap()
kept, together = [], threading.Barrier(4)

def work():
    together.wait()
    kept.extend(bytearray(10_000) for _ in range(100))
    together.wait()

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.malloc_info.argtypes = ctypes.c_int, ctypes.c_void_p
libc.fclose.argtypes = (ctypes.c_void_p,)
file = libc.fopen(sys.argv[2].encode(), b"w")
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="GNU's C library has several heaps")
@pytest.mark.parametrize(("how", "one"), [("one", True), ("as it is", False)])
def test_threads_share_one_heap(tmp_path: Path, how: str, one: bool) -> None:
    told = tmp_path / "heaps.xml"
    subprocess.run([sys.executable, "-c", PROGRAM, how, str(told)], check=True)
    assert (told.read_text().count("<heap nr=") == 1) is one


FREEING = """
import time
from pathlib import Path
from sharecore._core import Partition, return_memory_soon

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

return_memory_soon()
state = [(offset, offset, 2 * (offset % 2), 1) for offset in range(1, 600_001)]
times = []
for _ in range(5):
    before = resident()
    partition = Partition(0, state, max_inflight=1_000_000)
    grown = resident() - before
    assert grown > 10 << 20, grown
    began = time.monotonic()
    del partition
    while resident() > before + grown // 2 and time.monotonic() < began + 5:
        Partition(0, state[:100])
    times.append(time.monotonic() - began)
print(min(times))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux says how much is resident")
def test_freed_memory_is_returned_soon() -> None:
    told = subprocess.run([sys.executable, "-c", FREEING], check=True, stdout=subprocess.PIPE)
    assert float(told.stdout) < 0.8, "mimalloc's default is a second"


class Process:
    """Memory set by a test, and the part released."""

    def __init__(self) -> None:
        self.resident, self.free, self.now_s, self.trims = 50 << 20, 0, 0.0, 0
        self.trimmer = Trimmer(self.trim, lambda: self.resident, lambda: self.now_s)

    def trim(self) -> None:
        self.trims += 1
        self.resident -= self.free
        self.free = 0

    def look(self) -> None:
        self.now_s += 1
        self.trimmer.look()


def test_memory_goes_back_after_a_peak() -> None:
    process = Process()
    for _ in range(4):
        process.resident += 50 << 20
        process.look()
    assert process.trims == 0, "it grows still"
    process.free = 200 << 20
    process.look()
    assert (process.trims, process.resident) == (1, 50 << 20)
    for _ in range(100):
        process.look()
    assert process.trims == 1


def test_memory_that_was_in_use_at_first_goes_back_in_the_end() -> None:
    process = Process()
    process.resident += 200 << 20
    for _ in range(10):
        process.look()
    assert process.trims == 1, "all of it is in use"
    process.free = 200 << 20
    for _ in range(40):
        process.look()
    assert process.resident == 50 << 20
