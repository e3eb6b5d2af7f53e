"""Random scenarios of every family on both brokers, and what came of them."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.differential.wire.families import FAMILIES
from tests.differential.wire.known_through import KNOWN
from tests.differential.wire.minimize import minimize
from tests.differential.wire.names import NODE_ID
from tests.differential.wire.player import Played, Player
from tests.differential.wire.script import Stage, Step, to_line
from tests.differential.wire.side import Side

from sharecore.tier.membership.view import FIRST_NODE_ID


@contextmanager
def brokers(libs: Path | None = None, salt: str = "w") -> Iterator[Player]:
    """Both brokers, new and ready; killed at the end."""
    with tempfile.TemporaryDirectory(prefix="wire-") as home:
        sides = Side(Path(home) / "apache", "apache", libs), Side(Path(home) / "sharecore", "sharecore")
        with _started(sides):
            yield Player(*sides, salt=salt)


@contextmanager
def broker_and_node(libs: Path) -> Iterator[Player]:
    """Provide a broker of Apache Kafka, and a node in front of another one; all killed at the end."""
    with tempfile.TemporaryDirectory(prefix="wire-") as home:
        behind = Side(Path(home) / "behind", "apache", libs)
        settings = {"node.id": str(FIRST_NODE_ID + NODE_ID)}  # the node id that clients see
        apache = Side(Path(home) / "apache", "apache", libs, settings)
        upstream = f"127.0.0.1:{behind.port}"
        node = Side(Path(home) / "sharecore", "sharecore", upstream=upstream)
        with _started([behind]), _started([apache, node]):
            yield Player(apache, node, more=KNOWN)


@contextmanager
def _started(sides: Sequence[Side]) -> Iterator[None]:
    try:
        with ThreadPoolExecutor(len(sides)) as all_of_them:
            list(all_of_them.map(Side.start, sides))
        yield
    finally:
        for side in sides:
            side.stop()


@dataclass
class Family:
    """What a family of scenarios came to."""

    lives: int = 0
    requests: int = 0
    differing: int = 0
    apis: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)


class Run:
    """One comparison of many scenarios.

    Args:
        player: plays them.
        out: where short scripts of differences are written.
        say: told each new difference.
        stage: what scenarios are made for.
        shrink_seconds: how long to look for a shorter script; 0 not at all.
    """

    def __init__(
        self,
        player: Player,
        out: Path,
        say: Callable[[str], None],
        stage: Stage,
        *,
        shrink_seconds: float = 30,
    ) -> None:
        self.families: dict[str, Family] = {}
        self.kinds: Counter[tuple[str, ...]] = Counter()
        self._player = player
        self._out = out
        self._say = say
        self._stage = stage
        self._shrink_seconds = shrink_seconds

    @property
    def requests(self) -> int:
        return sum(family.requests for family in self.families.values())

    def life(self, name: str, seed: int) -> None:
        """One scenario of a family, from a seed."""
        random = Random(f"{name} {seed}")
        try:
            played = self._player.play(FAMILIES[name](random, self._stage))
        except Exception as error:
            error.add_note(f"in {name}, seed {seed}")
            raise
        family = self.families.setdefault(name, Family())
        family.lives += 1
        family.requests += played.requests
        family.apis += played.apis
        family.known += played.known
        if played.differences:
            family.differing += 1
            kind = played.signature()
            self.kinds[kind] += 1
            if self.kinds[kind] == 1:
                self._tell(name, seed, played)

    def _tell(self, name: str, seed: int, played: Played) -> None:
        def differs(steps: list[Step]) -> bool:
            again = self._player.replay(steps)
            return bool(again.differences) and str(again.differences[0]) == str(played.differences[0])

        short = minimize(played.steps, differs, seconds_max=self._shrink_seconds)
        shown = self._player.replay(short)
        file = self._out / f"{name}-{seed}-{len(self.kinds)}.jsonl"
        file.write_text(
            "".join(to_line(step) + "\n" for step in (shown if shown.differences else played).steps)
        )
        self._say(report(name, seed, file, shown if shown.differences else played))

    def table(self) -> list[str]:
        """Counts a family, then names of what is kept."""
        lines = [f"{'family':<14}{'lives':>7}{'requests':>10}{'differ':>8}"]
        for name, family in self.families.items():
            lines.append(f"{name:<14}{family.lives:>7}{family.requests:>10}{family.differing:>8}")
        known: Counter[str] = Counter()
        for family in self.families.values():
            known += family.known
        lines += [f"kept on purpose: {name}, {times} times" for name, times in sorted(known.items())]
        return lines


def report(name: str, seed: int, file: Path, played: Played) -> str:
    """Return a difference, with the script that shows it and the commands that show it again."""
    return "\n".join(
        [
            f"DIFFERENCE in {name}, seed {seed}, after {len(played.steps)} steps:",
            *(f"  {to_line(step)}" for step in played.steps),
            *(f"  {difference}" for difference in played.differences),
            f"see it again: python -m tests.differential.wire --replay {file}",
            f"the whole: python -m tests.differential.wire --families {name} --seed {seed} --lives 1",
        ]
    )


def play(
    run: Run,
    families: Sequence[str],
    seed: int,
    *,
    requests: int,
    lives: int,
    kinds_max: int,
    seconds: float,
    progress: Callable[[str], None],
) -> None:
    """Plays families in turns until so many requests, lives, kinds of differences or seconds have passed."""
    began = told = time.monotonic()
    for number in range(lives):
        if run.requests >= requests or len(run.kinds) >= kinds_max or time.monotonic() - began > seconds:
            break
        run.life(families[number % len(families)], seed + number // len(families))
        if time.monotonic() - told > 20:
            told = time.monotonic()
            progress(f"  {run.requests} requests, {sum(run.kinds.values())} differ, {told - began:.0f} s")
