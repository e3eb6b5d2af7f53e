"""A copy made while the store writes and replaces segments contains all earlier durable writes."""

from __future__ import annotations

import io
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.harness.batches import batch

from sharecore._core import Store
from sharecore.storage import backup
from sharecore.storage.backup import back_up, stream_backup
from sharecore.storage.damage import survey

NOW = 1_700_000_000_000
KEPT, DROPPED = 1, 2
RECORD = b"x" * 500


def nothing(done: int, total: int) -> None:
    """Show no progress."""


class Writer:
    """Appends to one log, and to another whose records it deletes again, so that segments come and go."""

    def __init__(self, path: Path) -> None:
        self.store = Store(path, durability="os", segment_bytes=8 << 10)
        self.store.wait(self.store.change(create_logs=[KEPT, DROPPED]))
        self.durable = 0
        self.may_write = threading.Event()
        self.may_write.set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        while not self._stopping.is_set():
            self.may_write.wait()
            for log in (KEPT, DROPPED):
                *_, sequence = self.store.append(log, batch([RECORD] * 4), NOW)
            self.store.wait(sequence)
            end = self.store.offsets(KEPT)[3]
            self.durable = end
            if end % 64 == 0:
                self.store.wait(self.store.delete_records(DROPPED, end - 16))

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            self.may_write.set()
            self._thread.join()
            self.store.close()


def end_of(path: Path) -> int:
    """Open a copy as a broker does; return the end of its log."""
    store = Store(path, durability="os")
    try:
        end = store.offsets(KEPT)[3]
        records, spans = store.read(KEPT, 0, 1 << 30)
        assert (spans[0][0], spans[-1][1]) == (0, end - 1)
        assert len(records) > end * len(RECORD)
        return end
    finally:
        store.close()


@pytest.mark.heavy
def test_copies_of_a_busy_store_are_whole_and_hold_what_was_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(tmp_path / "data")
    interfering = 0

    def names_of(directory: Path) -> list[str]:
        """List the files; the first times, let the store replace some of them before returning."""
        nonlocal interfering
        names, until = listed_names(directory), writer.durable + 64
        interfering -= 1
        if interfering < 0:
            writer.may_write.clear()
        while interfering >= 0 and writer.durable < until:
            time.sleep(0.001)
        return names

    listed_names = backup._names
    monkeypatch.setattr(backup, "_names", names_of)
    taken = []
    with writer.running():
        for number in range(3):
            taken.append(writer.durable)
            interfering = 3
            back_up(tmp_path / "data", tmp_path / f"copy-{number}", nothing)
            assert interfering < 0, "it looked again"
            writer.may_write.set()
    for number, before in enumerate(taken):
        assert survey(tmp_path / f"copy-{number}", nothing).is_whole
        assert end_of(tmp_path / f"copy-{number}") >= before


def test_an_archive_is_a_copy_too(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "data")
    archive = io.BytesIO()
    shown: list[tuple[int, int]] = []
    with writer.running():
        while writer.durable < 100:
            time.sleep(0.001)
        writer.may_write.clear()
        before = writer.durable
        copied = stream_backup(tmp_path / "data", archive, lambda done, total: shown.append((done, total)))
    assert shown[-1] == (copied.bytes, copied.bytes)
    archive.seek(0)
    with tarfile.open(fileobj=archive) as members:
        members.extractall(tmp_path / "copy", filter="data")
    assert survey(tmp_path / "copy", nothing).is_whole
    assert end_of(tmp_path / "copy") >= before


def test_nothing_is_overwritten_and_nothing_half_made_has_the_name(tmp_path: Path) -> None:
    Store(tmp_path / "data").close()
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "file").touch()
    with pytest.raises(FileExistsError, match="exists already"):
        back_up(tmp_path / "data", taken, nothing)
    with pytest.raises(FileNotFoundError, match="no data directory"):
        back_up(tmp_path, tmp_path / "copy", nothing)
    assert not (tmp_path / "copy").exists()


def test_the_directory_is_left_as_it_was(tmp_path: Path) -> None:
    store = Store(tmp_path / "data")
    before = {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()}
    back_up(tmp_path / "data", tmp_path / "copy", nothing)
    assert {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()} == before
    assert "lock" not in {path.name for path in (tmp_path / "copy").iterdir()}
    store.close()
