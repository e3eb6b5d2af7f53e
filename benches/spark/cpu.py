"""The CPU time of a process and of all that it started."""

from __future__ import annotations

import os
from pathlib import Path


def tree_cpu_seconds(root: int) -> float:
    """User and system time of a process and what it started, also of what has ended and was waited for."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        pid = int(directory.name)
        parents[pid] = int(fields[1])
        # utime, stime, cutime, cstime
        ticks[pid] = sum(int(field) for field in fields[11:15])
    return sum(ticks[pid] for pid in ticks if _is_under(pid, root, parents)) / os.sysconf("SC_CLK_TCK")


def _is_under(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid != root and pid in parents:
        pid = parents[pid]
    return pid == root
