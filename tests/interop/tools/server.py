"""Apache Kafka's tools in one JVM that stays: a second for the first, little for the others."""

from __future__ import annotations

import json
import os
import subprocess
from types import TracebackType
from typing import NamedTuple

from tests.harness import java
from tests.harness.broker import KAFKA_LIBS, ROOT

_SOURCE = ROOT / "tests/interop/java/ToolServer.java"


class Output(NamedTuple):
    """What a tool answered: its exit status, and what it printed to both streams."""

    status: int
    text: str


class ToolServer:
    """A JVM that runs tools one at a time, with the time zone UTC."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java.command(str(_SOURCE), class_path=f"{KAFKA_LIBS}/*"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"TZ": "UTC"},
        )

    def run(self, main: str, *arguments: str) -> Output:
        """Runs a tool to its end.

        Raises:
            RuntimeError: the JVM has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"main": main, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{main} {' '.join(arguments)} ended the JVM")
        answer = json.loads(line)
        return Output(answer["status"], answer["output"])

    def __enter__(self) -> ToolServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
