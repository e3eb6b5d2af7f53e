"""Apache Kafka's own share partition, in one long-lived process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any

from tests.differential.step import Operation, Result
from tests.harness import java

ORACLE = Path(__file__).parents[1] / "oracle"
JAVA_OPTIONS = "-Xms256m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"


class OracleError(Exception):
    """The oracle could not be built, or died; the text says what it printed."""


def missing_tools() -> list[str]:
    """What the oracle needs and this machine lacks."""
    return [tool for tool in ("java", "mvn") if shutil.which(tool) is None]


def combine(cases: Iterable[Mapping[str, Any]], directory: Path) -> list[Result]:
    """What Apache's PersisterStateBatchCombiner makes of each case.

    Args:
        cases: {"existing": [[first, last, state, count]], "new": [...], "start_offset": n}.
        directory: where the cases are written.
    """
    file = directory / "combine.jsonl"
    file.write_text("".join(json.dumps(case) + "\n" for case in cases))
    done = subprocess.run(
        [str(ORACLE / "oracle.sh"), "combine", str(file), "--runs", "0"],
        capture_output=True,
        text=True,
        env={"JAVA_OPTS": JAVA_OPTIONS, **os.environ},
    )
    if done.returncode:
        raise OracleError(f"the oracle ended: {done.stderr.strip()[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


class Oracle(java.LineServer):
    """`tests/oracle/oracle.sh trace -`: operations in, results out. The first use builds it."""

    def __init__(self) -> None:
        missing = missing_tools()
        if missing:
            raise OracleError(f"the comparison with Apache needs {' and '.join(missing)} (JDK 17, Maven)")
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        super().__init__(
            [str(ORACLE / "oracle.sh"), "trace", "-"],
            environment={"JAVA_OPTS": os.environ.get("JAVA_OPTS", JAVA_OPTIONS)},
            errors=self._errors,
        )

    def run(self, operations: Iterable[Operation]) -> list[Result]:
        """Return the answers to a trace, which begins with init.

        Raises:
            OracleError: the process ended.
        """
        lines = [json.dumps(operation) for operation in operations]
        feeder = Thread(target=self._feed, args=("\n".join([*lines, ""]),), daemon=True)
        feeder.start()
        answers = [self.receive() for _ in lines]
        feeder.join()
        if not all(answers):
            self._process.wait(timeout=10)
            self._errors.seek(0)
            raise OracleError(f"the oracle ended: {self._errors.read().strip()[-2000:]}")
        return [json.loads(answer) for answer in answers]

    def _feed(self, text: str) -> None:
        # if the process has ended, the missing answers show it
        with suppress(BrokenPipeError):
            self.send(text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._errors.close()
