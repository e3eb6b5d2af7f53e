"""The identity of a data directory: in a file with a copy in the store, and never invented for existing
data.
"""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.harness.broker import SHARECORE
from tests.harness.running import RunningBroker

from sharecore.admin.doctor import data_directory
from sharecore.broker.identity import identify
from sharecore.errors import ConfigError
from sharecore.protocol import ApiKey
from sharecore.storage import Storage
from sharecore.storage.damage import salvage, survey
from sharecore.storage.identity import (
    FILE_NAME,
    IDENTITY,
    DamagedIdentity,
    Identity,
    read_identity,
    write_identity,
)

Change = Callable[[Path], object]


def quiet(done: int, total: int) -> None:
    """Ignore all events."""


def served(directory: Path) -> str:
    """Return the cluster ID reported by a broker on a directory."""
    broker = RunningBroker(directory).start()
    try:
        cluster_id: str = broker.ask(ApiKey.METADATA, 12, topics=[]).cluster_id
    finally:
        broker.stop()
    return cluster_id


def forget(directory: Path) -> None:
    """Remove from the store what earlier releases did not write."""
    storage = Storage(directory)
    storage.catalog.change(deletes=[IDENTITY])
    storage.sync()
    storage.close()


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(b"cluster.id=") + 12] ^= 1
    path.write_bytes(content)


LOSSES: dict[str, Change] = {
    "lost": Path.unlink,
    "flipped": flipped,
    "emptied": lambda path: path.write_bytes(b""),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00" * 20),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:20]),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_a_file_that_is_lost_or_damaged_is_written_anew_from_the_store(
    tmp_path: Path, loss: Change, caplog: pytest.LogCaptureFixture
) -> None:
    before = served(tmp_path)
    path = tmp_path / FILE_NAME
    whole = path.read_bytes()
    loss(path)
    (problem,) = survey(tmp_path, quiet).problems
    assert problem.file == str(path)
    assert [each.what for each in data_directory(tmp_path) if each.level == "bad"] == [
        f"{path}: {problem.what}"
    ]
    with caplog.at_level(logging.WARNING):
        assert served(tmp_path) == before
    assert str(path) in caplog.text
    assert path.read_bytes() == whole
    assert survey(tmp_path, quiet).is_whole


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_where_nothing_repeats_the_file_a_start_is_refused(tmp_path: Path, loss: Change) -> None:
    before = served(tmp_path)
    forget(tmp_path)
    path = tmp_path / FILE_NAME
    kept = path.read_bytes()
    if loss is flipped:
        path.write_bytes(kept.replace(b"cluster.id=", b"cluster_id="))
    else:
        loss(path)
    files = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    with pytest.raises(ConfigError, match="restore it from a backup") as refusal:
        identify(tmp_path, 1)
    assert str(path) in str(refusal.value)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == files
    assert not survey(tmp_path, quiet).is_whole
    path.write_bytes(kept)
    assert served(tmp_path) == before


@pytest.mark.process
def test_a_broker_says_in_a_line_why_it_does_not_start(tmp_path: Path) -> None:
    served(tmp_path)
    forget(tmp_path)
    (tmp_path / FILE_NAME).write_bytes(b"\xff")
    command = [SHARECORE, "serve", "--data-dir", str(tmp_path), "--port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert str(tmp_path / FILE_NAME) in ended.stderr + ended.stdout
    assert "Traceback" not in ended.stderr + ended.stdout


def test_the_file_of_another_directory_is_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    before = served(one)
    served(other)
    (one / FILE_NAME).write_bytes((other / FILE_NAME).read_bytes())
    with pytest.raises(ConfigError, match="another directory's"):
        served(one)
    assert "another directory's" in survey(one, quiet).problems[0].what
    (one / FILE_NAME).unlink()
    assert served(one) == before


def test_a_file_without_a_checksum_is_read_and_written_anew(tmp_path: Path) -> None:
    before = served(tmp_path)
    forget(tmp_path)
    (tmp_path / FILE_NAME).write_text(f"version=1\ncluster.id={before}\nnode.id=1\n")
    assert survey(tmp_path, quiet).is_whole
    assert served(tmp_path) == before
    assert "checksum=" in (tmp_path / FILE_NAME).read_text()


@pytest.mark.heavy
def test_every_byte_of_the_file_counts(tmp_path: Path) -> None:
    written = Identity("MkU3OEVBNTcwNTJENDM2Qg", 12)
    write_identity(tmp_path, written)
    assert read_identity(tmp_path) == written
    path = tmp_path / FILE_NAME
    whole = path.read_bytes()
    for at in range(len(whole)):
        for bit in range(8):
            content = bytearray(whole)
            content[at] ^= 1 << bit
            path.write_bytes(content)
            try:
                found = read_identity(tmp_path)
            except DamagedIdentity:
                continue
            assert found == written, f"byte {at} xor {1 << bit}"


@pytest.mark.parametrize("is_lost", [False, True])
def test_salvage_keeps_who_the_directory_belongs_to(tmp_path: Path, is_lost: bool) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    before = served(old)
    if is_lost:
        (old / FILE_NAME).unlink()
    salvage(old, new, quiet)
    assert read_identity(new) == Identity(before, 1)
    assert served(new) == before


def test_a_directory_that_nobody_has_served_gets_a_new_id(tmp_path: Path) -> None:
    Storage(tmp_path).close()
    assert survey(tmp_path, quiet).is_whole
    assert len(identify(tmp_path, 5).cluster_id) == 22
    assert identify(tmp_path, 5) == read_identity(tmp_path)
