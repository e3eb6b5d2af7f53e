"""`make bench-queues`: another system that fails is shown as failed."""

from __future__ import annotations

import io
from array import array
from collections import defaultdict
from pathlib import Path
from typing import Never, cast

import pytest
from benches.queues.__main__ import JAVA, Bench, measure, table
from benches.queues.load import Load
from benches.queues.rivals import Nats
from benches.queues.shapes import Case
from benches.queues.subjects import Run
from benches.requests.others import NatsServer
from rich.console import Console

CASE = Case("a case", Run(Load("load", array("q", [1]))), lambda _: {})


class Fails:
    """A bench whose subjects fail."""

    def measure(self, name: str, case: Case) -> Never:
        raise RuntimeError(f"{name} ended with 1:\nnats: stalled")


def measured(name: str) -> str:
    """Measure a subject that fails; return the table."""
    found: dict[str, dict[str, list[float] | str]] = defaultdict(dict)
    measure(cast("Bench", Fails()), name, CASE, 3, found, Console(file=io.StringIO()))
    shown = io.StringIO()
    rows = [(CASE.title, figure, by_name) for figure, by_name in found.items()]
    Console(file=shown, width=160).print(table(rows, [name]))
    return shown.getvalue()


def test_a_rival_that_fails_is_shown_with_its_reason() -> None:
    assert "failed: nats: stalled" in measured("NATS JetStream")


def test_sharecore_may_not_fail() -> None:
    with pytest.raises(RuntimeError, match="stalled"):
        measured(JAVA)


class Ends(NatsServer):
    """A server that does not know its options."""

    command = "false"


def test_a_server_that_ends_at_its_start_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Nats, "server", Ends)
    rival = Nats(tmp_path / "home")
    with pytest.raises(RuntimeError, match="false ended with 1"):
        rival.start()
