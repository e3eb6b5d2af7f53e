"""Share state in files: a data directory, or log segments of an Apache Kafka broker."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from sharecore._core import whole_batches
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.keys import STATE_TOPIC, topic_id_text
from sharecore.spark.state_options import LIVE
from sharecore.spark.state_parts import CHUNK_BYTES, Moved, NoBatch, StatePartition
from sharecore.storage import Log, Storage, StorageOptions

_END = 2**63 - 1
_BATCH_BYTES_MAX = 128 << 20
"""No batch is larger: bytes without the end of a batch up to here are not a batch."""
_PARTITION = re.compile(re.escape(STATE_TOPIC) + r"-(\d+)")
_TOPIC_PARTITION = re.compile(r"(.+)-(\d+)")
_METADATA = "partition.metadata"


def plan(path: str, view: str) -> list[StatePartition]:
    """Return the partitions of the state topic below a path; for a history, each segment separately.

    Raises:
        KafkaError: UNKNOWN_TOPIC_OR_PARTITION where there is no share state.
        OSError: the path cannot be read.
    """
    root = _local(path)
    if not root.exists():
        raise FileNotFoundError(f"{root} does not exist on this node; path has to be there on every node")
    segments = _segments(root)
    if segments:
        return [
            StatePartition(partition, 0, _END, files=files)
            for partition, found in sorted(segments.items())
            for files in ([tuple(found)] if view == LIVE else [(file,) for file in found])
        ]
    if root.is_file():
        raise _no_state(
            root, "a file, but no segment (00000000000000000000.log) of a directory __share_group_state-N"
        )
    storage = _open(root)
    try:
        topic = storage.topics.get(STATE_TOPIC)
        if topic is None:
            raise _no_state(root, f"a data directory of sharecore's without a topic {STATE_TOPIC}")
        return [
            StatePartition(log.index, log.start_offset, log.high_watermark)
            for log in topic.partitions
            if log.start_offset < log.high_watermark
        ]
    finally:
        storage.close()


def _local(path: str) -> Path:
    return Path(path.removeprefix("file://").removeprefix("file:"))


def _no_state(root: Path, found: str) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"no share state in {root}: {found}. path is a data directory of sharecore's, a log directory of "
        f"Apache Kafka's with {STATE_TOPIC}-N in it, or one of these",
    )


def _segments(root: Path) -> dict[int, list[str]]:
    """Segments by partition, in the order of their offsets, which are their names."""
    files = [root] if root.is_file() else [*root.glob("*.log"), *root.glob(f"{STATE_TOPIC}-*/*.log")]
    found: dict[int, list[str]] = {}
    for file in sorted(files):
        partition = _PARTITION.fullmatch(file.resolve().parent.name)
        if partition and file.stem.isdecimal():
            found.setdefault(int(partition[1]), []).append(str(file))
    return found


def _open(root: Path) -> Storage:
    try:
        return Storage(root, StorageOptions(cache_bytes=0, read_only=True))
    except OSError as error:
        raise _no_state(
            root, f"no segments of Apache Kafka's, and as data of sharecore's it cannot be read ({error})"
        ) from error


class SegmentLog:
    """Segments of one partition, as an Apache Kafka broker left them."""

    def __init__(self, part: StatePartition) -> None:
        self._files = [Path(file) for file in part.files]

    def bounds(self) -> tuple[int, int]:
        return 0, _END

    def chunks(self, first: int, end: int) -> Iterator[bytes]:
        for file in self._files:
            offset = int(file.stem)
            with file.open("rb") as stream:
                wanted = CHUNK_BYTES
                position, chunk = 0, stream.read(wanted)
                while chunk:
                    size, following = whole_batches(chunk)
                    if following is not None:
                        offset, wanted = following, CHUNK_BYTES
                        yield chunk[:size]
                    elif len(chunk) < wanted or wanted >= _BATCH_BYTES_MAX:
                        # a broker that preallocates files leaves zeros after the last batch
                        if any(chunk):
                            raise NoBatch(
                                offset, f"{file}: {len(chunk)} bytes at {position} are no whole record batch"
                            )
                        break
                    else:
                        wanted *= 2
                    position += size
                    stream.seek(position)
                    chunk = stream.read(wanted)

    def names(self, topic_ids: Iterable[str]) -> dict[str, str]:
        """Return topic names from the directories of their partitions."""
        wanted = set(topic_ids)
        found: dict[str, str] = {}
        for metadata in self._files[0].resolve().parent.parent.glob(f"*/{_METADATA}"):
            name = _TOPIC_PARTITION.fullmatch(metadata.parent.name)
            lines = metadata.read_text(errors="replace").splitlines()
            for line in lines:
                key, _, value = line.partition(":")
                if name and key == "topic_id" and value.strip() in wanted:
                    found[value.strip()] = name[1]
        return found

    def close(self) -> None:
        """Do nothing: a file is open only while it is read."""


class DataDirLog:
    """One partition of the state topic in a data directory, whose broker may be running."""

    def __init__(self, part: StatePartition, path: str) -> None:
        self._part, self._root = part, _local(path)
        self._storage: Storage | None = None

    def bounds(self) -> tuple[int, int]:
        self.close()  # open files show the old state of the directory
        log = self._log()
        return log.start_offset, log.high_watermark

    def chunks(self, first: int, end: int) -> Iterator[bytes]:
        log = self._log()
        if first < log.start_offset:
            raise Moved
        while first < end:
            try:
                records = log.read(first, CHUNK_BYTES).records
            except KafkaError as error:
                # a running broker may remove a file between two reads
                if error.code in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.OFFSET_OUT_OF_RANGE):
                    raise Moved from error
                raise
            _, following = whole_batches(records)
            if following is None or following <= first:
                raise NoBatch(first, "there is no whole record batch here")
            first = following
            yield records

    def _log(self) -> Log:
        if self._storage is None:
            self._storage = _open(self._root)
        topic = self._storage.topics.get(STATE_TOPIC)
        if topic is None:
            raise _no_state(self._root, f"the topic {STATE_TOPIC} is gone")
        return topic.partitions[self._part.partition]

    def names(self, topic_ids: Iterable[str]) -> dict[str, str]:
        self._log()
        assert self._storage is not None
        names = {topic_id_text(each.topic_id): each.name for each in self._storage.topics}
        return {topic_id: names[topic_id] for topic_id in topic_ids if topic_id in names}

    def close(self) -> None:
        if self._storage is not None:
            with contextlib.suppress(OSError):
                self._storage.close()
            self._storage = None
