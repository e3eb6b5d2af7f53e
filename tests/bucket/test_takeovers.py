"""A standby on a server that people run: the leader is killed and stopped under load."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.bucket.takeovers import run
from tests.bucket.versitygw import credentials, versitygw
from tests.harness.s3 import BUCKET


@pytest.mark.timeout(3600)
def test_nothing_confirmed_is_lost_over_takeovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in credentials().items():
        monkeypatch.setenv(name, value)
    seed = random.randrange(1 << 16)
    kills = int(os.environ.get("KILLS", "4"))
    counts = {
        how: int(os.environ.get(name, str(kills // 2)))
        for how, name in {"stopped": "STOPS", "suspended": "SUSPENDS", "cut off": "CUTS"}.items()
    }
    counts["killed"] = kills
    with versitygw(tmp_path / "server") as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        rate, pause_s = int(os.environ.get("RATE", "100")), float(os.environ.get("PAUSE", "2.5"))
        found = run(tmp_path, f"s3://{BUCKET}/queue", counts, seed, rate, pause_s)
    print(found)
    assert found["answered"]
    assert found["lost"] == 0, f"seed {seed}"
    assert found["acknowledged_and_delivered_again"] == 0, f"seed {seed}"
