"""A short trace that still shows a difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.differential.step import Operation
from tests.differential.switches import Switches

from sharecore.trace.driver import Driver
from sharecore.trace.engines import engine
from sharecore.trace.operation import TraceError


def minimize(
    trace: Sequence[Operation], differs: Callable[[list[Operation]], bool], *, apache: bool = True
) -> list[Operation]:
    """Leave out operations, ever smaller chunks of them, as long as the trace is a fair one and `differs`.

    Args:
        trace: begins with init, which stays.
        differs: whether a trace still shows what is sought.
        apache: whether the trace must stay one that Apache Kafka can be asked.
    """
    kept = list(trace)
    chunk = max(1, len(kept) // 2)
    while True:
        removed = False
        start = 1
        while start < len(kept):
            shorter = kept[:start] + kept[start + chunk :]
            if fair(shorter, apache=apache) and differs(shorter):
                kept = shorter
                removed = True
            else:
                start += chunk
        if chunk == 1 and not removed:
            return kept
        chunk = max(1, chunk // 2)


def fair(trace: Sequence[Operation], *, apache: bool = True) -> bool:
    """Whether a trace can be applied and, for Apache's sake, keeps the switches of generated traces."""
    switches = Switches()
    driver = Driver(engine("reference"))
    try:
        for operation in trace:
            if apache and driver.started and switches.forbid(operation, driver) is not None:
                return False
            switches.observe(operation, driver.apply(operation))
    except TraceError:
        return False
    return True
