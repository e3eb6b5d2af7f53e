"""A planted bug: the comparison sees it, and makes a short trace of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.differential import compare
from tests.differential.minimize import fair, minimize
from tests.differential.run import Run
from tests.differential.step import Operation, replay

from sharecore.reference import Partition, combine
from sharecore.trace.engines import Engine, StateBatch


class ForgetsTheLimit(Partition):
    """Archives a record one delivery late."""

    def __init__(
        self, start_offset: int = 0, state_batches: Iterable[StateBatch] = (), **limits: Any
    ) -> None:
        limits["max_delivery_count"] += 1
        super().__init__(start_offset, state_batches, **limits)


def _differs(planted: Engine) -> Callable[[list[Operation]], bool]:
    return lambda trace: compare.against_rust(replay(trace), planted) is not None


def test_a_planted_bug_is_found_and_shown_in_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = Engine("rust", ForgetsTheLimit, combine)
    monkeypatch.setattr(compare, "engine", lambda name: planted)
    run = Run(None, rust=True, out=tmp_path)
    text = next(found for seed in range(20) if (found := run.trace("near_the_limit", seed)) is not None)
    files = list(tmp_path.iterdir())
    assert run.differences == len(files) == 1
    assert str(files[0]) in text
    assert "python -m tests.differential.run --profiles near_the_limit --seed" in text
    assert len(files[0].read_text().splitlines()) <= 6


def test_minimizing_keeps_what_is_needed_and_fair() -> None:
    trace: list[Operation] = [
        {"op": "init", "max_delivery_count": 1},
        {"op": "advance", "ms": 1},
        {"op": "acquire", "member": "m", "batches": [[0, 9]]},
        {"op": "lso", "offset": 0},
        {"op": "release", "member": "m"},
        {"op": "advance", "ms": 1},
    ]
    short = minimize(trace, _differs(Engine("rust", ForgetsTheLimit, combine)))
    assert [operation["op"] for operation in short] == ["init", "acquire", "release"]


def test_a_trace_that_only_shows_a_listed_difference_is_not_fair() -> None:
    trace: list[Operation] = [
        {"op": "init"},
        {"op": "acquire", "member": "m", "batches": [[0, 4], [5, 9]], "batch_size": 5},
        {"op": "writes", "fail_next": 1},
        {"op": "advance", "ms": 30000},
    ]
    assert fair(trace[:3])
    assert not fair(trace)
    assert not fair(trace[1:])
