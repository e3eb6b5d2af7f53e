"""A job in a session of its own: as a command, and under spark-submit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

pytestmark = pytest.mark.timeout(600)

JOB = "from sharecore.cli import main; main()\n"


@pytest.mark.parametrize("how", ["command", "spark-submit"])
def test_a_session_of_its_own(how: str, tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(JOB)
    submit = [str(Path(pyspark.__file__).parent / "bin/spark-submit"), "--master", "local[1]"]
    program = [sys.executable, str(job)] if how == "command" else [*submit, str(job)]
    out = tmp_path / "out"
    ended = subprocess.run(
        [*program, "spark", "simulate", "--members", "1,2", "--duration", "1", "--out", str(out)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        timeout=500,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    # spark-submit merges both streams
    assert "MEMBERS  RECORDS/S" in ended.stdout
    assert sorted(pq.read_table(out / "runs").column("members").to_pylist()) == [1, 2]
    assert (out / "report.html").is_file()
    if how == "command":
        # Spark's own output does not mix with the progress bar
        assert f"rows: {out / 'runs'}" in ended.stderr.splitlines()
        assert not [line for line in ended.stderr.splitlines() if " INFO " in line or " WARN " in line]
