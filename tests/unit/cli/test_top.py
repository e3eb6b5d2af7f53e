"""`sharecore top`: what its tables show, and the screen with keys pressed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import cast

import pytest
from textual.widgets import DataTable, Input, Static

from sharecore.admin.overview import GroupOverview, Position
from sharecore.admin.watch import Look, Watch
from sharecore.cli.top.app import Top
from sharecore.cli.top.rows import (
    GROUP_COLUMNS,
    PARTITION_COLUMNS,
    arranged,
    fitted,
    group_rows,
    partition_rows,
    shown,
)
from sharecore.errors import ErrorCode, KafkaError


def look(at_s: float, start: int, lag: int) -> Look:
    groups = {
        "workers": GroupOverview(
            "workers",
            "Stable",
            [("me", "/127.0.0.1")],
            {"jobs": {0: Position(start, lag), 1: Position(7, 0)}},
        ),
        "idle": GroupOverview("idle", "Empty", (), {"jobs": {0: Position(0, 900)}}),
        "hidden": GroupOverview("hidden", "Stable", error=KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)),
    }
    return Look(at_s, groups, {"workers": 3}, {("workers", "jobs", 0): 5}, {("workers", "jobs", 0): 1.5})


def test_a_table_fits_a_terminal_of_80_columns() -> None:
    headings = [*GROUP_COLUMNS[:4], "LAG ▼", *GROUP_COLUMNS[5:]]
    name = "billing-of-the-european-shop"
    rows = [[name, "Stable", "1", "3", "2,415", "0.0", "0.0", "2,415", "-"], ["a", *["1"] * 8]]
    whole = fitted(headings, rows, 130, 2)
    assert whole == (headings, rows)
    short, fitting = fitted(headings, rows, 80, 2)
    assert short == ["GROUP", "STATE", "MEMB", "PARTS", "LAG ▼", "SETL/S", "NEW/S", "BACK", "FLIGHT"]
    columns = zip(short, *fitting, strict=True)
    assert sum(max(map(len, column)) + 2 for column in columns) <= 80
    assert fitting[0][0] == "billing-o…opean-shop"
    assert fitting[1] == rows[1]
    assert fitted(headings, rows, 10, 2)[1][0][0] == "bil…shop", "a name never vanishes"


def test_rates_are_between_two_looks() -> None:
    rows = {row[0]: dict(zip(GROUP_COLUMNS, row, strict=True)) for row in group_rows(look(10, 100, 50), None)}
    assert rows["workers"]["SETTLED/S"] is None
    rows = {
        row[0]: dict(zip(GROUP_COLUMNS, row, strict=True))
        for row in group_rows(look(12, 140, 30), look(10, 100, 50))
    }
    assert rows["workers"] == {
        "GROUP": "workers",
        "STATE": "Stable",
        "MEMBERS": 1,
        "PARTITIONS": 2,
        "LAG": 30,
        "SETTLED/S": 20.0,
        "NEW/S": 10.0,
        "CAME BACK": 3,
        "IN FLIGHT": 5,
    }
    assert rows["idle"]["IN FLIGHT"] is None
    assert rows["hidden"]["STATE"] == "GROUP_AUTHORIZATION_FAILED"


def test_partitions_of_a_group() -> None:
    rows = [
        dict(zip(PARTITION_COLUMNS, row, strict=True))
        for row in partition_rows("workers", look(12, 140, 30), look(10, 100, 50))
    ]
    assert [row["PARTITION"] for row in rows] == ["jobs-0", "jobs-1"]
    assert (rows[0]["LAG"], rows[0]["OLDEST LEASE"], rows[1]["OLDEST LEASE"]) == (30, 1.5, None)
    assert partition_rows("gone", look(1, 1, 1), None) == []


def test_order_and_filter() -> None:
    rows = group_rows(look(1, 1, 1), None)
    lag = GROUP_COLUMNS.index("LAG")
    assert [row[0] for row in arranged(rows, lag, descending=True)] == ["idle", "workers", "hidden"]
    assert [row[0] for row in arranged(rows, lag, descending=False, wanted="ID")] == ["hidden", "idle"]
    # unknown values sort as the least
    assert arranged(rows, GROUP_COLUMNS.index("IN FLIGHT"), descending=True)[0][0] == "workers"
    assert [shown(cell) for cell in (None, 1234567, 2.25, "x")] == ["-", "1,234,567", "2.2", "x"]


class _Scripted:
    """Views with prepared content."""

    def __init__(self, *looks: Look | KafkaError) -> None:
        self._looks = list(looks)

    async def look(self) -> Look:
        found = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if isinstance(found, KafkaError):
            raise found
        return found

    async def why(self, group: GroupOverview) -> list[str]:
        return [f"jobs-{number}: {group.group_id} waits" for number in range(7)]


@pytest.mark.heavy
def test_keys() -> None:
    async def press() -> None:
        watch = cast(Watch, _Scripted(look(10, 100, 50)))
        app = Top(watch, "here:9092", 1000.0)
        async with app.run_test(size=(120, 24)) as pilot:
            await pilot.pause()
            table = app.query_one(DataTable)

            def names() -> list[str]:
                return [str(table.get_row_at(row)[0]) for row in range(table.row_count)]

            assert names() == ["idle", "workers", "hidden"]
            assert "here:9092   3 share groups" in str(app.query_one("#head", Static).content)
            await pilot.press("r")
            assert names() == ["hidden", "workers", "idle"]
            await pilot.press("slash", "w", "o", "enter")
            assert names() == ["workers"]
            assert not app.query_one(Input).display
            await pilot.press("enter")
            assert names() == ["jobs-0", "jobs-1"]
            await pilot.pause()
            said = str(app.query_one("#members", Static).content).splitlines()
            assert "me at /127.0.0.1" in said[0]
            assert said[1:] == [f"jobs-{number}: workers waits" for number in range(5)] + ["and 2 more"]
            await pilot.press("escape")
            assert names() == ["idle", "workers", "hidden"]
            assert str(app.query_one("#members", Static).content) == ""

    asyncio.run(press())


@pytest.mark.heavy
@pytest.mark.parametrize("keys", [["q"], ["ctrl+c"], ["slash", "w", "ctrl+c"]], ids=" ".join)
def test_keys_that_quit(keys: list[str]) -> None:
    async def press() -> None:
        app = Top(cast(Watch, _Scripted(look(10, 100, 50))), "here:9092", 1000.0)
        async with app.run_test(size=(120, 24)) as pilot:
            await pilot.pause()
            *others, last = keys
            await pilot.press(*others)
            assert not app._exit
            await pilot.press(last)
            assert app._exit

    asyncio.run(press())


def test_a_cluster_that_is_gone_is_said_and_the_table_stays() -> None:
    async def watch() -> None:
        gone = KafkaError(ErrorCode.NETWORK_EXCEPTION, "nobody answers")
        app = Top(cast(Watch, _Scripted(look(10, 100, 50), gone)), "here:9092", 1000.0)
        async with app.run_test(size=(120, 24)) as pilot:
            await pilot.pause()
            await app._look()
            assert "nobody answers" in str(app.query_one("#head", Static).content)
            assert app.query_one(DataTable).row_count == 3

    asyncio.run(watch())


@pytest.mark.process
def test_without_a_terminal() -> None:
    command = [sys.executable, "-m", "sharecore", "top"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "top needs a terminal" in ended.stderr
    text = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=30).stdout
    for word in ("SETTLED/S", "CAME BACK", "--metrics", "Esc"):
        assert word in text
