"""Apache Kafka's assignors in a JVM of their own."""

from __future__ import annotations

import json
import subprocess
from types import TracebackType

from tests.differential.assignors.groups import Group, Held
from tests.harness import java
from tests.harness.broker import KAFKA_LIBS, ROOT

_SOURCE = ROOT / "tests/differential/assignors/Assignors.java"


class ApacheAssignors:
    """Runs Assignors.java; a few hundred microseconds a group."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java.command(str(_SOURCE), class_path=f"{KAFKA_LIBS}/*"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def assign(self, assignor: str, group: Group) -> dict[str, Held]:
        """The target assignment, by member id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(group.as_json(assignor) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM ended at {group.as_json(assignor)}")
        return {
            member: {int(number): partitions for number, partitions in held.items()}
            for member, held in json.loads(line).items()
        }

    def __enter__(self) -> ApacheAssignors:
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
