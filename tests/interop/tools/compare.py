"""One scenario on two brokers, at the same time."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.harness.broker import Broker
from tests.harness.java import ToolServer
from tests.interop.tools.known import explain
from tests.interop.tools.scenarios import Do, Tool
from tests.interop.tools.transcript import transcript

_SETTINGS = {
    "node.id": "0",  # as the tools print it
    "group.initial.rebalance.delay.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    # the records have timestamps of 2023, and a broker deletes old ones half a minute after its start
    "log.retention.ms": "-1",
}


class Comparison(NamedTuple):
    """What the tools printed on each broker."""

    apache: list[str]
    sharecore: list[str]

    def differing(self) -> list[str]:
        """Return the commands, with the options they had, whose outputs differ in a way that is not known."""
        return [apache[0] for apache, sharecore in self._pairs() if explain(apache, sharecore) is None]

    def difference(self) -> list[str]:
        """Nothing, or the differing commands, each with the lines that differ."""
        return [
            line
            for apache, sharecore in self._pairs()
            if explain(apache, sharecore) is None
            for line in [apache[0], *difflib.unified_diff(apache[1:], sharecore[1:], n=1, lineterm="")]
            if not line.startswith(("---", "+++", "@@"))
        ]

    def known(self) -> dict[str, int]:
        """How many commands show each of the known differences."""
        return dict(Counter(name for pair in self._pairs() for name in explain(*pair) or ()))

    def _pairs(self) -> list[tuple[list[str], list[str]]]:
        return list(zip(_by_command(self.apache), _by_command(self.sharecore), strict=True))


def _by_command(told: list[str]) -> list[list[str]]:
    parts: list[list[str]] = []
    for line in told:
        if line.startswith("$ "):
            parts.append([])
        parts[-1].append(line)
    return parts


def compare(home: Path, scenario: Iterable[Tool | Do], settings: Mapping[str, str]) -> Comparison:
    """Plays a scenario on a new broker of each kind with these settings; each has one JVM of tools."""
    steps = list(scenario)

    def play(kind: str) -> list[str]:
        (home / kind).mkdir()
        broker = Broker(home / kind, kind, _SETTINGS | dict(settings))
        broker.start()
        try:
            with ToolServer({"TZ": "UTC"}) as server:
                return transcript(server, broker.bootstrap, steps)
        finally:
            broker.kill()

    with ThreadPoolExecutor(2) as both:
        apache, sharecore = both.map(play, ("apache", "sharecore"))
    return Comparison(apache, sharecore)
