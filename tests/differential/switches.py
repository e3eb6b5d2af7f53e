"""What generated traces leave out, because the oracle's answer would only show a difference kept on purpose.

Each has a test of its own in test_differences.py, where both answers are pinned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from tests.differential.step import Operation, Result

from sharecore.reference import AVAILABLE, Partition
from sharecore.trace.driver import Driver

ALL_FAIL = 1_000_000


@dataclass(slots=True)
class Switches:
    """Follows a trace and tells which operation may not come next."""

    hold: bool = False
    fail_next: int = 0
    complete_all: bool = False
    start_unwritten: bool = False

    def forbid(self, operation: Operation, driver: Driver) -> str | None:
        """Why `operation` is left out here, None when it is not."""
        kind = operation["op"]
        if kind == "advance" and 0 < self.fail_next < ALL_FAIL and self._fires(operation, driver):
            return "Apache writes once a lock and ours once for all of them: all these writes end alike"
        if kind == "letters" and 0 < self.fail_next < ALL_FAIL:
            return "Apache writes once a letter and ours once a range of them: all these writes end alike"
        if kind == "complete" and self.complete_all and "n" in operation:
            return "the same, with held writes"
        if kind == "reload" and self.start_unwritten:
            return "the same: Apache's second write carries the start offset that its first one moved"
        if kind == "lso" and self._release_open(driver, 0, operation["offset"]):
            return "Apache forgets that a release is being written when its batch is split"
        if kind == "acquire" and operation["batches"]:
            base = operation["batches"][0][0]
            if self._release_open(
                driver, operation.get("fetch_offset", driver.partition.next_fetch_offset), base
            ):
                return "the same, with vanished records"
        return None

    def observe(self, operation: Operation, result: Result) -> None:
        kind = operation["op"]
        if kind in ("init", "reload"):
            self.hold, self.fail_next, self.complete_all, self.start_unwritten = False, 0, False, False
        elif kind == "writes":
            self.hold, self.fail_next = operation.get("hold", False), operation.get("fail_next", 0)
        elif kind == "complete" and "n" not in operation:
            self.complete_all = False
        if not result["persisted"]:
            return
        if kind in ("advance", "letters"):
            self.complete_all |= self.hold
            self.start_unwritten |= result["start_offset"] != result["write_start_offset"]
        elif result.get("error") is None:
            self.start_unwritten = False
        if not self.hold and 0 < self.fail_next < ALL_FAIL:
            self.fail_next -= 1

    @staticmethod
    def _fires(operation: Operation, driver: Driver) -> bool:
        deadline_ms = driver.partition.next_deadline_ms
        return deadline_ms is not None and deadline_ms <= driver.now_ms + operation["ms"]

    @staticmethod
    def _release_open(driver: Driver, first: int, before: int) -> bool:
        """Whether anything is being given back while the offsets from `first` up to `before` vanish."""
        partition = cast(Partition, driver.partition)
        if before <= first:
            return False
        return any(r.before is not None and r.state == AVAILABLE for _, r in partition.records())
