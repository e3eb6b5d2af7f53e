"""`sharecore store` on intact, damaged, locked and missing directories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.unit.storage.test_storage import create
from typer.testing import CliRunner

from sharecore.cli.app import app
from sharecore.storage import Log, Storage, StorageOptions

OPTIONS = StorageOptions(segment_bytes=8 << 10)
ROUNDS = 60


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["store", *map(str, arguments)])


def told(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def logs(storage: Storage, name: str) -> list[Log]:
    topic = storage.topics.get(name)
    assert topic is not None
    return list(topic.partitions)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    storage = Storage(path, OPTIONS)
    create(storage, "orders", 2)
    create(storage, "returns", 1)
    for now_ms in range(ROUNDS):
        for log in (*logs(storage, "orders"), *logs(storage, "returns")):
            log.append_local(
                [(b"k", b"%s-%d %d " % (log.topic.encode(), log.index, now_ms) + bytes(200))], now_ms=1
            )
            storage.sync()
    storage.close()
    return path


def records(path: Path) -> dict[str, dict[int, bytes | None]]:
    """Return the content of every partition, by offset."""
    storage = Storage(path, OPTIONS)
    found = {
        f"{log.topic}-{log.index}": {offset: value for offset, _, _, value in log.scan(log.start_offset)}
        for topic in storage.topics
        for log in topic.partitions
    }
    storage.close()
    return found


def destroy(path: Path, what: bytes) -> None:
    """Flip a bit in the record that begins with `what`."""
    for file in path.iterdir():
        content = bytearray(file.read_bytes())
        at = content.find(what)
        if at >= 0:
            content[at] ^= 1
            file.write_bytes(content)


def test_a_directory_that_is_whole(directory: Path) -> None:
    result = run("check", directory)
    assert result.exit_code == 0
    assert result.stdout == f"{directory} is whole: 3 partitions\n"
    found = told(run("check", directory, "--json"))
    assert found["whole"] is True
    assert found["partitions"][0] == found["partitions"][0] | {
        "topic": "orders",
        "partition": 0,
        "end": ROUNDS,
    }


def test_what_is_damaged_is_listed_and_the_rest_is_kept_and_goes_on(directory: Path, tmp_path: Path) -> None:
    whole = records(directory)
    destroy(directory, b"orders-1 17 ")
    destroy(directory, b"returns-0 3 ")
    checked = run("check", directory)
    assert checked.exit_code == 1
    assert "orders-1   17            17\n" in checked.stdout
    assert f"sharecore store salvage {directory} --to NEWDIR" in checked.stdout

    new = tmp_path / "new"
    result = run("salvage", directory, "--to", new)
    assert result.exit_code == 1, result.output
    assert "returns-0  3             3\n" in result.stdout
    del whole["orders-1"][17], whole["returns-0"][3]
    assert records(new) == whole
    assert run("check", new).exit_code == 0


def test_in_place_the_damaged_directory_is_kept_beside(directory: Path) -> None:
    destroy(directory, b"orders-0 5 ")
    found = told(run("salvage", directory, "--in-place", "--json"))
    assert found["directory"] == str(directory)
    assert found["lost"] == [{"topic": "orders", "partition": 0, "first": 5, "last": 5}]
    assert run("check", directory).exit_code == 0
    assert run("check", directory.with_name("data.damaged-1")).exit_code == 1


def test_without_its_checkpoint_the_records_are_kept_under_new_names_at_worst(
    directory: Path, tmp_path: Path
) -> None:
    whole = records(directory)
    for file in directory.glob("*.checkpoint"):
        file.write_bytes(b"nothing of use")
    oldest = min(directory.glob("*.journal"))
    oldest.unlink()
    found = told(run("salvage", directory, "--to", tmp_path / "new", "--json"))
    assert found["more_may_be_lost"]
    assert any("checkpoint" in problem["file"] for problem in found["problems"])
    kept = records(tmp_path / "new")
    assert sorted(kept) == ["recovered-1-0", "recovered-2-0", "recovered-3-0"]
    values = [value for partition in kept.values() for value in partition.values()]
    everything = {value for partition in whole.values() for value in partition.values()}
    assert len(values) > 2 * ROUNDS
    assert everything.issuperset(values)


def test_what_cannot_be_done_is_said_in_one_line(directory: Path, tmp_path: Path) -> None:
    storage = Storage(directory, OPTIONS)
    used = run("check", directory)
    assert used.exit_code == 2
    assert "in use by another process" in used.output
    storage.close()
    for arguments in (
        ("check", tmp_path),
        ("check", tmp_path / "missing"),
        ("salvage", directory),
        ("salvage", directory, "--to", tmp_path / "x", "--in-place"),
        ("salvage", directory, "--to", tmp_path),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        assert result.output.count("\n") == 1
    assert not (tmp_path / "x").exists()
