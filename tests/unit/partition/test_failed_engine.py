"""A leader with a failed engine ends; the next one starts from the persisted state."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.partition.bench import ACCEPT, LIMITS, Bench
from tests.unit.partition.logs import TOPIC

from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition import Engine


def _refuse(*args: Any, **settings: Any) -> None:
    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the engine failed in an earlier call")


def _fail(engine: Engine) -> None:
    with pytest.raises(KafkaError, match="UNKNOWN_SERVER_ERROR"):
        engine.fail()


@pytest.mark.parametrize(
    "change",
    [
        "lease",
        "acknowledge",
        "release",
        "advance",
        "commit",
        "rollback",
        "configure",
        "move_log_start",
    ],
)
def test_an_engine_that_failed_is_made_anew_from_what_was_persisted(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.take("m", LIMITS._replace(max_records=5, record_limit=True))
    bench.settle("m", (0, 1, ACCEPT))
    failed = bench.leader()
    engine, write = failed.engine, bench.persister.write
    assert engine is not None

    def fail_and_write(*args: Any) -> None:
        _fail(engine)
        write(*args)

    if change in ("commit", "rollback"):
        monkeypatch.setattr(bench.persister, "write", fail_and_write)
    elif change != "lease":
        _fail(engine)
    match change:
        case "lease":  # reads the log and calls the engine at once, and fails with the error of either
            with monkeypatch.context() as patched:
                patched.setattr(bench.logs[0], "read_cached", _refuse)
                bench.fetch("n", LIMITS._replace(max_wait_ms=0))
            error = bench.answers.pop("n")[0].error
            assert error is not None
            assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
        case "acknowledge":
            with pytest.raises(KafkaError, match="UNKNOWN_SERVER_ERROR"):
                bench.settle("m", (2, 2, ACCEPT))
        case "release":
            bench.leaders.release("g", "m", [(TOPIC, 0)])
        case "advance":
            bench.world.run(30_001)
        case "commit":
            bench.settle("m", (2, 2, ACCEPT))
            assert bench.ends == [None, None], "it is written, whatever becomes of the engine"
        case "rollback":
            bench.persister.fail_next = 1
            bench.settle("m", (2, 2, ACCEPT))
        case "configure":
            bench.leaders.reconfigure()
        case "move_log_start":
            bench.logs[0].delete_records(3)
    assert bench.leader() is not failed
    left = 3 if change in ("commit", "move_log_start") else 2
    assert bench.take("n") == [(left, 9, 1)]


def test_a_refusal_is_no_failure_of_the_engine() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    leader = bench.leader()
    bench.take("m")
    with pytest.raises(KafkaError, match="INVALID_RECORD_STATE"):
        bench.settle("n", (0, 9, ACCEPT))
    assert bench.leader() is leader
