"""What three nodes pass on beside one, where each has the same part of a CPU: as if it had one of its own.

A machine that has fewer CPUs than nodes, with a cluster and clients on them as well, shows nothing of what
more nodes are for. Here the kernel gives each node so little that nothing else is short: by control groups,
so as root.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benches.broker.steps import Run, producer
from benches.tier.several import Several
from benches.tier.steps import share_of_many
from tests.harness.broker import Broker
from tests.harness.tier import SMALL, VERSIONS, wait_until

PARTITIONS = 12
"""As many for each of three nodes as for each other."""
MEMBERS = 6
SLOTS = 12
_PERIOD_US = 10_000
_GROUPS = Path("/sys/fs/cgroup")
_SETTINGS = ("fetch.wait.max.ms=5",)
"""librdkafka's members wait at one node at a time."""


def limited(home: Path, version: str, records: int, share: float, warm_up: int) -> dict[str, float]:
    """Figures by what they say, with their units.

    Args:
        share: of a CPU, for each node.
        warm_up: how often all is read before it counts.
    """
    cluster = Broker(home / "cluster", "apache", SMALL, libs=VERSIONS[version])
    found: dict[str, float] = {}
    with ExitStack() as ending:
        ending.callback(cluster.kill)
        cluster.start()
        filled = Run("the cluster", cluster, records, 1)
        producer(filled, PARTITIONS)
        for count in (1, 3):
            rate, cpu = _measure(home / str(count), cluster, filled, count, share, warm_up)
            name = f"{count} node{'s' if count > 1 else ''}"
            found |= {f"{name}, records/s": rate, f"{name}, CPU s of all": cpu}
    found["times as many"] = found["3 nodes, records/s"] / found["1 node, records/s"]
    return found


def _measure(
    home: Path, cluster: Broker, filled: Run[Broker], count: int, share: float, warm_up: int
) -> tuple[float, float]:
    nodes = Several(home, cluster, count, **{"sharecore.tier.slots": str(SLOTS)})
    with ExitStack() as ending:
        ending.callback(nodes.kill)
        nodes.start()
        wait_until(nodes.made[-1], f"has {SLOTS // count} of {SLOTS} slots, gives up 0 and gets 0")
        for node in nodes.made:
            ending.enter_context(_part_of_a_cpu(node.pid, share))
        for turn in range(warm_up + 1):
            run = Run(f"{count} nodes", nodes, filled.records, filled.round, turn=turn)
            before = nodes.cpu_seconds()
            rate = share_of_many(run, MEMBERS, *_SETTINGS)["records/s"]
        return rate, nodes.cpu_seconds() - before


@contextmanager
def _part_of_a_cpu(pid: int, share: float) -> Iterator[None]:
    """Has a process get no more than that; as much as ever once it ends."""
    quota = str(round(_PERIOD_US * share))
    if (_GROUPS / "cgroup.controllers").exists():
        group = _GROUPS / f"sharecore-bench-{pid}"
        limits = {"cpu.max": f"{quota} {_PERIOD_US}"}
    else:
        group = _GROUPS / "cpu" / f"sharecore-bench-{pid}"
        limits = {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": quota}
    group.mkdir()
    try:
        for name, value in limits.items():
            (group / name).write_text(value)
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        # a group goes when nothing is left in it
        (group.parent / "cgroup.procs").write_text(str(pid))
        os.rmdir(group)
