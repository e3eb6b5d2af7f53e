"""Apache Kafka's own reading of settings, in a JVM of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.differential.configs.case import Case, Verdict
from tests.harness import java
from tests.harness.broker import ROOT

_SOURCE = ROOT / "tests/differential/configs/Configs.java"


class ApacheConfigs(java.LineServer):
    """Runs Configs.java, a few hundred microseconds a case.

    Args:
        libs: the jars of a version of Kafka's broker.
    """

    def __init__(self, libs: Path) -> None:
        # warnings about repeated values do not matter here
        super().__init__(java.program(_SOURCE, libs=libs), errors=subprocess.DEVNULL)

    def judge(self, case: Case) -> Verdict:
        """What Apache says of a case."""
        answer = json.loads(self.ask(json.dumps(case._asdict())))
        return Verdict(answer["refused"], answer.get("retention_ms"))
