from __future__ import annotations

import json
from pathlib import Path

from sharecore.spark.offset import Offset
from sharecore.spark.outcomes import Outcomes, committed


def test_what_a_checkpoint_holds(tmp_path: Path) -> None:
    root = tmp_path / "checkpoint"
    assert committed(str(root)) == []
    for name, batches in (("offsets", 3), ("commits", 2)):
        (root / name).mkdir(parents=True)
        for batch in range(batches):
            lines = ["v1", "{}", json.dumps(Offset(batch + 1, "g").to_json())]
            (root / name / str(batch)).write_text("\n".join(lines))
            (root / name / f".{batch}.crc").write_bytes(b"\0")
    (found,) = committed(f"file:{root}")
    assert found["sequence"] == 2


def test_outcomes_that_nobody_wrote_are_none(tmp_path: Path) -> None:
    outcomes = Outcomes(str(tmp_path))
    assert outcomes.read() == ([], [])
    outcomes.remove([f"{tmp_path}/none"])
