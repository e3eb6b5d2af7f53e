"""libsharecore through cffi: the header as it is, the shared library as `make capi` built it."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import cffi

ROOT = Path(__file__).resolve().parents[2]
CAPI = Path(os.environ.get("LIBSHARECORE", ROOT / "build/capi"))
HEADER = CAPI / "include/sharecore.h"


def shared_library() -> Path:
    """Return the library that is tested.

    Raises:
        FileNotFoundError: it was not built.
    """
    for suffix in (".so", ".dylib"):
        if (path := CAPI / f"lib/libsharecore{suffix}").exists():
            return path
    raise FileNotFoundError(f"no libsharecore in {CAPI}/lib: build it with `make capi`")


@cache
def load() -> tuple[cffi.FFI, Any]:
    """(ffi, lib): the types of the header, and the functions of the library."""
    declarations = "".join(
        line for line in HEADER.read_text().splitlines(True) if not line.startswith("#include")
    )
    preprocessed = subprocess.run(
        ["cc", "-E", "-P", "-"], input=declarations, check=True, capture_output=True, text=True
    )
    ffi = cffi.FFI()
    ffi.cdef(preprocessed.stdout)
    return ffi, ffi.dlopen(str(shared_library()))
