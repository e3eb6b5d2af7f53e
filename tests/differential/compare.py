"""Where two sets of answers to one trace part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.differential.known import known
from tests.differential.step import Operation, Result, Step

from sharecore.trace.driver import Driver
from sharecore.trace.engines import Engine, engine


@dataclass(frozen=True, slots=True)
class Difference:
    """The first operation that was answered differently.

    Attributes:
        index: of the operation in its trace.
        left, right: who answered what; `right` is the reference where it takes part.
    """

    index: int
    names: tuple[str, str]
    left: Result
    right: Result

    def __str__(self) -> str:
        keys = [*self.right, *(key for key in self.left if key not in self.right)]
        lines = [f"operation {self.index} ({self.right.get('op')}) was answered differently:"]
        for key in keys:
            left, right = self.left.get(key), self.right.get(key)
            if left != right:
                lines += [f"  {key}:", f"    {self.names[1]:>9} {right}", f"    {self.names[0]:>9} {left}"]
        return "\n".join(lines)


@dataclass(slots=True)
class Count:
    """What was compared.

    Attributes:
        operations: answered by the reference.
        apache: of these, compared with Apache Kafka: less where the states had parted on purpose.
        known: differences kept on purpose that showed, by name.
    """

    operations: int = 0
    apache: int = 0
    known: Counter[str] = field(default_factory=Counter)


def against_rust(steps: Sequence[Step], rust: Engine | None = None) -> Difference | None:
    """The Rust engine's answers against the reference's; its invariants are checked after each operation."""
    driver = Driver(rust or engine("rust"))
    for index, step in enumerate(steps):
        try:
            result = {
                **driver.apply(step.operation),
                "next_deadline_ms": driver.partition.next_deadline_ms,
            }
            driver.partition.check()
        except Exception as error:
            raised = {"op": step.operation["op"], "raised": repr(error)}
            return Difference(index, ("rust", "reference"), raised, {**raised, "raised": None})
        expected = {**step.result, "next_deadline_ms": step.after.next_deadline_ms}
        if result != expected:
            return Difference(index, ("rust", "reference"), result, expected)
    return None


def against_apache(steps: Sequence[Step], answers: Sequence[Result], count: Count) -> Difference | None:
    """Apache's answers against the reference's, up to where they part on purpose."""
    first = answers[0]["i"] - steps[0].result["i"] if steps else 0
    for index, (step, answer) in enumerate(zip(steps, answers, strict=True)):
        apache = _renumbered(answer, first)
        count.apache += 1
        difference = known(step, apache)
        if difference is not None:
            count.known[difference.name] += 1
            if difference.parts:
                return None
        elif apache != step.result:
            return Difference(index, ("apache", "reference"), apache, step.result)
    return None


def _renumbered(answer: Result, first: int) -> Result:
    """Indices as if the trace were the first that the process saw."""
    answer = {**answer, "i": answer["i"] - first}
    if "completed" in answer:
        answer["completed"] = {str(int(i) - first): error for i, error in answer["completed"].items()}
    return answer


def operations(steps: Sequence[Step]) -> list[Operation]:
    return [step.operation for step in steps]
