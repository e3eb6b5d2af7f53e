"""A progress bar over the tasks of the Spark jobs that a block runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import SparkContext

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_POLL_SECONDS = 0.2


@contextmanager
def progress(context: SparkContext, what: str) -> Iterator[None]:
    """Show finished tasks on stderr if it is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("tasks"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    ended = threading.Event()
    with bar:
        shown = bar.add_task(what, total=None)
        follower = threading.Thread(
            target=_follow, args=(context, bar, shown, ended), name="progress", daemon=True
        )
        follower.start()
        try:
            yield
        finally:
            ended.set()
            follower.join()
            if (total := bar.tasks[shown].total) is not None and sys.exc_info()[0] is None:
                bar.update(shown, completed=total)


def _follow(context: SparkContext, bar: Progress, shown: TaskID, ended: threading.Event) -> None:
    tracker = context.statusTracker()
    stages: dict[int, tuple[int, int]] = {}
    while not ended.wait(_POLL_SECONDS):
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None:
                stages[stage] = (info.numCompletedTasks, info.numTasks)
        active = set(tracker.getActiveStageIds())
        done = sum(total if stage not in active else now for stage, (now, total) in stages.items())
        total = sum(total for _, total in stages.values())
        if total:
            bar.update(shown, completed=done, total=total)
