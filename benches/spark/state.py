"""How fast share state is decoded, on one core and in Spark: `make bench-spark-state`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import UUID

from benches.state.recovery import open_state
from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from sharecore.admin.share_state import LiveState
from sharecore.admin.state_topic import RawRecord, StateProblem, feed
from sharecore.errors import KafkaError
from sharecore.sharestate.keys import STATE_TOPIC, SharePartitionKey, topic_id_text
from sharecore.sharestate.records import decode_record, pack_batches, unpack_batches
from sharecore.spark import register, state_files
from sharecore.spark.state_options import HISTORY, LIVE, read_state_options
from sharecore.spark.state_read import read_state
from sharecore.storage import Storage

PARTITIONS = 4
SHARE_PARTITIONS = 200
TOPIC_ID = UUID(int=1 << 70)
_STAGED_BYTES = 16 << 20
_FLUSH_WRITES = 1_000


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-spark-state", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument(
        "--in-python",
        type=int,
        default=200_000,
        help="of these so many, at least, in Python (default: %(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=3, help="the table shows medians")
    return parser.parse_args()


def fill(path: Path, records: int) -> None:
    """What a share coordinator writes: consumers settle ten records at a time, some of them not in order."""

    async def create() -> None:
        storage = Storage(path)
        storage.attach(asyncio.get_running_loop())
        await storage.topics.create(STATE_TOPIC, PARTITIONS)
        storage.close()

    asyncio.run(create())
    storage, coordinator = open_state(path)

    def done(error: KafkaError | None) -> None:
        if error is not None:
            raise error

    keys = [SharePartitionKey(f"group-{each % 20}", TOPIC_ID, each) for each in range(SHARE_PARTITIONS)]
    for key in keys:
        coordinator.initialize(key, 0, 0, done)
    for number in range(records - len(keys)):
        key, start = keys[number % len(keys)], number // len(keys) * 10
        # every other write leaves a released record behind, which the next settles
        batches = (
            [(start + 3, start + 3, 0, 1), (start + 4, start + 9, 2, 1)] if number // len(keys) % 2 else []
        )
        coordinator.write(key, 0, 0, start, len(batches), pack_batches(batches), done)
        if number % _FLUSH_WRITES == 0:
            coordinator.flush()
            if storage.store.staged_bytes > _STAGED_BYTES:
                storage.sync()
    coordinator.flush()
    storage.sync()
    storage.close()


class InPython:
    """Rows as `sharecore state dump --history` makes them."""

    def __init__(self) -> None:
        self.rows = 0

    def take(self, record: RawRecord) -> None:
        found = decode_record(record.key, record.value)
        batches = [] if found.value is None else list(unpack_batches(found.value.batches))
        row = (record.partition, record.offset, record.timestamp_ms, found.kind, found.key, found.value)
        assert len((*row, topic_id_text(found.key.topic_id), batches)) == 8
        self.rows += 1

    def problem(self, problem: StateProblem) -> None:
        raise AssertionError(problem)


def in_python(path: Path, at_least: int, view: str) -> float:
    """Records a second of one core's time, through the decoder in Python."""
    rows, sink = InPython(), LiveState()
    read = 0
    gc.collect()
    seconds = 0.0
    for part in state_files.plan(str(path), view):
        log = state_files.DataDirLog(part, str(path))
        first = part.first
        for chunk in log.chunks(part.first, part.end):
            began = time.process_time()
            following = feed(rows if view == HISTORY else sink, part.partition, chunk, first, part.end)
            seconds += time.process_time() - began
            read += following - first
            first = following
            if read >= at_least:
                break
        log.close()
        if read >= at_least:
            break
    return read / seconds


def native(path: Path, view: str) -> float:
    """Records a second of one core's time, from the files to Arrow record batches with topic names."""
    chosen = read_state_options({"path": str(path), "view": view})
    records = rows = 0
    gc.collect()
    began = time.process_time()
    for part in state_files.plan(str(path), view):
        records += part.end - part.first
        rows += sum(
            batch.num_rows for batch in read_state(part, state_files.DataDirLog(part, str(path)), chosen)
        )
    seconds = time.process_time() - began
    assert rows == (records if view == HISTORY else SHARE_PARTITIONS)
    return records / seconds


def in_spark(spark: SparkSession, path: Path, view: str, records: int) -> float:
    """Records a second on the clock, into the sink that keeps nothing."""
    rows = spark.read.format("sharestate").option("view", view).load(str(path))
    began = time.monotonic()
    rows.write.format("noop").mode("overwrite").save()
    return records / (time.monotonic() - began)


def session(home: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.local.dir", str(home))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def main() -> None:
    chosen = options()
    console = Console(width=max(120, Console().width))
    table = Table("view", "decoder", "records/s", box=box.MARKDOWN)
    columns = (SpinnerColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        Progress(*columns, console=console) as progress,
    ):
        task = progress.add_task(
            f"a coordinator writes {chosen.records:,} records", total=6 * chosen.rounds + 1
        )
        path = Path(scratch) / "data"
        fill(path, chosen.records)
        progress.advance(task)
        spark = session(Path(scratch) / "spark")
        for view in (HISTORY, LIVE):
            steps: tuple[tuple[str, Callable[[], float]], ...] = (
                ("in Python, one core", partial(in_python, path, chosen.in_python, view)),
                ("native, to Arrow, one core", partial(native, path, view)),
                ("native, in Spark, local[2], noop", partial(in_spark, spark, path, view, chosen.records)),
            )
            found: dict[str, list[float]] = {name: [] for name, _ in steps}
            for _ in range(chosen.rounds):
                # by turns: a machine that slows down slows all
                for name, step in steps:
                    progress.update(task, description=f"{view}, {name}")
                    found[name].append(step())
                    progress.advance(task)
            for name, figures in found.items():
                table.add_row(view, name, f"{statistics.median(figures):,.0f}")
        spark.stop()
    console.print(f"medians of {chosen.rounds} rounds; {os.cpu_count()} CPUs; {platform.platform()}")
    console.print(table)


if __name__ == "__main__":
    main()
