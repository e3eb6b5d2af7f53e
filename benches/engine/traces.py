"""The traces that are timed: the recorded ones, and some made from profiles that were not recorded."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests.differential.generate import Generator
from tests.differential.profiles import PROFILES

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ("steady", "outoforder", "gaps", "release", "timeout", "offsets", "combine")
# profiles without writes that are held or fail: no bench takes these
GENERATED = ("record_limit", "near_the_limit", "renew", "full")
_PARTITIONS = 100
_OPERATIONS = 200


def unpack(name: str, directory: Path) -> Path:
    """Return the trace of that name as a file that both engines read."""
    file = directory / f"{name}.jsonl"
    if name in RECORDED:
        file.write_bytes(gzip.decompress((ROOT / f"tests/oracle/traces/{name}.jsonl.gz").read_bytes()))
        return file
    assert name in PROFILES
    with file.open("w") as out:
        for seed in range(_PARTITIONS):
            for step in Generator(seed, name).run(_OPERATIONS):
                out.write(json.dumps(step.operation) + "\n")
    return file
