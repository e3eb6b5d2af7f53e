from __future__ import annotations

import os
from pathlib import Path

import pytest

from sharecore.security.files import FILE_BYTES_MAX, read_file
from sharecore.security.keystore import _blocks


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    link = tmp_path / "link"
    link.symlink_to(path)
    assert read_file(path) == read_file(link) == b"content"


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link, tmp_path, Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(OSError, match=r"not a regular file"):
            read_file(path)
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "nothing")


def test_a_file_that_is_too_large_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    with pytest.raises(OSError, match=r"at most"):
        read_file(path)
    # the system reports no size for such files
    with pytest.raises(OSError, match=r"more than 10 bytes"):
        read_file("/proc/self/status", 10)


def test_blocks_of_pem_are_found_in_one_pass() -> None:
    text = "-----BEGIN A-----x-----END A----- -----BEGIN B-----\n-----BEGIN C-----y-----END C-----"
    assert [(kind, text[part]) for kind, part in _blocks(text)] == [
        ("A", "-----BEGIN A-----x-----END A-----"),
        ("C", "-----BEGIN C-----y-----END C-----"),
    ]
    # each of these caused a search to the end of the text, with the GIL held
    assert list(_blocks("-----BEGIN A-----" * 200_000)) == []
