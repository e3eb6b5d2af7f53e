"""Reads the dashboard with Grafana's own SDK: what its types do not know, or know otherwise, is an error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from grafana_foundation_sdk.models.prometheus import Dataquery

PATH = Path(__file__).with_name("sharecore.json")


def differences(ours: Any, theirs: Any, at: str = "") -> Iterator[str]:
    """What of ours is missing or different in theirs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            if key in theirs:
                yield from differences(value, theirs[key], f"{at}.{key}")
            else:
                yield f"{at}.{key} is nothing that Grafana knows"
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{at}[{index}]")
    elif ours != theirs:
        yield f"{at}: {ours!r} is {theirs!r} to Grafana"


def main() -> int:
    register_default_plugins()
    written = json.loads(PATH.read_text(encoding="utf-8"))
    read = Dashboard.from_json(written)
    found = list(differences(written, json.loads(JSONEncoder().encode(read))))
    queries = [target for panel in read.panels or () for target in getattr(panel, "targets", None) or ()]
    found += [f"no query of Prometheus: {query}" for query in queries if not isinstance(query, Dataquery)]
    for each in found:
        print(f"{PATH.name}{each}", file=sys.stderr)
    print(f"{len(read.panels or ())} panels, {len(queries)} queries")
    return 1 if found or not queries else 0


if __name__ == "__main__":
    raise SystemExit(main())
