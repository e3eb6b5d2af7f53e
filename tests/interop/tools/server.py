"""Apache Kafka's tools in one JVM that stays: a second for the first, little for the others."""

from __future__ import annotations

import json
from typing import NamedTuple

from tests.harness import java
from tests.harness.broker import KAFKA_LIBS, ROOT

_SOURCE = ROOT / "tests/interop/java/ToolServer.java"


class Output(NamedTuple):
    """What a tool answered: its exit status, and what it printed to both streams."""

    status: int
    text: str


class ToolServer(java.LineServer):
    """A JVM that runs tools one at a time, with the time zone UTC."""

    def __init__(self) -> None:
        command = java.command(str(_SOURCE), class_path=f"{KAFKA_LIBS}/*")
        super().__init__(command, environment={"TZ": "UTC"})

    def run(self, main: str, *arguments: str) -> Output:
        """Runs a tool to its end.

        Raises:
            RuntimeError: the JVM has ended.
        """
        answer = json.loads(self.ask(json.dumps({"main": main, "arguments": arguments})))
        return Output(answer["status"], answer["output"])
