"""A consistent copy of a data directory under a running broker, as a crash would leave it."""

from __future__ import annotations

import os
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

Progress = Callable[[int, int], object]
"""Called with the copied and the total number of bytes."""

_CHUNK = 1 << 20
_ATTEMPTS_MAX = 200
_PAUSE_S = 0.02
_JOURNAL = ".journal"
_SEGMENTS = (_JOURNAL, ".compact")
# rewritten when the copy is opened, or valid only for the writing process
_LEFT_OUT = ("lock",)
_UNFINISHED = ".new"


@dataclass(frozen=True, slots=True)
class Copied:
    """Contents of a backup.

    Attributes:
        files: number of files.
        bytes: total size.
    """

    files: int
    bytes: int


class _Moment:
    """Files of a directory at one moment: growing files are read, others are kept open.

    A store never modifies a sealed file, never reuses a name, and creates a segment before writing a frame
    that names it. So if no file was added or removed while the newest journal segment was read, that segment
    refers only to files of this moment.
    """

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.content: dict[str, bytes] = {}
        self.open: dict[str, IO[bytes]] = {}
        names = _names(directory)
        for name in names:
            self.open[name] = stack.enter_context((directory / name).open("rb"))
        journals = [name for name in names if name.endswith(_JOURNAL)]
        growing = [name for name in names if not name.endswith(_SEGMENTS)] + journals[-1:]
        for name in growing:
            self.content[name] = self.open.pop(name).read()
        self.is_whole = bool(names) and _names(directory) == names

    @property
    def sizes(self) -> dict[str, int]:
        """File sizes by name, in name order."""
        sizes = {name: len(content) for name, content in self.content.items()}
        sizes |= {name: os.fstat(file.fileno()).st_size for name, file in self.open.items()}
        return dict(sorted(sizes.items()))

    def chunks(self, name: str, size: int) -> Iterator[bytes]:
        """Yield the first `size` bytes of a file."""
        if name in self.content:
            yield self.content[name]
            return
        file, left = self.open[name], size
        while left and (chunk := file.read(min(left, _CHUNK))):
            left -= len(chunk)
            yield chunk


def _names(directory: Path) -> list[str]:
    return sorted(
        entry.name
        for entry in os.scandir(directory)
        if entry.is_file() and entry.name not in _LEFT_OUT and not entry.name.endswith(_UNFINISHED)
    )


def _moment(directory: Path, stack: ExitStack) -> _Moment:
    """Return the files of one moment.

    Raises:
        OSError: the directory cannot be read, is not a data directory, or changes too fast.
    """
    if not (directory / "format").is_file():
        raise FileNotFoundError(f"{directory} is no data directory: it has no file `format`")
    for _ in range(_ATTEMPTS_MAX):
        attempt = ExitStack()
        try:
            moment = _Moment(directory, attempt)
        except FileNotFoundError:
            moment = None  # a segment was replaced in the meantime
        if moment is not None and moment.is_whole:
            stack.push(attempt)
            return moment
        attempt.close()
        time.sleep(_PAUSE_S)
    raise OSError(f"{directory} changed {_ATTEMPTS_MAX} times while it was read; try again")


def back_up(directory: Path, to: Path, progress: Progress) -> Copied:
    """Copy a data directory, whose broker may be running, into a new directory.

    Every write confirmed before the call is in the copy.

    Args:
        to: a new or empty directory. It appears once the copy is complete; until then it is `to`.partial.

    Raises:
        OSError: a file cannot be read or written, or `to` is not empty.
    """
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise FileExistsError(f"{to} exists already; name a new directory")
    partial = to.with_name(f"{to.name}.partial")
    partial.mkdir(mode=0o700, parents=True)
    with ExitStack() as stack:
        moment = _moment(directory, stack)
        sizes = moment.sizes
        done, total = 0, sum(sizes.values())
        for name, size in sizes.items():
            with open(os.open(partial / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                for chunk in moment.chunks(name, size):
                    file.write(chunk)
                    done += len(chunk)
                    progress(done, total)
                file.flush()
                os.fsync(file.fileno())
    if to.exists():
        to.rmdir()
    partial.rename(to)
    for changed in (to, to.parent):
        _sync(changed)
    return Copied(len(sizes), done)


def stream_backup(directory: Path, out: BinaryIO, progress: Progress) -> Copied:
    """Write a copy of a data directory, whose broker may be running, as a tar archive.

    Raises:
        OSError: a file cannot be read, or the archive cannot be written.
    """
    with ExitStack() as stack:
        moment = _moment(directory, stack)
        sizes = moment.sizes
        done, total = 0, sum(sizes.values())
        archive = stack.enter_context(tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT))
        for name, size in sizes.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = size, 0o600, int(time.time())
            archive.addfile(entry, _Reader(moment.chunks(name, size)))
            done += size
            progress(done, total)
    return Copied(len(sizes), done)


class _Reader:
    """File object for tarfile."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = b""

    def read(self, size: int = -1, /) -> bytes:
        while len(self._left) < size and (chunk := next(self._chunks, b"")):
            self._left += chunk
        part, self._left = self._left[:size], self._left[size:]
        return part


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
