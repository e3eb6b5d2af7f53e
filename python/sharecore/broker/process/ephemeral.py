"""Data directory and defaults of a broker for tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "sharecore-ephemeral-"
_IN_USE = "in-use"
_MEMORY = Path("/dev/shm")
_MEMORY_FREE_MIN = 256 << 20

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "sharecore.durability": "os",
    # test groups form and change at once, with short locks
    "group.initial.rebalance.delay.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    # a few partitions of internal topics start faster than fifty
    "offsets.topic.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
"""Default settings of an ephemeral broker."""


@contextmanager
def ephemeral_directory() -> Iterator[Path]:
    """Create a directory for one broker, in memory if possible; delete it at the end.

    Directories left by killed brokers are deleted, too.

    Raises:
        OSError: no directory can be created.
    """
    parent = _parent()
    _sweep(parent)
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    in_use = _lock(directory)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(in_use)


def _parent() -> Path:
    with suppress(OSError):
        if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _MEMORY_FREE_MIN:
            return _MEMORY
    return Path(tempfile.gettempdir())


def _lock(directory: Path) -> int:
    """Mark a directory as in use while the returned file descriptor is open.

    Raises:
        OSError: a running broker uses it.
    """
    descriptor = os.open(directory / _IN_USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with suppress(ImportError):  # Windows has no fcntl; nothing is swept there
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
    return descriptor


def _sweep(parent: Path) -> None:
    if os.name != "posix":
        return
    for directory in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            # a directory without the mark is just being created
            if directory.stat().st_uid == os.getuid() and (directory / _IN_USE).exists():
                in_use = _lock(directory)
                shutil.rmtree(directory, ignore_errors=True)
                os.close(in_use)
