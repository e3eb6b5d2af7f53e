"""The store of one data directory, on an event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from sharecore._core import Store, StoreEvents, Tickets
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage.bucket import CopyOptions
from sharecore.storage.configs import Configs
from sharecore.storage.disk_reads import THREADS, DiskReads
from sharecore.storage.store_catalog import StoreCatalog
from sharecore.storage.store_log import StoreLog
from sharecore.storage.store_topics import StoreTopics, store_logs

logger = logging.getLogger(__name__)


class DamagedBatch(NamedTuple):
    """A damaged batch: consumers get an error at its offsets."""

    topic: str
    partition: int
    first: int
    last: int
    file: str
    byte: int

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition}: offsets {self.first} to {self.last} are damaged: "
            f"{self.file} at byte {self.byte}"
        )


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """Options of the store.

    Args:
        durability: `fsync`: a write counts once it is on the disk. `os`: once the operating system has it,
            which outlives a killed process but no power loss. `bucket`: once the bucket of `copy` has it.
        segment_bytes: maximum size of a file.
        cache_bytes: memory for recent batches.
        staging_bytes: limit on unwritten data; further appends are refused.
        producer_bytes: memory of the idempotent producers that all logs remember; beyond, the longest idle of
            the log with the most are forgotten, but none with an open transaction.
        read_threads: threads for large reads and disk reads; small reads from memory need none.
        own_commit_clients: if a turn of the event loop serves at most so many clients, the loop commits what
            they write, if commits take little time; 0: never.
        read_only: the directory is read as it is now and not changed, also while a broker has it; writes are
            refused.
        copy: options of the copy in a bucket, if any.
    """

    durability: str = "fsync"
    segment_bytes: int = 64 << 20
    cache_bytes: int = 8 << 20
    staging_bytes: int = 32 << 20
    producer_bytes: int = 512 << 20
    read_threads: int = THREADS
    own_commit_clients: int = 16
    read_only: bool = False
    copy: CopyOptions | None = None


class Storage:
    """Topics, configurations and the catalog in one directory.

    Args:
        path: the directory; created if missing.
        open_store: opens the store in it; a simulation uses one without threads.

    Attributes:
        damaged: damaged batches found by readers since it was opened.

    Raises:
        OSError: the directory is not available, is in use by another process, or has damaged files.
    """

    def __init__(
        self,
        path: Path,
        options: StorageOptions | None = None,
        *,
        open_store: Callable[[str, StorageOptions], Store] | None = None,
    ) -> None:
        options = options or StorageOptions()
        self._path = path
        self.damaged: list[DamagedBatch] = []
        self.store = (open_store or _store)(str(path), options)
        if self.store.torn is not None and not options.read_only:
            file, byte, size = self.store.torn
            logger.warning(
                "%s: dropped the last %d bytes, from byte %d on: a write that was cut short, never confirmed",
                file,
                size,
                byte,
            )
        self._disk = DiskReads(options.read_threads)
        self.tickets = Tickets()
        self.events = StoreEvents(
            self.store,
            self.tickets,
            failed=_failed,
            damaged=self._note,
            read=lambda numbers: self._disk.ended(numbers),
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self.catalog = StoreCatalog(self.store, self.tickets.ticket)
        self.configs = Configs(self.catalog)
        try:
            self.topics = StoreTopics(
                self.catalog,
                self.configs,
                self.store.new_log_id,
                self._open_log,
                self.store.keep_local,
            )
        except BaseException:
            self._disk.close()
            self.store.close()
            raise

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Resolve tickets and call listeners on `loop`."""
        self._loop = loop
        loop.add_reader(self.store.fileno(), self.events.drain)

    def drain(self) -> None:
        """Resolve the tickets of writes that became durable since the last call, and call listeners."""
        self.events.drain()

    def _note(self, log_id: int, first: int, last: int, file: Path, byte: int) -> None:
        """Report a damaged batch once."""
        log = self._log(log_id)
        topic, partition = ("a deleted topic", log_id) if log is None else (log.topic, log.index)
        found = DamagedBatch(topic, partition, first, last, str(file), byte)
        self.damaged.append(found)
        logger.error(
            "%s. Consumers are refused there with KAFKA_STORAGE_ERROR. Stop the broker: "
            "`sharecore store check %s` lists all damage, `sharecore store salvage %s --to NEWDIR` keeps "
            "the rest",
            found,
            self._path,
            self._path,
        )

    async def verify(self, topic: str) -> None:
        """Read all records of a topic, to detect damage.

        Raises:
            KafkaError: the disk cannot be read.
        """
        found = self.topics.get(topic)
        for log in [] if found is None else store_logs(found):
            await self._disk.run(partial(self.store.verify, log.log_id), from_bucket=True)

    def sync(self) -> None:
        """Wait for all staged writes, for use without an event loop."""
        if self.tickets.newest is not None:
            self.store.wait(self.tickets.newest)
        self.drain()

    def close(self) -> None:
        """Commit staged writes, resolve their tickets, and close the files."""
        if self._loop is not None:
            self._loop.remove_reader(self.store.fileno())
            self._loop = None
        self._disk.close()
        self.store.close()
        self.drain()

    def _open_log(self, log_id: int, topic: str, index: int, topic_id: UUID) -> StoreLog:
        log = self._log(log_id)
        if log is None:
            log = StoreLog(self.store, self.tickets, self._disk, log_id, topic, index, topic_id)
            self.events.follow(log_id, log)
        return log

    def _log(self, log_id: int) -> StoreLog | None:
        found = self.events.log(log_id)
        assert found is None or isinstance(found, StoreLog)
        return found


def _failed(reason: str) -> KafkaError:
    logger.error("%s", reason)
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason)


def _store(path: str, options: StorageOptions) -> Store:
    if options.read_only:
        return Store.look(path, cache_bytes=options.cache_bytes)
    return Store(
        path,
        durability=options.durability,
        segment_bytes=options.segment_bytes,
        cache_bytes=options.cache_bytes,
        staging_bytes=options.staging_bytes,
        producer_bytes=options.producer_bytes,
        read_threads=options.read_threads,
        own_commit_clients=options.own_commit_clients,
        bucket=None if options.copy is None else options.copy.begin(),
    )
