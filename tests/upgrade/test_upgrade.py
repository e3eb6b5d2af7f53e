"""This release on the data directories of others."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from tests.harness import data_directory
from tests.harness.batches import batch
from tests.harness.broker import QUICK_GROUPS, Broker
from tests.upgrade.contents import SETTINGS, check, fill
from tests.upgrade.small import NAME

from sharecore._core import Store

HERE = Path(__file__).parent
KEPT = sorted(HERE.glob("*.tar.xz"))
"""A directory of each format that was ever released, left behind by a broker that was killed."""

Unpack = Callable[[Path], tuple[Broker, Any]]


@pytest.fixture
def unpack(tmp_path: Path) -> Iterator[Unpack]:
    """Lays a kept directory where a broker will find it, which is not started yet."""
    made: list[Broker] = []

    def lay(archive: Path) -> tuple[Broker, Any]:
        with tarfile.open(archive) as tar:
            tar.extractall(tmp_path, filter="data")
        made.append(Broker(tmp_path, settings=QUICK_GROUPS | SETTINGS))
        return made[-1], json.loads((tmp_path / "expected.json").read_text())

    yield lay
    for broker in made:
        broker.kill()


@pytest.mark.parametrize("archive", KEPT, ids=lambda path: path.name)
def test_what_an_earlier_release_left_is_served_and_goes_on(archive: Path, unpack: Unpack) -> None:
    broker, expected = unpack(archive)
    broker.start()
    check(broker.bootstrap, NAME, expected)
    more = fill(broker.bootstrap, "more")
    broker.kill()
    broker.start()
    check(broker.bootstrap, "more", more)
    assert broker.terminate() == 0


@pytest.mark.parametrize("archive", KEPT, ids=lambda path: path.name)
def test_the_page_tells_how_a_directory_is_read(archive: Path, unpack: Unpack) -> None:
    """docs/store-format.md: a reader that was written from it finds what the store finds."""
    broker, _ = unpack(archive)
    data = broker.home / "data"
    found = the_same(data)
    assert found.compacts
    assert found.journals & {1, 2}, "the directory has a journal segment with an index"
    assert found.first_frame > 1


def test_the_page_tells_of_every_operation(tmp_path: Path) -> None:
    """docs/store-format.md, on a store of small segments whose checkpoints are taken away."""
    store = Store(tmp_path, segment_bytes=1 << 20)
    logs = [store.new_log_id() for _ in range(3)]
    store.change([(b"a", b"1"), (b"b", b"2")], [], create_logs=logs)
    for number in range(30):
        appended = store.append(logs[number % 3], batch([b"%d" % number] * 3), 1000)
    store.wait(appended[-1])
    store.wait(store.delete_records(logs[0], 7))
    store.wait(store.change([], [b"a"], drop_logs=[logs[1]]))
    store.close()
    found = the_same(tmp_path)
    assert set(found.operations) == {1, 2, 3, 4, 5, 6}
    assert found.format == 1
    assert found.release == version("sharecore")


def the_same(data: Path) -> data_directory.Directory:
    """What our reader finds; it is what the store finds."""
    found = data_directory.read(data)
    store = Store.look(data)
    try:
        assert found.catalog == dict(store.entries(b""))
        assert sorted(found.logs) == sorted(store.logs())
        for log_id, log in found.logs.items():
            start, end, *_ = store.offsets(log_id)
            assert (log.start, log.end) == (start, end)
            assert b"".join(each.bytes for each in log.batches) == whole(store, log_id, start)
    finally:
        store.close()
    return found


def whole(store: Store, log_id: int, offset: int) -> bytes:
    """All bytes of a log from an offset on."""
    found = bytearray()
    while True:
        records, batches = store.read(log_id, offset, 1 << 20)
        if not batches:
            return bytes(found)
        found += records
        offset = batches[-1][1] + 1


def test_a_newer_directory_is_refused_with_what_to_do(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.start()
    assert broker.terminate() == 0
    (tmp_path / "data" / "format").write_text("format=1000\nrelease=9.8.7\n")
    with pytest.raises(RuntimeError, match=r"ended with 1"):
        broker.start()
    said = broker.read_log().splitlines()[-1]
    assert "format 1000" in said
    assert "run 9.8.7 or later, or restore a copy from before the upgrade" in said
    assert (tmp_path / "data" / "format").read_text() == "format=1000\nrelease=9.8.7\n"
