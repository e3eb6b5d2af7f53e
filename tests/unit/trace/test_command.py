"""`python -m sharecore.trace`, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sharecore.trace.__main__ import main

TRACE = """\
{"op": "init", "max_delivery_count": 2}
{"op": "acquire", "member": "m", "batches": [[0, 9]]}

{"op": "writes", "hold": true}
{"op": "ack", "member": "m", "batches": [{"first": 0, "last": 3, "types": [1]}]}
{"op": "ack", "member": "x", "batches": [{"first": 4, "last": 4, "types": [1]}]}
{"op": "complete"}
{"op": "advance", "ms": 30000}
{"op": "complete", "error_code": 16}
{"op": "reload"}
{"op": "lso", "offset": 2}
{"op": "release", "member": "m"}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "trace.jsonl"
    file.write_text(TRACE)
    return file


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("engine", ["rust", "reference"])
def test_results_are_the_oracles(engine: str, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--engine", engine, str(trace)]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[1] == (
        '{"i":1,"op":"acquire","fetch_offset":0,"count":10,"acquired":[[0,9,1]],"start_offset":0,"end_offset":9,'
        '"next_fetch_offset":10,"can_acquire":true,"delivery_complete_count":0,"inflight":[[0,9,1,1]],'
        '"persisted":[],"write_start_offset":null}'
    )
    results = [json.loads(line) for line in text.splitlines()]
    assert [result["i"] for result in results] == list(range(11))
    assert [result.get("error") for result in results[3:5]] == ["pending", "InvalidRecordStateException"]
    assert results[5]["completed"] == {"3": None}
    assert results[5]["start_offset"] == 4
    assert results[6]["fired"] is True
    assert results[7]["completed"] == {}
    assert results[8]["read"] == [[0, 3, 2, 1]]


def test_standard_input_is_answered_line_by_line() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "sharecore.trace", "--engine", "reference", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, line in enumerate(filter(None, TRACE.splitlines())):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["i"] == number
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.parametrize("engine", ["rust", "reference"])
def test_combine(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "combine.jsonl"
    file.write_text('{"existing": [[0, 9, 0, 1]], "new": [[3, 4, 2, 1], [5, 9, 0, 2]], "start_offset": 1}\n')
    assert main(["--engine", engine, "--combine", str(file)]) == 0
    assert lines(capsys) == [{"combined": [[1, 2, 0, 1], [3, 4, 2, 1], [5, 9, 0, 2]]}]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: not a JSON object"),
        ('{"op": "fetch"}', "op is one of init, acquire"),
        ('{"op": "acquire"}', "malformed acquire: KeyError: 'member'"),
        ('{"op": "acquire", "member": "m", "batches": [[0]]}', "malformed acquire"),
        ('{"op": "acquire", "member": "m", "batches": [], "mode": "all"}', "mode is batch_optimized or"),
        ('{"op": "init", "lock_ms": 0}', "must be positive"),
        ('{"op": "init", "state_batches": [[5, 4, 0, 1]]}', "state batch"),
    ],
)
def test_a_malformed_line_is_named(
    line: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text('{"op": "init"}\n' + line + "\n")
    assert main(["--engine", "reference", str(file)]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert str(file) in error
    assert "line 2" in error


def test_a_trace_begins_with_init(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text('{"op": "release", "member": "m"}\n')
    assert main(["--engine", "reference", str(file)]) == 2
    assert "begins with init" in capsys.readouterr().err


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-file"]) == 2
    assert "no-such-file" in capsys.readouterr().err


@pytest.fixture
def steady(tmp_path: Path) -> Path:
    """50 batches, each acquired and accepted by its owner, with one refused acknowledgement each."""
    file = tmp_path / "steady.jsonl"
    operations: list[dict[str, Any]] = [{"op": "init"}]
    for number in range(50):
        first, last = number * 10, number * 10 + 9
        batch = {"first": first, "last": last, "types": [1]}
        past = {"first": first + 90, "last": last + 90, "types": [1]}
        operations += [
            {"op": "acquire", "member": "m", "batches": [[first, last]]},
            {"op": "ack", "member": "m", "batches": [batch]},
            {"op": "ack", "member": "x", "batches": [past]},
        ]
    file.write_text("\n".join(json.dumps(operation) for operation in operations))
    return file


def test_bench_inside_rust(steady: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bench", "--runs", "3", "--warmup", "1", str(steady)]) == 0
    (report,) = lines(capsys)
    assert (report["file"], report["ops"], report["records"], report["runs"]) == (
        "steady.jsonl",
        150,
        1000,
        3,
    )
    assert min(report["ms_median"], report["ops_per_s"], report["records_per_s"]) > 0
    assert main(["--engine", "reference", "--bench", str(steady)]) == 2
    assert "--through python" in capsys.readouterr().err


@pytest.mark.heavy
@pytest.mark.parametrize("engine", ["rust", "reference"])
def test_bench_through_python(engine: str, steady: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "--engine",
                engine,
                "--bench",
                "--through",
                "python",
                "--runs",
                "3",
                "--warmup",
                "0",
                str(steady),
            ]
        )
        == 0
    )
    (report,) = lines(capsys)
    assert report["ops"] == 150
    assert report["records_acquired"] == report["records_acked"] == 500
    assert report["ack_errors"] == 50
    assert report["runs"] == 3
    assert report["ms_median"] > 0
    assert report["ops_per_s"] > 0
    assert report["records_per_s"] > 0


def test_bench_takes_no_held_writes(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bench", "--through", "python", str(trace)]) == 2
    assert "ConfigureWrites" in capsys.readouterr().err
    assert main(["--bench", "--through", "python", "-"]) == 2
    assert "standard input" in capsys.readouterr().err


def test_help_tells_the_format(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    text = capsys.readouterr().out
    for word in ("acquire", "record_limit", "fail_next", "reload", "--combine", "--bench"):
        assert word in text
