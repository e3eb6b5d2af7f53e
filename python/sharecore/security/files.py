"""Files that settings name, read within bounds."""

from __future__ import annotations

import os
import stat

FILE_BYTES_MAX = 4 << 20
"""No key store, list of authorities or key set comes near it."""
READ_SECONDS_MAX = 10.0
"""For so long a file is waited for, such as one of a mount that hangs."""


def read_file(path: str | os.PathLike[str], bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """Return the content of a regular file.

    A setting may name anything: opening a named pipe would wait for ever, and reading a device never ends.

    Raises:
        OSError: it cannot be read, is no regular file, or has more than `bytes_max` bytes.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a regular file")
        if status.st_size > bytes_max:
            raise OSError(f"{status.st_size} bytes; at most {bytes_max} are read")
        with open(number, "rb", closefd=False) as file:
            content = file.read(bytes_max + 1)
    finally:
        os.close(number)
    if len(content) > bytes_max:
        raise OSError(f"more than {bytes_max} bytes")
    return content
