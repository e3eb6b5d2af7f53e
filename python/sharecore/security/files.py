"""Files named by settings: bounded reads, and appends."""

from __future__ import annotations

import errno
import os
import stat

FILE_BYTES_MAX = 4 << 20
"""Far above the size of any key store, CA file or key set."""
READ_SECONDS_MAX = 10.0
"""Timeout of reads, such as from a hanging mount."""
_AT_ONCE = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def read_file(path: str | os.PathLike[str], bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """Return the content of a regular file.

    A setting may name any path: opening a named pipe would wait forever, and reading a device would never
    end.

    Raises:
        OSError: it cannot be read, is not a regular file, or has more than `bytes_max` bytes.
    """
    number = os.open(path, os.O_RDONLY | _AT_ONCE)
    try:
        status = _regular(number)
        if status.st_size > bytes_max:
            raise OSError(f"{status.st_size} bytes; at most {bytes_max} are read")
        with open(number, "rb", closefd=False) as file:
            content = file.read(bytes_max + 1)
    finally:
        os.close(number)
    if len(content) > bytes_max:
        raise OSError(f"more than {bytes_max} bytes")
    return content


def open_to_append(path: str | os.PathLike[str]) -> int:
    """Open a regular file for appending and return its descriptor; create it readable only by its owner.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    try:
        number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _AT_ONCE, 0o600)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a named pipe without a reader
            raise OSError("not a regular file") from None
        raise
    try:
        _regular(number)
    except OSError:
        os.close(number)
        raise
    return number


def _regular(number: int) -> os.stat_result:
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode):
        raise OSError("not a regular file")
    return status
