"""The heap of a broker's process: one for all its threads."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

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
