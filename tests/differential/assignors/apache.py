"""Apache Kafka's assignors in a JVM of their own."""

from __future__ import annotations

import json

from tests.differential.assignors.groups import Group, Held
from tests.harness import java
from tests.harness.broker import ROOT

_SOURCE = ROOT / "tests/differential/assignors/Assignors.java"


class ApacheAssignors(java.LineServer):
    """Runs Assignors.java; a few hundred microseconds a group."""

    def __init__(self) -> None:
        super().__init__(java.program(_SOURCE))

    def assign(self, assignor: str, group: Group) -> dict[str, Held]:
        """Return the target assignment, by member id."""
        return {
            member: {int(number): partitions for number, partitions in held.items()}
            for member, held in json.loads(self.ask(group.as_json(assignor))).items()
        }
