"""What a job says about single rows: kept beside the checkpoint until the batch is acknowledged."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable

from pyarrow import fs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sharecore.client.fetching.lease import AcknowledgeType
from sharecore.spark.offset import Outcome

DIRECTORY = "sharecore-outcomes"
_KINDS = {
    "accept": AcknowledgeType.ACCEPT,
    "release": AcknowledgeType.RELEASE,
    "reject": AcknowledgeType.REJECT,
}
_NEEDED = ("topic", "partition", "offset", "deliveryCount")


def settle(batch_df: DataFrame, outcomes: Column | DataFrame, checkpoint: str) -> int:
    """Says in `foreachBatch` which rows are to be released or rejected; every other row is accepted.

    It is written beside the checkpoint before the batch is committed, and takes effect with the commit: a
    batch that is run again is settled again.

    Args:
        batch_df: what `foreachBatch` was given. With a column, it is evaluated over it: cache it first.
        outcomes: a column with `release`, `reject`, `accept` or null for each row of `batch_df`; or a
            DataFrame with the columns topic, partition, offset, deliveryCount and outcome.
        checkpoint: the query's `checkpointLocation`, which the source has to have as an option too.

    Returns:
        How many rows were marked.

    Raises:
        ValueError: a column is missing, or an outcome has another name.
    """
    rows = outcomes if isinstance(outcomes, DataFrame) else batch_df.withColumn("outcome", outcomes)
    missing = [name for name in (*_NEEDED, "outcome") if name not in rows.columns]
    if missing:
        raise ValueError(f"settle needs the columns {', '.join(missing)}, which were dropped")
    marked = rows.where(F.col("outcome").isNotNull()).select(*_NEEDED, "outcome")
    found = _joined(
        (row.topic, row.partition, row.offset, row.deliveryCount, row.outcome)
        for row in marked.orderBy("topic", "partition", "offset").toLocalIterator()
    )
    if found:
        files, path = _open(checkpoint)
        files.create_dir(path, recursive=True)
        # read in this order: the last one wins
        name = f"{path}/{time.time_ns():020d}-{uuid.uuid4().hex}"
        with files.open_output_stream(name + ".part") as stream:
            stream.write(json.dumps(found).encode())
        # readers see the whole file or none
        files.move(name + ".part", name + ".json")
    return sum(each.last - each.first + 1 for each in found)


def _joined(rows: Iterable[tuple[str, int, int, int, str]]) -> list[Outcome]:
    found: list[Outcome] = []
    for topic, partition, offset, count, name in rows:
        if name not in _KINDS:
            raise ValueError(f"outcome {name!r}: one of {', '.join(_KINDS)} is needed, or null")
        each = Outcome(topic, partition, offset, offset, count, int(_KINDS[name]))
        if found and found[-1] == each._replace(first=found[-1].first, last=offset - 1):
            found[-1] = found[-1]._replace(last=offset)
        else:
            found.append(each)
    return found


class Outcomes:
    """Read the files of `settle`, and delete them when they are obsolete.

    Args:
        checkpoint: the query's checkpoint location.
    """

    def __init__(self, checkpoint: str) -> None:
        self._files, self._path = _open(checkpoint)

    def read(self) -> tuple[list[Outcome], list[str]]:
        """Return all outcomes, and the names of their files."""
        found: list[Outcome] = []
        names = []
        there = self._files.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        for info in sorted(there, key=lambda each: each.base_name):
            if info.path.endswith(".json"):
                with self._files.open_input_stream(info.path) as stream:
                    found += [Outcome(*each) for each in json.loads(stream.read())]
                names.append(info.path)
        return found, names

    def remove(self, names: Iterable[str]) -> None:
        """Remove files that `read` named."""
        for name in names:
            if self._files.get_file_info(name).type != fs.FileType.NotFound:
                self._files.delete_file(name)


def committed(checkpoint: str) -> list[dict[str, object]]:
    """Return the offsets, one a source, of the last batch that a query's checkpoint holds as committed."""
    files, path = _open(checkpoint, "")
    done = [
        int(info.base_name)
        for info in files.get_file_info(fs.FileSelector(f"{path}/commits", allow_not_found=True))
        if info.base_name.isdecimal()
    ]
    if not done:
        return []
    with files.open_input_stream(f"{path}/offsets/{max(done)}") as stream:
        lines = stream.read().decode().splitlines()
    # a version, the batch's metadata, then one line per source
    return [json.loads(line) for line in lines[2:] if line.startswith("{")]


def _open(location: str, name: str = DIRECTORY) -> tuple[fs.FileSystem, str]:
    text = location.rstrip("/")
    if text.startswith("file:"):
        text = "/" + text[5:].lstrip("/")
    if "://" in text:
        files, path = fs.FileSystem.from_uri(text)
    else:
        files, path = fs.LocalFileSystem(), text
    return files, f"{path}/{name}".rstrip("/")
