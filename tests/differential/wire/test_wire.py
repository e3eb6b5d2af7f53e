"""Raw requests are answered as Apache Kafka answers them, field for field; a planted difference is found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.differential.wire.families import FAMILIES
from tests.differential.wire.player import Player
from tests.differential.wire.run import Run, play
from tests.differential.wire.script import Stage, from_lines
from tests.differential.wire.side import Side

LIVES = 1
"""Of each family, always the same: some 800 requests in all."""
SECONDS_MAX = 90.0
PLANTED = {"group.share.session.timeout.ms": "44000"}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Side]]:
    home = tmp_path_factory.mktemp("wire")
    made = {
        "apache": Side(home / "apache", "apache"),
        "ours": Side(home / "ours", "sharecore"),
        "planted": Side(home / "planted", "sharecore", settings=PLANTED),
    }
    try:
        with ThreadPoolExecutor() as all_of_them:
            list(all_of_them.map(Side.start, made.values()))
        yield made
    finally:
        for side in made.values():
            side.stop()


@pytest.mark.timeout(120)
def test_the_answers_are_apaches(sides: dict[str, Side], tmp_path: Path) -> None:
    seed = 24  # `make differential-wire` uses random ones
    found: list[str] = []
    player = Player(sides["apache"], sides["ours"], "t")
    run = Run(player, tmp_path, found.append, Stage(), shrink_seconds=5)
    play(
        run,
        list(FAMILIES),
        seed,
        requests=sys.maxsize,
        lives=LIVES * len(FAMILIES),
        kinds_max=1,
        seconds=SECONDS_MAX,
        progress=print,
    )
    print(f"seed {seed}", *run.table(), sep="\n")
    assert not found, "\n".join(found)
    assert run.requests > 50


def test_a_planted_difference_is_found_shown_in_short_and_gone_without(
    sides: dict[str, Side], tmp_path: Path
) -> None:
    found: list[str] = []
    planted = Player(sides["apache"], sides["planted"], "p")
    run = Run(planted, tmp_path, found.append, Stage(), shrink_seconds=10)
    play(run, ["configs"], 7, requests=500, lives=sys.maxsize, kinds_max=1, seconds=30, progress=print)
    assert len(found) == 1
    assert "share.session.timeout.ms" in found[0]
    (file,) = tmp_path.iterdir()
    short = from_lines(file.read_text().splitlines())
    assert len(short) == 1
    assert planted.replay(short).differences
    assert Player(sides["apache"], sides["ours"], "r").replay(short).differences == []
