"""The audit file: a regular file, whatever happens to it while the broker runs."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sharecore.errors import ConfigError
from sharecore.security.acl import Operation, ResourceType
from sharecore.security.audit import Decision, record, write_to
from sharecore.security.principal import USER, Principal


@pytest.fixture
def audit() -> Iterator[logging.Logger]:
    logger = logging.getLogger("sharecore.audit")
    before = logger.handlers[:], logger.propagate, logger.level
    yield logger
    for handler in set(logger.handlers) - set(before[0]):
        handler.close()
    logger.handlers[:], logger.propagate = before[0], before[1]
    logger.setLevel(before[2])


def _deny(name: str) -> None:
    alice = Principal(USER, "alice")
    record(Decision(alice, "::1", Operation.READ, ResourceType.TOPIC, name, allowed=False))


@pytest.mark.parametrize("kind", ["pipe", "read pipe", "link", "directory", "device", "missing directory"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, audit: logging.Logger, kind: str) -> None:
    path = tmp_path / "audit"
    reader = None
    if kind in ("pipe", "read pipe"):
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if kind == "read pipe" else None
    elif kind == "link":
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to(tmp_path / "pipe")
    elif kind == "directory":
        path.mkdir()
    else:
        path = Path("/dev/null") if kind == "device" else tmp_path / "none" / "audit"
    handlers = audit.handlers[:]
    with pytest.raises(
        ConfigError, match=rf"sharecore\.audit\.log={path}: cannot be written: .*regular file"
    ):
        write_to(str(path), allowed=False)
    assert audit.handlers == handlers
    if reader is not None:
        os.close(reader)


def test_decisions_go_on_when_the_file_can_be_opened_again(
    tmp_path: Path, audit: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "directory" / "audit.jsonl"
    path.parent.mkdir()
    write_to(str(path), allowed=False)
    _deny("first")
    audit.handlers[0].flush()
    path.rename(tmp_path / "moved")
    os.mkfifo(path)
    _deny("into the pipe")
    audit.handlers[0].flush()
    path.unlink()
    path.parent.rmdir()
    _deny("into no directory")
    audit.handlers[0].flush()
    reasons = [each.getMessage() for each in caplog.records if each.name == "sharecore.security"]
    assert len(reasons) == 2
    assert "not a regular file" in reasons[0]
    assert "No such file or directory" in reasons[1]
    path.parent.mkdir()
    _deny("last")
    audit.handlers[0].flush()
    for file, name in ((tmp_path / "moved", "first"), (path, "last")):
        assert [json.loads(line)["resource"] for line in file.read_text().splitlines()] == [f"TOPIC:{name}"]
    assert path.stat().st_mode & 0o777 == 0o600
