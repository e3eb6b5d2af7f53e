"""The compiled extension of sharecore."""

import asyncio
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import GenericAlias
from typing import Any, Generic, Literal, NamedTuple, Protocol, Self, final
from uuid import UUID

from typing_extensions import TypeVar, disjoint_base

from sharecore.errors import KafkaError
from sharecore.storage.log import Log

__all__ = [
    "AnswerBudget", "BucketAnswer", "BucketCall", "BucketCopy", "BucketStatus", "Checks",
    "DeadLetterBatch", "Dispatch", "Exchange", "ExpandedCache", "Expression", "Gather", "GroupBounds",
    "HomeNodes", "Later", "Layout", "Leader", "Leaders", "LogAccess", "LogCleaner", "LogOffsets",
    "MemoryBucket", "MemoryBudget", "MemoryDisk", "Partition", "PartitionFetch", "Pending", "Produce",
    "ProduceContents", "ProduceWork", "Produced", "Reading", "Record", "Rules", "Sessions",
    "ShareAcknowledge", "ShareAnswer", "ShareFetch", "ShareFetching", "ShareLook", "ShareSession",
    "ShareStateFold", "SimulatedCache", "Socket", "Sockets", "Spans", "StagedBatch", "Staging",
    "Standby", "StateContent", "StateFold", "States", "Store", "StoreEvents", "StoredLog", "Ticket",
    "Tickets", "Timeouts", "WaitingReasons", "WaitingShareFetch", "Write", "WrittenAnswer", "bench_trace",
    "bucket_url", "call_by_name", "combine", "combine_state_batches", "crc32c", "damaged_batches",
    "decode_columns", "decode_records", "decode_share_state", "decompress", "encode_batch",
    "encode_records", "has_own_data",
    "inspect_bucket", "is_proven", "java_hash", "monotonic_ms", "next_epoch", "now_ms",
    "observe_partitions", "plant_bug", "plant_mistake", "prepare_home", "probe_bucket", "reaches_clouds",
    "read_request_header", "remove_bucket", "restore_bucket", "return_memory_soon", "settle",
    "skip_tagged_fields", "survey_store", "use_one_heap", "whole_batches",
]  # fmt: skip

_Answer_co = TypeVar("_Answer_co", covariant=True)
_Name = TypeVar("_Name")
_Four = tuple[int, int, int, int]
_Pair = tuple[bytes | None, bytes | None]
_Three = tuple[int, int, int]
_Column = tuple[int, bytes | None]
_Unread = tuple[int, int, str]

def bench_trace(path: str, runs: int, warmup: int) -> dict[str, float]:
    """Replay the trace in a file, `runs` times after `warmup` unmeasured times, without Python in between.

    Returns: ops, records, runs, ms_median, ops_per_s, records_per_s. Raises OSError if the file is unreadable
    or not a trace, ValueError for no runs.
    """

def monotonic_ms() -> int:
    """Return monotonic milliseconds, including suspensions of the machine."""

def now_ms() -> int:
    """Return milliseconds since the epoch."""

def return_memory_soon() -> None:
    """Return freed memory to the system after 0.2 s, unless `MIMALLOC_PURGE_DELAY` is set.

    Call it before other threads are started.
    """

def use_one_heap() -> None:
    """Make all threads allocate from one heap, if the C library has several."""

def combine(existing: Sequence[_Four], new: Sequence[_Four], start_offset: int) -> list[_Four]:
    """Merge new state batches, (first, last, state, delivery count), with persisted ones.

    Per offset the highest (delivery count, state) wins; offsets before `start_offset` are dropped (negative:
    none).

    Returns: ascending, without overlaps, equal neighbors merged.
    """

def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of bytes."""

def java_hash(units: bytes, before: int) -> int:
    """Return Java's signed 32-bit hash of text in UTF-16BE, continuing from the hash `before`."""

def decompress(data: bytes, compression: int, *, expanded_bytes_max: int) -> bytes:
    """Decompress bytes; the compression type has Kafka's number.

    Raises ValueError: unknown type, invalid bytes, or too large a result.
    """
@final
class Expression:
    """A regular expression that matches whole names, in bounded time.

    Args:
        expression: in the syntax of the crate `regex-automata`.
        bytes_max: approximate memory limit when compiled.

    Raises:
        ValueError: an invalid or too large expression.
    """

    def __new__(cls, expression: str, bytes_max: int) -> Self: ...
    def matching(self, names: Sequence[str]) -> list[str]:
        """Return the matching names; raise ValueError if that takes too long."""

@final
class AnswerBudget:
    """Memory limit for responses that clients have not read yet.

    An owner gets at most half of it. Responses with records are sized to the available room, and wait if
    there is none.

    Args:
        bytes_max: the limit; negative for none.
    """

    def __new__(cls, bytes_max: int = ...) -> Self: ...
    @property
    def used_bytes(self) -> int:
        """Bytes of responses, and of records being read for responses."""

    @property
    def is_wanted(self) -> bool:
        """Whether a response waits for room."""

    def wanted(self) -> list[tuple[str, bool]]:
        """Owners whose responses wait for room, and whether they wait for their own."""

    def _wake(self) -> None:
        """Call waiting callbacks that now have room."""

@final
class MemoryBudget:
    """Memory limit for requests that are being read or not answered yet.

    Except for small ones, a request reserves room before it is read. Requests do not wait for larger ones,
    and an owner gets at most half of the room of a size class.

    Args:
        bytes_max: the limit; negative for none.
    """

    def __new__(cls, bytes_max: int = ...) -> Self: ...
    @property
    def bytes_max(self) -> int: ...
    @property
    def used_bytes(self) -> int: ...
    @property
    def is_wanted(self) -> bool:
        """Whether a request waits for room."""

    def wanted(self) -> list[tuple[str, int, bool]]:
        """Owners whose requests wait for room, the bytes, and whether they wait for their own room."""

@final
class Pending:
    """A pending response.

    Args:
        future: the handler's `Later` or future; it belongs to the connection, which cancels it when the
            client disconnects.
        finish: turns the completed future into buffers to send, or None for no response.
    """

    def __new__(cls, future: Any, finish: Callable[[Any], list[bytes] | None]) -> Self: ...
    @property
    def future(self) -> Any: ...
    @property
    def finish(self) -> Callable[[Any], list[bytes] | None]: ...

@final
class Checks:
    """Which checks requests need; all of them until `publish`."""

    def __new__(cls) -> Self: ...
    def publish(self, *, rights: bool, features: bool, quotas: bool, leaders: bool, leases: bool) -> None:
        """Set the checks needed from now on.

        Args:
            rights: whether there is an authorizer.
            features: whether share groups are disabled.
            quotas: whether any client has a quota.
            leaders: whether another broker may lead a partition.
        """

@final
class Dispatch:
    """Reads requests, runs their handlers and writes the responses.

    Its subclass is `sharecore.broker.requests.dispatch.Dispatcher`.

    Args:
        broker: its `throttles.on` decides whether requests are metered; its `checks`, if it has any, whether
            that is evaluated at all.
        context: `RequestContext`.
        check_names: whether `check` is called with each response.
        log_requests: whether `note` is called for each request.
        entries_max: a request with more array entries in total is malformed.
        learn: adds a version of an API; returns false for an ApiVersions version that is not served.
        unsupported: answers that version.
        note, meter: log a request; create its meter.
        check, unwritable: check the field names of a response; log one that cannot be written, and raise.
        refusal: answers a request that failed as a whole.
        handle_apart: handles a request with many entries.
    """

    def __new__(
        cls,
        broker: Any,
        context: type[Any],
        check_names: bool,
        log_requests: bool,
        entries_max: int,
        *,
        learn: Callable[[int, int], bool],
        unsupported: Callable[[int], list[bytes]],
        note: Callable[[Any, int], object],
        meter: Callable[[Any, int], Any],
        check: Callable[..., object],
        unwritable: Callable[..., Any],
        refusal: Callable[..., Any],
        handle_apart: Callable[..., Any],
    ) -> Self: ...
    def add(self, api_key: int, api_version: int, messages: Any, handle: Any) -> None:
        """Register the handler of an API version.

        Args:
            messages: its `Codec`.
            handle: a `Produce`, `ShareFetch` or `ShareAcknowledge`, whose requests create no Python objects;
                or a callable with the context and the message.

        Raises ValueError: one of those handlers with another request than its own.
        """
    def on_frame(self, connection: Any, frame: bytes) -> list[bytes] | Pending | None:
        """Handle a request frame; raise `Disconnect` for an invalid one."""

@final
class WrittenAnswer:
    """A response already written by a handler: the message, and its frame as buffers."""

    @property
    def message(self) -> Any: ...
    def __new__(cls, message: Any, parts: list[bytes]) -> Self: ...

@final
class Produce:
    """Handles Produce requests: appends batches, in the common case without Python.

    Args:
        now_ms: the time of appends.
        places: called at most once per request, with its context and the IDs or names of its topics; returns
            for each topic how to find its logs and why nothing may be appended, or raises `KafkaError`; and
            whether the result holds for all clients.
        in_turns: called with the context and the `ProduceWork` of a request with many partitions; returns the
            response.
        admit: called with context, log, records, transactional ID and time before a transactional batch is
            appended. Raises `KafkaError`.
        may_begin: whether a context may use a transactional ID; called for transactional batches, unless the
            request has no ID.
    """

    def __new__(
        cls,
        now_ms: Callable[[], int],
        places: Callable[[Any, list[Any]], tuple[Callable[[Any], tuple[Any, KafkaError | None]], bool]],
        in_turns: Callable[[Any, ProduceWork], Any],
        admit: Callable[[Any, Any, bytes, str, int], object],
        may_begin: Callable[[Any, str | None], bool],
    ) -> Self: ...
    @staticmethod
    def read_apart(frame: bytes, at: int, api_version: int) -> ProduceContents:
        """Read a request with many partitions, in a thread. Raises `ValueError` for malformed bytes.

        Args:
            at: where the message begins in the frame.
        """
    def __call__(self, context: Any, request: ProduceContents) -> Any:
        """Return the response to a request that was read in a thread; see `in_turns`."""
    def forget(self) -> None:
        """Call `places` again, as topics have changed."""

@final
class ProduceContents:
    """A Produce request with many partitions, read in a thread. It can be handled once."""

@final
class ProduceWork:
    """A Produce request with many partitions, processed batch by batch."""

    @property
    def topic_count(self) -> int: ...
    def topic(self, place: int) -> Any:
        """Return the ID or the name of a topic, by its index in the request."""
    def learn(self, place: Callable[[Any], tuple[Any, KafkaError | None]], stays: bool) -> None:
        """Set the destinations of batches, before the first step; see `Produce`."""
    def step(self) -> bool:
        """Process the next batch; return False if there is none."""
    def end(self) -> Any:
        """Return the response, after the last step."""

@final
class ShareAnswer:
    """A ShareFetch or ShareAcknowledge response under construction, with its partitions in the order of their
    first mention.

    Args:
        cluster: knows the leaders.
        listener: of the client, for the addresses of leaders.
        lock_ms: the group's lock duration.
    """

    def __new__(cls, cluster: Any, listener: str, lock_ms: int) -> Self: ...
    @property
    def partitions(self) -> list[tuple[UUID, int]]:
        """Number of partitions."""
    @property
    def served(self) -> list[tuple[UUID, int]]:
        """Partitions with records."""
    @property
    def failed(self) -> list[tuple[UUID, int]]:
        """Partitions with a fetch error."""
    def name(self, partition: tuple[UUID, int]) -> None:
        """Add a partition."""
    def refuse(self, partition: tuple[UUID, int], error: KafkaError, *, acknowledging: bool = False) -> None:
        """Add a partition with its error; `acknowledging`: in the acknowledge error field."""
    def fetched(
        self,
        partition: tuple[UUID, int],
        records: bytes,
        acquired: Sequence[_Three],
        error: KafkaError | None = None,
    ) -> None:
        """Add a partition's acquired records: first offset, last offset, delivery count."""
    def acknowledged(self, gather: Gather[Any], *, beside: bool = False) -> None:
        """Add acknowledged partitions, each with its error if any; skip topics without a name.

        `beside`: in the response's separate acknowledge fields.
        """
    def message(self) -> ShareAnswer:
        """Return the response to send, with the nodes that it redirects the client to (KIP-951)."""
    def throttled(self, throttle_time_ms: int) -> ShareAnswer:
        """Return the same response with a throttle time."""

@final
class ShareAcknowledge:
    """Handles ShareAcknowledge requests, which `Dispatch` reads.

    Args:
        check: raises `KafkaError` unless the context's client may be a member of a group.
        may_read: whether the context's client may read a topic; called if there is an authorizer.
    """

    def __new__(cls, check: Callable[[Any, str], object], may_read: Callable[[Any, UUID], bool]) -> Self: ...

@final
class GroupBounds:
    """Delivery limits of a share group and its members on this broker, and the fetches waiting for them.

    Args:
        now_ms: monotonic time.
        call_later: schedules fetches delayed by the rate or the breaker.
        broken: called when the breaker opens, with the number of failed records and of all finished ones.
    """

    def __new__(
        cls, now_ms: Callable[[], int], call_later: Any, broken: Callable[[int, int], object]
    ) -> Self: ...
    def configure(
        self,
        records_per_second: int,
        member_max: int,
        weights: Sequence[tuple[str, int]],
        breaker: tuple[int, int, int, int],
    ) -> None:
        """Set the limits, 0 or None for no limit, and make waiting fetches check again.

        Args:
            breaker: percent, window in ms, minimum records, pause in ms.
        """
    def breaker(self) -> tuple[int, int | None, int] | None:
        """Return the breaker's state (0: closed, 1: half open, 2: open), when an open one admits records
        again, and how often it has opened; None without a breaker.
        """
    def add(self, leader: Leader) -> None:
        """Include a share partition's acquired records in the members' counts."""
    def held_back(self) -> tuple[int, int, int]:
        """Count fetches delayed by the rate, by their member's limit, and by the breaker."""
    def more(self) -> None:
        """Make waiting fetches check again, as members may hold less than before."""
    def _due(self) -> None: ...

@final
class WaitingReasons:
    """Why records of a share partition are not delivered.

    Attributes:
        backoff, delivery: records waiting for their back-off, and for their delivery time.
        unread: records not examined since the partition was loaded, or its rules changed.
        backoff_due_ms: when the first back-off ends, by the monotonic clock.
        delivery_due_ms: the first delivery time, by the wall clock.
        leased: acquired records.
        kept: acquired records whose lock was extended because their member is connected.
        units: records that are neither acquired nor finished; ordered by key, runs of neighbors with one key.
        is_full: the window is full.
        is_in_line: the partition is delivered in order, and records are acquired: the others wait for them.
        keys: as `Partition.keys` returns it.
    """

    @property
    def backoff(self) -> int: ...
    @property
    def delivery(self) -> int: ...
    @property
    def unread(self) -> int: ...
    @property
    def backoff_due_ms(self) -> int | None: ...
    @property
    def delivery_due_ms(self) -> int | None: ...
    @property
    def leased(self) -> int: ...
    @property
    def kept(self) -> int: ...
    @property
    def units(self) -> int: ...
    @property
    def is_full(self) -> bool: ...
    @property
    def is_in_line(self) -> bool: ...
    @property
    def keys(self) -> tuple[int, int, list[tuple[int, int, int]]] | None: ...

@disjoint_base
class LogOffsets:
    """Offsets of a log; see `sharecore.storage.Log`.

    Attributes:
        start_offset: first readable offset.
        high_watermark: end of the durable, readable records.
        last_stable_offset: end of the durable records without open transactions.
        end_offset: offset of the next record, after pending writes.
        stored: the log in the store; None if only the Python class may be used.
    """

    start_offset: int
    high_watermark: int
    last_stable_offset: int
    end_offset: int
    stored: StoredLog | None

    def __new__(cls, *_args: Any, **_rest: Any) -> Self: ...
    def on_advance(self, callback: Callable[[Log], object]) -> None:
        """Call back after a change of high watermark, last stable offset or start offset."""
    def off_advance(self, callback: Callable[[Log], object]) -> None:
        """Remove a callback."""
    @property
    def has_listeners(self) -> bool:
        """Whether there is a callback."""
    def notify(self) -> None:
        """Call the callbacks; one that raises is logged and does not stop the others."""

@final
class ExpandedCache:
    """A cache of record batches that are delivered in parts; the least recently used are evicted first.

    Args:
        bytes_max: its capacity.
    """

    def __new__(cls, bytes_max: int) -> Self: ...
    @property
    def bytes(self) -> int:
        """Its size."""

@disjoint_base
class LogAccess:
    """Reads a log to acquire its records; see `sharecore.partition.leasing.Leasing`, which has `read`,
    `aborted` and `reading_bytes`.

    Attributes:
        stored: the store to read directly, without calling `read`.
        read_committed: whether records named by `aborted` are archived instead of delivered.
        expanded: the cache of expanded batches; None if whole batches are always sent.
    """

    stored: StoredLog | None
    read_committed: bool
    expanded: ExpandedCache | None

    def __new__(cls, *_args: Any, **_rest: Any) -> Self: ...

@disjoint_base
class Leader:
    """The hot path of a share partition's fetches and acknowledgements; see
    `sharecore.partition.SharePartition`.

    A subclass has `key`, `_persister`, `_call_later`, `_check_engine`, `_not_written`, `_persist_start`,
    `_send` and `_expire`.

    Attributes:
        engine: None until the state is loaded.
        error: why loading failed.
        id: topic ID and partition index.
        resting: whether acquiring is stopped.
        used_ms: when records were last acquired or acknowledged.
        bounds: the group's delivery limits, if any.
        log: the log.
        leasing: reads the log.
        config: the configuration of the group.
        now_ms: the clock of locks.
    """

    bounds: GroupBounds | None
    log: Any
    leasing: Any
    config: Any
    now_ms: Callable[[], int]
    engine: Partition | None
    error: KafkaError | None
    id: tuple[UUID, int]
    resting: bool
    used_ms: int
    state_epoch: int
    leader_epoch: int
    _timer: Any
    _start_is_persisted: bool

    def __new__(cls, *args: Any, **rest: Any) -> Self: ...
    @property
    def _writes(self) -> int:
        """Pending writes."""

    @property
    def _interested(self) -> list[ShareSession]:
        """Sessions to notify once when records may be available, longest waiting first."""

    @property
    def _subscribers(self) -> list[ShareSession]:
        """Sessions to notify when the leader ends: waiting ones, and others after them."""

    def _take_subscribers(self) -> list[ShareSession]:
        """Remove and return the sessions to notify when the leader ends."""

    def wake(self) -> None:
        """Notify interested sessions, longest waiting first, until no record is left to acquire."""

    def _freed(self) -> None:
        """Make fetches held back by their limits check again, as members may hold less than before."""

    def _log_advanced(self, log: Any) -> None:
        """Handle a change of the log's end or start."""

    @property
    def readable_end(self) -> int:
        """Records before this offset may be delivered."""

    @property
    def fetchable(self) -> bool:
        """Whether a fetch may find something to acquire now."""

    def acknowledge(
        self, member: str, batches: Sequence[tuple[int, int, bytes]], done: Callable[..., None]
    ) -> None:
        """Acknowledge, release or renew acquired records; `done` is called once that is durable.

        Args:
            batches: first offset, last offset, acknowledge types: one for all, or one per offset.

        Raises:
            KafkaError: INVALID_RECORD_STATE or INVALID_REQUEST; only renewals before the refused batch are
                kept.
        """

    def _persist(self, write: Write | None, done: Callable[..., None] | None = None) -> None:
        """Persist a started change; do nothing for None."""

    def _arm(self, due_ms: int) -> None:
        """Schedule `_expire` no later than `due_ms`."""

    def _rearm(self) -> None:
        """Schedule `_expire` for the next lease expiry, unless it is scheduled."""

    def _send_dead_letters(self) -> None:
        """Send the dead letters that became due."""

@disjoint_base
class Leaders:
    """Share-partition leaders; see `sharecore.partition.SharePartitions`."""

    def __new__(cls, *args: Any, **rest: Any) -> Self: ...
    @property
    def _leaders(self) -> dict[tuple[str, UUID], dict[int, Any]]:
        """Leaders by group and topic, then by partition."""

    @property
    def _configs(self) -> dict[str, Any]:
        """Configurations by group."""

    @property
    def acknowledgements(self) -> int:
        """Requests with acknowledgements, including fetches."""

    def config(self, group_id: str) -> Any:
        """Return a group's current configuration, from the subclass's `_group_config`."""

    def _let_go(self, leader: Leader) -> None:
        """Remove a leader that has ended."""

    def peek(self, group_id: str, topic_id: UUID, partition: int) -> Any:
        """Return the leader of a share partition, or None."""

@disjoint_base
class Sessions:
    """Share sessions; see `sharecore.session.ShareSessionCache`, which has `_check_identity`."""

    def __new__(cls, *args: Any, **rest: Any) -> Self: ...
    @property
    def _sessions(self) -> dict[tuple[str | None, str | None], ShareSession]:
        """Sessions by group and member."""

    def resume(self, group_id: str | None, member_id: str | None, epoch: int) -> ShareSession:
        """Return the member's session for a request with a non-zero epoch, and increment its epoch.

        The request may use any connection; the session still ends with the one that opened it. With the final
        epoch (-1) the session is returned unchanged: the caller closes it once its acknowledgements are
        processed.

        Raises:
            KafkaError: INVALID_REQUEST for an unusable group or member ID; SHARE_SESSION_NOT_FOUND;
                INVALID_SHARE_SESSION_EPOCH for an unexpected epoch.
        """

@final
class ShareSession:
    """The partitions fetched by a group member, those among them to try, and its waiting fetches.

    A partition without records is no longer ready; its leader notifies the session, once, when that may have
    changed. The cost of a fetch thus depends on the partitions tried, not on the session's size.

    Args:
        connection: the connection that opened the session, and whose end closes it.

    Attributes:
        epoch: the epoch expected in the next request.
        fetches: unanswered fetches; `abandon` of each is called when the session ends.
    """

    epoch: int

    def __new__(cls, group_id: str, member_id: str, connection: Any) -> Self: ...
    @property
    def group_id(self) -> str: ...
    @property
    def member_id(self) -> str: ...
    @property
    def connection(self) -> Any: ...
    @property
    def fetches(self) -> dict[Any, None]: ...
    @property
    def key(self) -> tuple[str, str]:
        """Group ID and member ID, the session's key."""
    @property
    def partitions(self) -> list[tuple[UUID, int]]:
        """In the order in which they were added, or last returned records."""
    @property
    def held(self) -> list[tuple[UUID, int]]:
        """Partitions whose records are released when the session ends, in order.

        As in Apache Kafka's broker, records of other partitions, forgotten ones or those of an earlier
        session, stay acquired until their lock expires.
        """
    @property
    def unreported(self) -> list[tuple[UUID, int]]:
        """Partitions that no response has reported as fetchable: newly added ones, and those whose last
        result was an error.
        """
    @property
    def unknown(self) -> set[tuple[UUID, int]]:
        """Partitions without a loaded leader; each fetch tries them again."""
    @property
    def waiting(self) -> bool:
        """Whether a fetch waits for notifications."""
    def add(self, partitions: Iterable[tuple[UUID, int]]) -> None:
        """Add partitions; existing ones keep their position."""
    def forget(self, partitions: Iterable[tuple[UUID, int]]) -> None:
        """Remove partitions; unknown ones are ignored."""
    def rotation(self) -> int:
        """Return the starting position of this request.

        It moves by one partition per request, as in Kafka, so that a busy partition cannot starve the others.
        """
    def in_order(self, partitions: Iterable[tuple[UUID, int]], first: int) -> list[tuple[UUID, int]]:
        """Return partitions in the order of a request that starts at position `first`; those not in the
        session are left out.
        """
    def report(
        self,
        partitions: Iterable[tuple[UUID, int]],
        failed: Iterable[tuple[UUID, int]],
        served: Iterable[tuple[UUID, int]],
    ) -> None:
        """Record the partitions in a response.

        The first response of a session must contain each fetchable partition, and so must the first one after
        a partition was added or had an error; later ones only contain partitions with records.

        Args:
            failed: those with an error.
            served: those with records; from the second response on they move to the end, as in Kafka.
        """
    @property
    def partition_count(self) -> int:
        """Number of partitions."""
    def touch(self, partition: tuple[UUID, int]) -> None:
        """Record that the member acquired records of a partition."""
    def replace(self, before: ShareSession) -> None:
        """Replace another session of the same member, which keeps its records."""
    def walk(self, first: int) -> list[Any]:
        """Return the leaders of ready partitions, starting at a position."""
    def failed(self, leader: Leader) -> None:
        """Handle the end of a partition's leader."""
    def close(self) -> None:
        """End the session: abandon its fetches, and cancel notifications."""

@disjoint_base
class States:
    """States of share partitions; see `sharecore.sharestate.coordinator.ShareCoordinator`.

    A subclass has `_find_shard`, `_check_epochs`, `_runtime`, `_clock` and `_updates_per_snapshot`.
    """

    _routes: dict[Any, Any]

    def __new__(cls, *args: Any, **rest: Any) -> Self: ...
    def _shard(self, key: Any) -> Any:
        """Return the loaded shard with the state of a share partition.

        Raises:
            KafkaError: another broker has it, or it cannot be loaded.
        """

    def _writable(self, shard: Any, key: Any, state_epoch: int, leader_epoch: int) -> Any:
        """Return the state for a writer that has not been fenced.

        Raises:
            KafkaError: INVALID_REQUEST if there is none; FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH.
        """

    def write_begun(
        self, key: Any, state_epoch: int, leader_epoch: int, write: Write, done: Callable[..., None]
    ) -> None:
        """Write a change started by an engine in this process.

        No state is written for records that need none: the start offset moves past adjacent finished records.
        A consumer that accepts in order thus costs one small record per request.

        Raises:
            KafkaError: as `ShareCoordinator.write`.
        """

@final
class PartitionFetch:
    """Records acquired by a fetch from one share partition."""

    @property
    def partition(self) -> Any:
        """The leader."""
    @property
    def records(self) -> bytes:
        """The record batches that hold acquired records."""
    @property
    def acquired(self) -> list[_Three]:
        """First offset, last offset, delivery count."""
    @property
    def error(self) -> KafkaError | None:
        """Why there are no records."""

@final
class ShareLook:
    """A share fetch over the ready partitions of a session, from a position on.

    Split max_bytes evenly over the first max_records fetchable partitions, and the rest over the others. The
    first partition returns at least one batch, whatever its size.

    Args:
        found: leaders of partitions new to the session.
        batch_size: how many offsets of new records make a batch.
        record_limit: whether `max_records` is strict.
        hidden: partitions to exclude.
    """

    def __new__(
        cls,
        session: ShareSession,
        found: Sequence[Leader] = ...,
        *,
        min_bytes: int,
        max_bytes: int,
        max_records: int,
        batch_size: int,
        record_limit: bool = False,
        first: int = 0,
        hidden: Sequence[tuple[UUID, int]] = ...,
    ) -> Self: ...
    def begin(self, max_wait_ms: int) -> list[PartitionFetch] | None:
        """Load leaders and fetch; return None if the fetch must wait."""

@final
class Timeouts:
    """Timeouts of waiting fetches; one timer serves all of them.

    Args:
        now_ms: monotonic milliseconds.
        call_later: schedules a callback in a number of seconds.
    """

    def __new__(cls, now_ms: Callable[[], int], call_later: Callable[..., Any]) -> Self: ...
    def _over(self) -> None:
        """Handle fetches that may have timed out."""

@final
class WaitingShareFetch:
    """Acquires records for one member once enough are available.

    It ends when at least `min_bytes` were acquired, when one of its partitions has failed, or on timeout;
    nothing is acquired before that, so that no lock runs while the client waits. Reads from disk are always
    completed first.

    Args:
        look: the fetch that found nothing; partitions that become ready meanwhile are tried too.
        ended: called once with the acquired records.
    """

    def __new__(cls, look: ShareLook, timeouts: Timeouts, ended: Any) -> Self: ...
    @property
    def waiting(self) -> bool: ...
    def wait(self, max_wait_ms: int) -> None:
        """Start waiting."""
    def again(self) -> bool:
        """Try again; return whether the fetch has stopped waiting."""
    def end(self, fetched: list[PartitionFetch]) -> None:
        """Answer a waiting fetch; do nothing if it was answered."""
    def cancel(self) -> None:
        """Stop waiting, without a response."""
    def _loaded(self) -> None: ...
    def _look_at_loaded(self) -> None: ...

@final
class ShareFetching:
    """A ShareFetch in progress, which can be abandoned."""

    def abandon(self) -> None:
        """Acquire nothing more, and respond with the records so far."""

@final
class ShareFetch:
    """Handles ShareFetch requests, which `Dispatch` reads.

    Args:
        check: raises `KafkaError` unless the context's client may be a member of a group.
        may_read: whether the context's client may read a topic; called if there is an authorizer.
        open, refuse, exclude: handle the rare cases; see `sharecore.broker.handlers.share.records`.
    """

    def __new__(
        cls,
        check: Callable[[Any, str], object],
        may_read: Callable[[Any, UUID], bool],
        open: Callable[..., ShareSession],
        refuse: Callable[[int, KafkaError], Any],
        exclude: Callable[..., Any],
    ) -> Self: ...

def call_by_name(on: bool) -> None:
    """Look up methods of Python's classes by name where the extension would call its own, or stop doing so:
    for tests that replace methods. Not in published wheels.
    """

def plant_mistake(name: str | None = None) -> None:
    """Plant a mistake about buckets in this thread, or remove it: for tests that must find it.

    Not in published wheels.

    Raises:
        ValueError: unknown mistake.
    """

def plant_bug(name: str | None = None) -> None:
    """Plant a bug in every share partition of this process, or remove it: for tests that must find it.

    Not in published wheels.

    Raises:
        ValueError: unknown bug.
    """

def next_epoch(epoch: int) -> int:
    """Return the next epoch; after the largest int32 comes 1, since 0 would open a new session."""
@final
class Produced:
    """A Produce response."""

    def throttled(self, throttle_time_ms: int) -> Produced:
        """Return the same response with a throttle time."""

@disjoint_base
class Exchange:
    """Requests on one connection: parse frames, dispatch them one by one, and send the responses in order,
    those that are ready together in one write.

    Reading stops while a request cannot be dispatched, while there is no room for the next one, and while the
    client does not read. A large response is sent in parts, one per turn of the event loop. A subclass is a
    transport's protocol, and has `close(reason)`, `_pump_soon()`, `_send_soon()`, and `_wait_for_room()`.

    Args:
        server: provides `on_frame`, `monotonic_ms`, `budget`, `answers`, `scratch` and `limits`.
    """

    on_frame: Callable[[Any, bytes], list[bytes] | Pending | None]
    """The frame handler, called with the connection; a different one until the client is authenticated.

    May raise `Disconnect`.
    """
    closed: bool
    frame_bytes_max: int
    """A larger frame closes the connection."""
    _transport: Any

    def __new__(cls, server: Any, *args: Any, **rest: Any) -> Self: ...
    @property
    def owner(self) -> str:
        """Owner of the client's memory budget."""

    @property
    def held_bytes(self) -> int:
        """Bytes of this client's requests charged to the budget."""

    @property
    def partial(self) -> tuple[int, int] | None:
        """Of the request being read: bytes received, and bytes missing."""

    @property
    def waits_since(self) -> tuple[int, bool, int] | None:
        """Of a large request waiting for its response: since when in ms, whether it is parked, its bytes."""

    @property
    def unread_bytes(self) -> int:
        """Bytes of responses that the client had not read at the last count."""

    @property
    def has_asked(self) -> bool:
        """Whether the client has ever sent a whole request."""

    @property
    def in_flight(self) -> int:
        """Requests dispatched and not answered yet."""

    def idle_since(self) -> int | None:
        """Return when the last byte passed in either direction, in ms; None while a request is unanswered."""

    def enter(self, budget: MemoryBudget, owner: str) -> None:
        """Charge the client's memory to `budget`, as `owner`, from now on."""

    def answer_room(self) -> int:
        """Bytes of records that the next response may carry; 0 if it must wait for clients to read."""

    def hold_answer_bytes(self, change: int) -> None:
        """Adjust the unread bytes by those of responses not built yet."""

    def when_answer_room(self, room: Callable[[], object]) -> None:
        """Call back when there is room for a response."""

    def get_buffer(self, _size_hint: int) -> memoryview: ...
    def buffer_updated(self, count: int) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def _pump(self) -> None:
        """Dispatch requests that have been read, within the pipeline limit."""

    def _send(self) -> None:
        """Send the next part of a response, unless the client does not read."""

    def _send_rest(self) -> None:
        """Send the rest of all responses."""

    def _pause(self, reasons: int) -> None: ...
    def _resume(self, reasons: int) -> None: ...
    def _recount(self) -> None:
        """Recount the unread bytes."""

    def _readers_have_read(self) -> None:
        """Handle that there is room for the next response."""

    def _drop_backlog(self) -> None:
        """Drop requests that were read but not dispatched."""

    def _end(self) -> list[Any]:
        """Handle a disconnect: release resources, and return the futures that nobody waits for."""

@final
class Sockets:
    """The plaintext connections of an event loop.

    All that are ready are served in one callback of the loop: bytes are received, their requests handled, and
    the answers sent, without a call of asyncio for each. Register `turn` as the reader of `fileno()`.

    Answers of a turn in which many connections have one are sent by other threads, which need no interpreter.

    Args:
        event_loop: the running loop.
        threads: threads that may send, the loop's included; the others start when needed.

    Raises:
        OSError: the system has no descriptor left.
    """

    def __new__(cls, event_loop: asyncio.AbstractEventLoop, *, threads: int = 1) -> Self: ...
    def close(self) -> None:
        """End the other threads; connections are closed before."""
    def __len__(self) -> int:
        """Return the number of open connections."""

    def fileno(self) -> int:
        """Return a descriptor that is readable while a connection is ready."""

    def commit_with(self, events: StoreEvents | None) -> None:
        """Commit what a turn of few clients has written at its end, if commits take little time."""

    def open(self, descriptor: int, protocol: Exchange) -> Socket:
        """Start serving a connected socket.

        Args:
            descriptor: its descriptor, which belongs to this object from now on and is closed if it cannot be
                served.
            protocol: its protocol; `connection_made` is called at once.

        Raises:
            OSError: the socket cannot be watched.
        """

    def turn(self) -> None:
        """Serve every connection that is ready."""

@final
class Socket:
    """A connection of `Sockets`: a transport as `asyncio.Transport` describes it, for one exchange."""

    def is_closing(self) -> bool:
        """Whether the connection is closing or closed."""

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes."""

    def writelines(self, parts: list[bytes | memoryview]) -> None:
        """Send buffers one after the other."""

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the system has not taken."""

    def set_write_buffer_limits(self, high: int) -> None:
        """Call `pause_writing` of the protocol above `high` unsent bytes, and `resume_writing` when a quarter
        of them is left.
        """

    def pause_reading(self) -> None:
        """Receive nothing until `resume_reading`."""

    def resume_reading(self) -> None:
        """Receive again."""

    def close(self) -> None:
        """Close the connection when everything is sent."""

    def abort(self) -> None:
        """Close the connection at once."""

    def fileno(self) -> int:
        """Return the descriptor; -1 once the connection is over."""

    @staticmethod
    def get_extra_info(_name: str, default: Any = None) -> Any:
        """Return the default: a plaintext connection has no `ssl_object`."""

@final
class Later(Generic[_Answer_co]):
    """A future reduced to what a request needs: callbacks run at once, not in a later event-loop turn.

    It completes once: later results, errors and cancellations are ignored.
    """

    def __new__(cls) -> Self: ...
    @classmethod
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def __await__(self) -> Generator[Any, None, _Answer_co]: ...
    def done(self) -> bool:
        """Whether it is completed or cancelled."""

    def cancelled(self) -> bool:
        """Whether the caller cancelled it."""

    def exception(self) -> BaseException | None:
        """Return the exception; None for a result."""

    def result(self) -> _Answer_co:
        """Return the result or raise the exception."""

    def set_result(self, value: Any) -> None:
        """Complete it with a result."""

    def set_exception(self, error: BaseException) -> None:
        """Complete it with an exception."""

    def cancel(self) -> bool:
        """Cancel it; return whether it was still pending."""

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call back with this object when it is done, or now if it is."""

@final
class Ticket:
    """A pending write.

    `await ticket` returns None when the write is durable, and raises KafkaError(KAFKA_STORAGE_ERROR) if it
    failed. Callers on a hot path use `add_done_callback`, which costs no task.
    """

    def __new__(cls, sequence: int) -> Self: ...
    def __await__(self) -> Generator[Any, None, None]: ...
    def result(self) -> None:
        """Raise the error of a write that failed."""

    @property
    def sequence(self) -> int: ...
    @property
    def error(self) -> KafkaError | None:
        """Why the write failed; None if it has not."""

    def done(self) -> bool:
        """Whether the write has ended."""

    def exception(self) -> KafkaError | None:
        """Alias of `error`."""

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call back with this object once the write has ended, or now if it has."""

    def settle(self, error: KafkaError | None = None) -> None:
        """Complete the write; for the storage only.

        An exception of a callback is logged, and the others are called.
        """

@final
class Tickets:
    """Callers waiting for the writes of one store, in order.

    Args:
        ended: writes up to this one are complete.
    """

    def __new__(cls, ended: int = 0) -> Self: ...
    def ticket(self, sequence: int) -> Ticket:
        """Return the ticket of a write; a completed one if the write has ended."""
    @property
    def newest(self) -> int | None:
        """The newest write with a waiting caller."""
    def end(self, sequence: int, error: KafkaError | None) -> None:
        """Complete the writes up to this one; for the storage only."""

@final
class Spans:
    """Durations of repeated work, in milliseconds.

    Attributes:
        count: number of durations.
        items: total number of items, such as the writes of a batch.
        total_ms: total time.
        max_ms: the longest duration.
        failed: number of failures.
    """

    count: int
    items: int
    total_ms: float
    max_ms: float
    failed: int

    def __new__(cls) -> Self: ...
    def add(self, took_ms: float, items: int = 1, *, failed: bool = False) -> None:
        """Add a duration."""

@final
class StoreEvents:
    """Passes what a store reports on to its logs and to the waiters of its writes, on the event loop.

    Args:
        store: the store.
        tickets: its waiters.
        failed: returns the error of writes that failed, from the reason.
        damaged: called with each damaged batch: log, first and last offset, file and byte.
        read: called with the numbers of reads that are done.
    """

    def __new__(
        cls,
        store: Store,
        tickets: Tickets,
        *,
        failed: Callable[[str], KafkaError],
        damaged: Callable[[int, int, int, Path, int], object],
        read: Callable[[list[int]], object],
    ) -> Self: ...
    def follow(self, log_id: int, log: LogOffsets) -> None:
        """Pass on what is reported about a log, as long as it is in use."""
    def log(self, log_id: int) -> LogOffsets | None:
        """Return a log that is followed and in use."""
    def drain(self) -> None:
        """Pass on everything since the last call: first the offsets, then the ends of writes, then the
        listeners of logs.
        """
    def turn(self, clients: int, work: Callable[[], object]) -> None:
        """Run `work` as a turn of the event loop that serves so many clients, as `Sockets` does.

        What it has written is committed if the store leaves that to the turn, and passed on.
        """

@final
class StoredLog:
    """A log of a store.

    Args:
        id: of the log in the store.
        tickets: of the store.
        threads: `DiskReads`, notified when a thread of the store has finished a read.
    """

    def __new__(cls, store: Store, id: int, tickets: Tickets, threads: Any) -> Self: ...
    def hurry(self) -> None:
        """Commit lingering writes of the store at once."""

@final
class Gather(Generic[_Name]):
    """Operations that end through callbacks, and their results.

    All operations must begin before `when_ended` is called.

    Args:
        names: of the operations known beforehand, in the order of the outcomes.
    """

    def __new__(cls, names: Iterable[_Name] | None = None) -> Self: ...
    @classmethod
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def failed(self) -> dict[_Name, KafkaError]:
        """Operations that failed, with their errors."""

    @property
    def outcomes(self) -> dict[_Name, Any]:
        """Outcome of each operation's callback; None for a pending one."""

    @property
    def pending(self) -> bool:
        """Whether an operation has not ended yet."""

    def part(self, name: Any) -> Callable[..., None]:
        """Return the callback of the operation with that name; later calls are ignored."""

    def run(self, name: Any, operation: Callable[..., object], *args: Any) -> None:
        """Start an operation; its last argument is the callback. A KafkaError becomes its outcome."""

    def put(self, name: Any, outcome: Any) -> None:
        """Set a known outcome."""

    def when_ended(self, then: Callable[[], object]) -> None:
        """Call back when all have ended, or now if they have."""

    def promise(self, later: Later[Any], answer: Callable[[], object]) -> None:
        """Complete `later` with the result of `answer` once all have ended, unless it was cancelled."""

def settle(callbacks: Iterable[Callable[..., object]], *outcome: Any) -> None:
    """Call each callback; an exception is logged, and the others are still called."""
@final
class StagedBatch:
    """Records appended together, and their waiting callers."""

    @property
    def producer(self) -> tuple[int, int] | None:
        """The producer, for a transaction."""
    @property
    def records(self) -> list[tuple[bytes, bytes | None]]: ...
    def wait(self, done: Callable[..., object]) -> None:
        """Call back when the batch ends."""
    def __call__(self, ticket: Any) -> None:
        """Handle the end of its append."""

@disjoint_base
class Staging:
    """Records being written to a partition of a coordinator's topic; see
    `sharecore.coordinator_log.StagedLog`, which has `_mend`, `_cut` and `_time_is_over`.
    """

    stale: bool
    """Whether memory is ahead of the log."""

    def note_move(self) -> None:
        """Record that state in memory is gone or has moved: leaders must look it up again."""

    def __new__(
        cls,
        log: Any,
        timers: Any,
        write_timeout_ms: int,
        *,
        monotonic_ms: Callable[[], int],
        sent: Callable[[], object],
        writes: Spans,
        **_rest: Any,
    ) -> Self: ...
    @property
    def log(self) -> Any: ...
    @property
    def _staged(self) -> list[StagedBatch]: ...
    @property
    def _sent(self) -> list[StagedBatch]:
        """Batches being appended."""
    @property
    def _lost(self) -> list[StagedBatch]:
        """Batches that failed, and those waiting behind them."""
    @property
    def _oldest(self) -> StagedBatch | None:
        """The oldest unanswered batch."""
    def _overdue(self, now_ms: int) -> StagedBatch | None:
        """Return the oldest unanswered batch if it has timed out."""
    def append(
        self,
        records: Iterable[tuple[bytes, bytes | None]],
        now_ms: int,
        done: Callable[..., object] | None = None,
        *,
        ended: Callable[..., object] | None = None,
        placed: Callable[[int], None] | None = None,
        producer: tuple[int, int] | None = None,
    ) -> None:
        """Stage records.

        Args:
            now_ms: timestamp of the batch.
            done: called when all records are durable or lost, or on timeout.
            ended: called before `done` when they are durable or lost, even after a timeout.
            placed: called with the offset of the first record, once known; again if a retry changes it.
            producer: of the transaction, if any.
        """
    def flush(self) -> None:
        """Append staged records, unless an earlier write has failed and will be retried."""
    def _try_again(self) -> None:
        """Retry the lost batches, in order."""
    def _abandon(self) -> list[StagedBatch]:
        """Drop failed records and those staged after them."""
    def _abandon_transactions(self) -> list[StagedBatch]:
        """Drop batches of transactions that are lost or wait behind lost ones."""
    def _end(self, batch: StagedBatch, error: KafkaError | None) -> None:
        """Call a batch's followers, then the callers waiting for an answer."""
    def _arm(self, now_ms: int) -> None:
        """Schedule `_time_is_over` for the oldest pending write."""
    def _settle(self, batch: StagedBatch, error: KafkaError | None) -> None:
        """Complete a batch for its waiting callers."""

@final
class Write:
    """A state change that has begun and waits for the persister."""

    @property
    def id(self) -> int:
        """The ID for `Partition.commit` and `Partition.rollback`."""
    @property
    def start_offset(self) -> int:
        """The start offset before the operation."""
    @property
    def delivery_complete_count(self) -> int:
        """Acknowledged and archived records at or after the start offset (KIP-1226)."""
    def batches(self) -> list[_Four]:
        """Return the changes: (first offset, last offset, state, delivery count), equal neighbors merged."""

@final
class Rules:
    """When and in which order the records of a share partition are delivered.

    With rules, a partition's in-flight limit counts acquired records.

    Args:
        backoff_ms: the back-off before the second delivery.
        backoff_max_ms: the longest back-off, before jitter.
        multiplier: growth of each back-off over the previous one.
        jitter: a back-off grows by up to this fraction.
        on_release: whether released records back off.
        on_timeout: whether records whose lock expired back off.
        max_waiting: how many records of the window may be neither acquired nor finished.
        ordering: "none"; "partition": one member at a time has records, in order; "key": the same for each
            key.
        run_max: how many consecutive records of an order may be acquired together.
        deliver_at_header: the header with the earliest delivery time, in milliseconds since the epoch; empty:
            none.
        ttl_ms: records older than this are archived; None: never.
        ttl_header: the header with a record's own time to live; empty: none.
        expired_letters: whether expired records get dead-letter records, if the partition has them.
        key_header: the header with the key; empty: the record key.

    Raises:
        ValueError: a number out of range, or an unknown ordering.
    """

    def __new__(
        cls,
        *,
        backoff_ms: int = 0,
        backoff_max_ms: int = 300_000,
        multiplier: float = 2.0,
        jitter: float = 0.0,
        on_release: bool = True,
        on_timeout: bool = True,
        max_waiting: int = 16_000,
        ordering: str = "none",
        run_max: int = 1,
        deliver_at_header: str = "",
        ttl_ms: int | None = None,
        ttl_header: str = "",
        expired_letters: bool = False,
        key_header: str = "",
    ) -> Rules: ...
    @property
    def looks_at_records(self) -> bool:
        """Whether records have delivery times, expire, or are ordered by key: they are examined before they
        are acquired.
        """
    def looks_otherwise(self, before: Rules) -> bool:
        """Return whether records must be examined again when these rules replace others."""
    @property
    def expired_letters(self) -> bool: ...
    @property
    def on_release(self) -> bool: ...
    @property
    def on_timeout(self) -> bool: ...
    @property
    def max_waiting(self) -> int: ...
    @property
    def ordering(self) -> str: ...
    @property
    def run_max(self) -> int: ...
    def wait_ms(self, first: int, delivery_count: int) -> int:
        """Return the back-off of records from an offset with this delivery count."""

@final
class Partition:
    """The in-flight state of one share partition (KIP-932).

    Time is an argument in milliseconds and must not go backwards. A refused request raises
    `sharecore.errors.KafkaError` and changes nothing, except that renewals before the refused batch are kept.
    Thread-safe. UNKNOWN_SERVER_ERROR from any call or property means that the engine failed, now or earlier;
    such a partition must be reloaded.

    Args:
        start_offset: the persisted start offset.
        state_batches: persisted state, as (first offset, last offset, state, delivery count).
        max_delivery_count: deliveries before a record is archived.
        max_inflight: how many offsets may be in flight.
        lock_ms: how long an acquisition lock lasts.
        renew_enabled: whether members may renew their locks.
        dead_letters: whether rejected and undeliverable records wait for a dead-letter record (KIP-1191)
            before they are archived.

    Raises:
        ValueError: a limit that is not positive, or an unknown record state.
        KafkaError: INVALID_REQUEST for state batches that overlap or lie before the start offset.
    """

    def __new__(
        cls,
        start_offset: int = 0,
        state_batches: Sequence[_Four] = ...,
        *,
        max_delivery_count: int = 5,
        max_inflight: int = 2000,
        lock_ms: int = 30000,
        renew_enabled: bool = True,
        dead_letters: bool = False,
        rules: Rules | None = None,
        now_ms: int = 0,
    ) -> Partition: ...
    def acquire(
        self,
        now_ms: int,
        member: str,
        batches: Sequence[tuple[int, int]],
        fetch_offset: int,
        max_fetch_records: int = 500,
        batch_size: int = 500,
        record_limit: bool = False,
    ) -> list[tuple[int, int, int]]:
        """Acquire available records of the batches returned by the log.

        Args:
            now_ms: locks expire `lock_ms` from here.
            member: the member.
            batches: (base offset, last offset) of the record batches, ascending.
            fetch_offset: the offset of the read.
            max_fetch_records: how many records to acquire; whole record batches unless `record_limit`.
            batch_size: how many offsets of new records make a batch, at a record-batch boundary.
            record_limit: whether `max_fetch_records` is strict.

        Returns:
            (first offset, last offset, delivery count) in order; empty if nothing is available.
        """
    def acknowledge(
        self, now_ms: int, member: str, batches: Sequence[tuple[int, int, bytes]]
    ) -> Write | None:
        """Acknowledge, release or renew records of `member`; a refusal leaves only earlier renewals.

        Args:
            batches: (first offset, last offset, acknowledge types); one type for all or one per offset.

        Returns:
            The change to persist, or None.

        Raises:
            KafkaError: INVALID_RECORD_STATE, INVALID_REQUEST.
        """
    def held_by(self, member: str) -> int:
        """Return the number of offsets held by a member, including pending acknowledgements."""

    def running_out(self, now_ms: int) -> list[str]:
        """Return the members whose locks have expired, each once, in order."""
    def keep_locks(self, now_ms: int, members: Sequence[str], max_ms: int) -> None:
        """Restart the expired locks of members, so that `advance` skips them.

        A lock is extended up to `max_ms` after its records were delivered or last renewed by their member;
        the delivery count stays. Nothing is persisted.
        """
    def release(self, now_ms: int, member: str) -> Write | None:
        """Release all records of a member whose session closed."""
    def advance(self, now_ms: int, wall_ms: int = 0) -> Write | None:
        """Free the records whose lock has expired; they are free whether the write succeeds or not.

        Also make records available whose delivery time has come, and expire others, by `wall_ms`,
        milliseconds since the epoch.
        """
    def admit(
        self,
        now_ms: int,
        wall_ms: int,
        fetch_offset: int,
        batches: Sequence[tuple[int, int]],
        entries: Sequence[tuple[int, int | None, int | None, int]],
        batch_size: int = 500,
    ) -> bool:
        """Admit record batches read from the log from `fetch_offset`, with their records' times and keys;
        does nothing if the rules do not examine records.

        Args:
            now_ms: monotonic time.
            wall_ms: milliseconds since the epoch.
            fetch_offset: at most `next_admission`.
            batches: (base offset, last offset) of the record batches, ascending.
            entries: (offset, delivery time or None, expiry or None, key digest or 0), ascending. An entry
                applies to the offsets up to the next one.
            batch_size: how many offsets make a batch, at a record-batch boundary.

        Returns:
            Whether the batches continue the examined part; otherwise none is admitted.
        """
    @property
    def next_admission(self) -> int | None:
        """Where to read the log for unexamined records; None without capacity."""
    @property
    def next_wall_ms(self) -> int | None:
        """When, in milliseconds since the epoch, `advance` is due next."""
    def keys(self, limit: int) -> tuple[int, int, list[tuple[int, int, int]]] | None:
        """Return how many records wait only for earlier ones of their key, the number of keys, and (digest,
        records, first) of the keys with the most records; None without order by key.
        """
    def waiting_reasons(self, limit: int) -> WaitingReasons:
        """Return why records are not delivered, with the `limit` keys that have the most records."""
    def knows_waits(self, backs_off: bool) -> bool:
        """Whether records wait for times that a reload would not know.

        With `backs_off`, also records that were delivered before: a reload counts their back-off anew.
        """
    def looked_at(self) -> tuple[int, int, int, int]:
        """Count expired records, headers with invalid numbers, batches that could not be expanded, and bytes
        left out of responses.
        """
    def lateness(self) -> tuple[int, int]:
        """Count records acquired after a back-off or delivery time, and the milliseconds since its end."""
    def move_log_start(self, now_ms: int, offset: int) -> None:
        """Move the log start; nothing to persist now, as the next write carries it."""
    def archive(self, now_ms: int, first: int, last: int) -> None:
        """Archive offsets without a record for this group: aborted transactions, control records."""
    def pass_hole(self, now_ms: int, first: int, last: int) -> None:
        """Skip `first` to `last`, where the log has no records, as a fetch from `first` has shown:
        available ones are archived, and the start offset moves past. Nothing to persist now, as the next
        write carries it.
        """
    def can_acquire_before(self, end: int) -> bool:
        """Return whether anything before an offset can be acquired, as far as known without reading the
        log.
        """
    def take_dead_letters(self) -> list[tuple[int, int, int, int]]:
        """Return the dead letters that became due since the last call, in due order.

        Returns:
            (first offset, last offset, delivery count, cause): 0 for their delivery limit, 1 for a member
            that rejected them, 2 for their time to live. Loaded state lacks it: the delivery
            count decides between 0 and 1.
        """
    def finish_archiving(self, now_ms: int, first: int, last: int) -> Write | None:
        """Archive records whose dead letters, first to last, are written or never will be.

        They stay archived whether the write succeeds or not.
        """
    def commit(self, write_id: int, now_ms: int) -> None:
        """Commit a durable write."""
    def rollback(self, write_id: int, now_ms: int) -> None:
        """Roll back a failed write: its records are acquired as before, or free if their lock has expired."""
    def configure(
        self,
        *,
        max_delivery_count: int | None = None,
        max_inflight: int | None = None,
        lock_ms: int | None = None,
        renew_enabled: bool | None = None,
        dead_letters: bool | None = None,
    ) -> None:
        """Change limits; acquired records keep their deadlines."""
    def set_rules(self, rules: Rules | None) -> None:
        """Change the rules; running waits are kept, and end without rules."""
    def waiting(self) -> tuple[int, bool]:
        """How many records wait, and whether waiting records fill the window."""
    @property
    def has_rules(self) -> bool: ...
    @property
    def next_time_ms(self) -> int | None:
        """When `advance` is due next: a lock expires, or a back-off ends."""
    def batch_end(self, offset: int) -> int:
        """Return the last offset acquired together with `offset`; `offset` itself if it is not in flight."""
    def is_slow(self, offset: int) -> bool:
        """Return whether the next records of a fetch from `offset` are near their delivery limit, or share a
        batch with such records: a fetch that already has records leaves them, and one that begins with them
        goes no further.
        """
    @property
    def start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def next_fetch_offset(self) -> int: ...
    @property
    def can_acquire(self) -> bool: ...
    @property
    def delivery_complete_count(self) -> int: ...
    @property
    def next_deadline_ms(self) -> int | None: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def runs(self) -> int: ...
    def observe(
        self,
    ) -> tuple[tuple[int, int, int, int, int | None, int], tuple[int, int, int, int, int], list[int]]:
        """Return all metrics in one call: start offset, end offset, in flight, delivery complete count,
        next deadline, records whose lock expired; acknowledgements by type (gap, accept, release, reject,
        renew); deliveries by delivery count, 1 to 15, and 16 or more. Counted since the partition was
        loaded.
        """
    def inflight(self) -> list[_Four]:
        """Return the records from the start offset, as (first offset, last offset, state, delivery count)."""
    def leases(self) -> list[tuple[int, int, str, int | None]]:
        """Return the held records from the start offset, as (first offset, last offset, member, deadline).

        During the pending write of a member's acknowledgement its records are still included. The deadline is
        None if the lock has expired meanwhile.
        """
    def check(self) -> None:
        """Check every invariant; linear in the window. Raises AssertionError."""
    def fail(self) -> None:
        """Fail like a bug, for tests: raise KafkaError, as every later call does. Not in published wheels."""

_K = TypeVar("_K", default=Any)
_V = TypeVar("_V", default=Any)

@final
class Record(Generic[_K, _V]):
    """A record acquired by a consumer, or created by an application to test a handler.

    Immutable, thread-safe. Records are equal if everything but the lease is. A record created by an
    application or unpickled belongs to no consumer: it cannot be acknowledged, leased or renewed.
    `Record[bytes, Order]` declares the types of key and value for type checkers.

    Args:
        timestamp, leader_epoch: -1, none, by default.
        serialized_key_size, serialized_value_size: by default the length of a bytes key or value, -1 for
            others.

    Raises:
        ValueError: unknown timestamp type.
    """

    def __new__(
        cls,
        *,
        topic: str = "",
        partition: int = 0,
        offset: int = 0,
        key: _K = ...,
        value: _V = ...,
        headers: Sequence[tuple[str, bytes | None]] = ...,
        timestamp: int = ...,
        timestamp_type: int = 0,
        delivery_count: int = 1,
        leader_epoch: int = ...,
        serialized_key_size: int | None = None,
        serialized_value_size: int | None = None,
    ) -> Self: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch; -1 for none."""
    @property
    def timestamp_type(self) -> int:
        """0: CreateTime, 1: LogAppendTime."""
    @property
    def key(self) -> _K:
        """Bytes, or the deserialized key; None without a key."""
    @property
    def value(self) -> _V:
        """Bytes, or the deserialized value; None without a value."""
    @property
    def serialized_key_size(self) -> int:
        """Size of the key in bytes, before deserialization; -1 without a key."""
    @property
    def serialized_value_size(self) -> int:
        """Size of the value in bytes, before deserialization; -1 without a value."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """In the producer's order; a new list each time."""
    @property
    def delivery_count(self) -> int:
        """How often the record was delivered, including this time: 1 the first time."""
    @property
    def leader_epoch(self) -> int:
        """Epoch of the leader that wrote the record."""
    @property
    def lease(self) -> Any:
        """The object passed to `decode_records`; None without one."""
    @property
    def position(self) -> int:
        """The record's index among the acquired offsets, over all ranges."""
    def replace(self, key: Any, value: Any) -> Record:
        """Return the record with another key and value."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: dict[int, Any]) -> Self: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @classmethod
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...

def decode_records(
    records: bytes,
    acquired: Sequence[tuple[int, int, int]],
    topic: str,
    partition: int,
    lease: object,
    *,
    expanded_bytes_max: int = 1073741824,
) -> tuple[list[Record], list[tuple[int, int]], list[tuple[int, int]], list[tuple[int, int, str]]]:
    """Return the acquired records of one share partition in a ShareFetch response.

    Args:
        records: record batches v2, the last of which may be truncated; records not acquired are skipped.
        acquired: (first offset, last offset, delivery count), ascending.
        topic, partition, lease: copied into every record.
        expanded_bytes_max: limit for all decompressed bytes together.

    Returns:
        The records, and the acquired offsets without one, as (first, last): those missing from the log
        (gaps), those of a truncated batch, and those of unreadable batches, with the reason.

    Raises:
        ValueError: ranges that overlap, are not ascending, or are unbounded.
    """

def decode_columns(
    records: bytes, ranges: Sequence[_Three], *, headers: bool = True, expanded_bytes_max: int = 1073741824
) -> tuple[int, list[_Column], int | None, list[_Unread]]:
    """Return records as buffers in Arrow's layout.

    Args:
        records: record batches v2; a truncated last one is ignored.
        ranges: (first offset, last offset, tag), ascending, without overlaps; other offsets are skipped.
        headers: whether to read the headers.
        expanded_bytes_max: limit for all decompressed bytes together, at most 2 GiB.

    Returns:
        The number of rows; (nulls, buffer) in the order key (validity, offsets, bytes), value (the same),
        offset (int64), timestamp (int64, microseconds), timestamp type (int32), the range's number (int32),
        and with headers: list (validity, offsets), names (offsets, bytes), contents (validity, offsets,
        bytes), a validity without nulls being None; the offset behind the last whole batch, None when there
        is none; and the batches that cannot be read, as (first, last, reason).

    Raises:
        ValueError: ranges that overlap or are not ascending.
    """

def damaged_batches(records: bytes, ranges: Sequence[tuple[int, int]]) -> list[_Unread]:
    """Return batches with an offset in the ascending ranges and a wrong format or checksum: first, last,
    reason.
    """

def encode_batch(
    records: Sequence[tuple[bytes | None, bytes | None]],
    *,
    now_ms: int,
    producer: tuple[int, int, int] | None = None,
) -> bytes:
    """Return an uncompressed record batch of keys and values, at offset 0 and not transactional.

    Args:
        now_ms: the timestamp of all of them.
        producer: ID, epoch and first sequence number of an idempotent producer.

    Raises ValueError: no records.
    """

def encode_records(
    records: Sequence[tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]], now_ms: int
) -> bytes:
    """Return the same with headers, and without a producer."""

def decode_share_state(
    records: bytes,
    first: int,
    end: int,
    *,
    position: int = 0,
    rows_max: int = 16384,
    keep_unreadable: bool = True,
    group: str | None = None,
    expanded_bytes_max: int = 134217728,
) -> tuple[tuple[int, list[tuple[int, bytes | None]]], int, int | None, tuple[int, str] | None]:
    """Return records of `__share_group_state` as buffers in Arrow's layout, one row per record.

    Args:
        records: record batches v2; a truncated last one is ignored.
        first, end: the first offset to read, and the one after the last.
        position: of the first batch in `records`.
        rows_max: reading stops after the batch that reaches this many rows, or after 64 MiB of rows.
        keep_unreadable: whether unreadable records become rows with the reason.
        group: only records of this share group.
        expanded_bytes_max: the most bytes that a batch may expand to, up to 128 MiB.

    Returns:
        The rows: how many, and (nulls, buffer) in the order offset (int64), timestamp (validity, int64 in
        microseconds), type (validity, offsets, UTF-8), group (the same), topic id (the same), partition
        (int32), a validity of the rows with a state, a validity of those with a state epoch, snapshot epoch
        (int32), state epoch (int32), leader epoch (int32), start offset (int64), delivery-complete count
        (int32), created, written (int64, microseconds), state batches (list offsets), their first offset,
        last offset (int64), delivery state (int8), delivery count (int16), error (validity, offsets, UTF-8).
        The position behind the last batch that was read, and the offset; None when there was none. The first
        thing that could not be read, as (offset, reason).

    Raises:
        ValueError: the position is beyond the end, or a limit is too high.
    """
@final
class StateContent:
    """The state of one share partition, built from its records; initially, snapshot epoch and start offset
    are -1.
    """

    def __new__(cls) -> Self: ...
    def replay_snapshot(self, value: bytes) -> None:
        """Apply the value of a ShareSnapshot record; raise ValueError for a damaged one, which changes
        nothing.
        """

    def replay_update(self, value: bytes) -> None:
        """Apply the value of a ShareUpdate record; raise as `replay_snapshot`."""

    def batches(self) -> bytes:
        """State batches from the start offset, packed, ascending, without overlaps."""

    @property
    def snapshot_epoch(self) -> int: ...
    @property
    def state_epoch(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def fence_epoch(self) -> int:
        """The highest leader epoch seen."""

    @property
    def start_offset(self) -> int: ...
    @property
    def delivery_complete_count(self) -> int: ...
    @property
    def create_ms(self) -> int: ...
    @property
    def write_ms(self) -> int: ...
    @property
    def updates(self) -> int:
        """Updates since the last snapshot."""

    def begin(self, state_epoch: int, start_offset: int, now_ms: int, updates_per_snapshot: int) -> bytes:
        """Reset the state to a start offset (-1: unknown); return the value of the ShareSnapshot to append.

        Only a snapshot that was due resets the count of updates.
        """

    def write(
        self,
        start_offset: int,
        delivery_complete_count: int,
        batches: bytes,
        now_ms: int,
        updates_per_snapshot: int,
        leader_epoch: int | None = None,
    ) -> tuple[bool, bytes]:
        """Apply a change. The start offset never decreases; neither does the count for the same start offset.

        Args:
            batches: packed, ascending, without overlaps, none below the start offset.
            leader_epoch: higher than before; None keeps it.

        Returns:
            Whether the record to append is a snapshot, because of the updates since the last one, and its
            value.

        Raises:
            ValueError: `batches` are not valid state batches.
        """

    def write_begun(self, write: Write, now_ms: int, updates_per_snapshot: int) -> tuple[bool, bytes]:
        """Apply a change started by an engine, as `write`.

        The start offset moves past adjacent acknowledged batches, which need no state any more.
        """

    def snapshot(self, now_ms: int, create_ms: int) -> bytes:
        """Return the value of the ShareSnapshot that makes all earlier records redundant."""

    def is_superseded(self, state_epoch: int, leader_epoch: int) -> bool:
        """Return whether a higher epoch than one of these was seen; -1 is not checked."""

@final
class StateFold:
    """Folds the records of one partition of `__share_group_state` into the final states."""

    def __new__(cls) -> Self: ...
    def take(self, offset: int, key: bytes | None, value: bytes | None) -> str | None:
        """Apply a record, in offset order.

        Returns:
            None, or why it was skipped: an unknown type, or an update without a snapshot.

        Raises:
            ValueError: the record is damaged; earlier records stay applied.
        """

    @property
    def repaired(self) -> int:
        """Number of invalid state batches so far, whose records are redelivered."""
    def states(self) -> list[tuple[bytes, int, StateContent]]:
        """Return a copy of each state, its key without the type, and the offset of its last snapshot."""

    def waiting(self, deliveries: int) -> list[tuple[bytes, int]]:
        """Return how many records were delivered this often and wait for redelivery, by key (without the
        type), for states that have some.

        Raises:
            OverflowError: a number below zero or above 2^32 - 1.
        """

    def state(self, key: bytes) -> StateContent | None:
        """Return a copy of one state, by key without the type."""

    def drain(self) -> list[tuple[bytes, int, StateContent]]:
        """Return the states as `states`, and remove them."""

@final
class ShareStateFold:
    """Folds the records of one partition of `__share_group_state` into the final states.

    Args:
        first, end, group, expanded_bytes_max: as in `decode_share_state`.
        unreadable_max: how many unreadable records become rows; None for none.

    Raises:
        ValueError: a limit is too high.
    """

    def __new__(
        cls,
        first: int,
        end: int,
        *,
        unreadable_max: int | None = None,
        group: str | None = None,
        expanded_bytes_max: int = 134217728,
    ) -> Self: ...
    def take(self, records: bytes) -> tuple[int | None, tuple[int, str] | None]:
        """Apply the whole record batches at the front, in offset order.

        Returns:
            The offset after them, None without any; the first unreadable record so far.
        """

    def drain(
        self, rows_max: int = 16384
    ) -> tuple[tuple[int, list[tuple[int, bytes | None]]], tuple[int, str] | None]:
        """Return the next rows, in the form of `decode_share_state`, ordered by share partition; none at the
        end.

        Returns:
            Rows, and the first thing that could not be read: an update that has no snapshot shows only here.
        """

def combine_state_batches(parts: Sequence[bytes], start_offset: int) -> bytes:
    """Merge packed lists of state batches into one, from `start_offset`.

    Where batches overlap, the highest delivery count wins, then the highest state. Packed: 20 bytes per
    batch, as in Kafka's ShareSnapshotValue. A negative start offset keeps everything.

    Raises:
        ValueError: the bytes are not valid state batches.
    """
@final
class DeadLetterBatch:
    """A batch of dead-letter records, built record by record (KIP-1191).

    Args:
        group, topic, partition: the share partition.
        copy: whether to copy key, value and headers of the records.
        now_ms: the timestamp, milliseconds since the epoch.
        max_bytes: the largest size of the batch.
    """

    def __new__(
        cls, group: str, topic: str, partition: int, *, copy: bool, now_ms: int, max_bytes: int
    ) -> Self: ...
    @property
    def count(self) -> int:
        """Number of dead-letter records."""
    def add(
        self, ranges: Sequence[tuple[int, int, int, int]], source: bytes, read_to: int
    ) -> tuple[int, int]:
        """Add as many dead-letter records as fit.

        Control batches are skipped. A dead-letter record lacks the original content if that is missing from
        `source` or too large; one that is too large only together with the original headers lacks those. An
        empty batch accepts a record of any size.

        Args:
            ranges: first offset, last offset, delivery count and cause, as in `Partition.take_dead_letters`,
                ascending; a range out of order ends the call.
            source: whole record batches, ascending: everything that the log has from the first range to
                before `read_to`.
            read_to: stop before this offset.

        Returns:
            How many ranges are done, and the first offset of the next one that is not; 0 if all are.
        """
    def finish(self) -> bytes:
        """Return the batch, and reset this one to empty."""

@final
class LogCleaner:
    """Compacts logs of a store; `sharecore.storage.cleaner` explains the numbers."""

    def __new__(cls, store: Store) -> Self: ...
    def dirt(self, log: int, newest_ms: int) -> tuple[int, int, int | None, int, int | None]: ...
    def roll(self) -> None: ...
    def clean(
        self, log: int, *, times_ms: tuple[int, int, int], limits: tuple[int, float, int, float]
    ) -> tuple[int, int, int, int, int, int, int, bool, int | None] | None: ...

class _Reach(Protocol):
    def ask(self, requests: Sequence[tuple[str, str]], /) -> Sequence[str | None]:
        """Take kinds and names of requests that are made at once; return why each has no answer, or None."""
    def wait(self, seconds: float, /) -> object: ...

@final
class MemoryBucket:
    """A bucket in memory for simulations, which several machines share. Not in published wheels.

    `reach` is the way of a machine's threads to it.
    """

    def __new__(cls) -> Self: ...
    def ask(self, call: BucketCall) -> BucketAnswer: ...
    def objects(self) -> list[tuple[str, int]]:
        """Return names and sizes."""
    def get(self, name: str) -> bytes | None: ...
    def set(self, name: str, body: bytes | None) -> None:
        """Set the content of an object, or remove it."""
    def standby(
        self,
        reach: _Reach,
        now_ms: Callable[[], int],
        node_id: int,
        silence_ms: int,
        path: str | PathLike[str],
    ) -> Standby: ...
    def home_nodes(self, reach: _Reach) -> HomeNodes: ...
    def cache(self, reach: _Reach, bytes: int) -> SimulatedCache: ...
    def prepare_home(
        self,
        reach: _Reach,
        path: str | PathLike[str],
        cluster_id: str | None,
        proposed: str,
        standby: Standby | None = ...,
        is_bounded: bool = ...,
    ) -> tuple[Literal["empty", "local", "bucket"], str | None, int, int, int]:
        """As `prepare_home`; raise OSError where the bucket cannot be read."""

@final
class SimulatedCache:
    """A bound on the local disk of a simulated machine. Not in published wheels."""

@final
class BucketCall:
    """A request of a simulated store to its bucket. Not in published wheels."""

    @property
    def id(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...

@final
class BucketAnswer:
    """What a simulated bucket answers. Not in published wheels."""

    @staticmethod
    def unknown(why: str) -> BucketAnswer: ...
    @staticmethod
    def absent() -> BucketAnswer: ...

@final
class MemoryDisk:
    """A memory disk for simulations, mounted on a directory of this process for all stores in it.

    After a crash, synced content stays; anything may be left of the rest. Not in published wheels.
    """

    def __new__(cls, path: str | PathLike[str], seed: int) -> Self: ...
    def unmount(self) -> None: ...
    def fail(self, operation: str, errno: int, *, skip: int = ..., times: int = ...) -> None:
        """Make `open`, `write`, `sync`, `rename` or `read` fail `times` times, after `skip` successes."""
    def lie(self, *, skip: int = ..., times: int = ...) -> None:
        """Make syncs report success without syncing."""
    def misdirect(self, *, skip: int = ..., times: int = ...) -> None:
        """Make writes go to another position."""
    def set_rot(self, per_mille: int) -> None:
        """Set how many of 1,000 unsynced writes that survive a crash have a flipped bit."""
    @property
    def harmed(self) -> int:
        """How often the disk lost content that it had reported as durable."""
    def files(self) -> list[tuple[str, bytes]]:
        """Return all current files, by name."""
    def replace(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Replace all files; open ones become unusable."""
    def heal(self) -> None:
        """Cancel planned failures."""
    def end_after(self, changes: int) -> None:
        """Make the disk disappear at the last of this many more changes, which may be done in part."""
    @property
    def is_gone(self) -> bool: ...
    def set_capacity(self, bytes: int) -> None: ...
    def set_cold(self, per_mille: int) -> None:
        """Set how many of 1,000 reads would wait for the disk."""
    @property
    def used_bytes(self) -> int: ...
    @property
    def operations(self) -> int: ...
    def crash(self) -> None:
        """Simulate a power failure; open files become unusable."""
    def restart(self) -> None:
        """Simulate the end of the process; the disk continues, and open files become unusable."""

@final
class Reading:
    """A read by a thread of a store, into bytes returned later."""

    @property
    def size(self) -> int:
        """Size of the read."""
    def result(self) -> tuple[bytes, list[tuple[int, int]]]:
        """Return the records as `Store.read`, once `Store.drain` has reported the read.

        Raises KafkaError if it failed.
        """

@final
class Store:
    """Logs of record batches and a catalog of keys, in one directory; wrapped by `sharecore.storage`.

    Changes are staged and numbered; a thread commits them and makes `fileno()` readable. Refused calls raise
    `KafkaError`.
    """

    def __new__(
        cls,
        path: str | PathLike[str],
        *,
        durability: str = ...,
        segment_bytes: int = ...,
        cache_bytes: int = ...,
        staging_bytes: int = ...,
        producer_bytes: int = ...,
        read_threads: int = ...,
        own_commit_clients: int = ...,
        bucket: BucketCopy | None = None,
    ) -> Self:
        """Raise OSError if the directory is unavailable, in use, or has damaged files.

        `bucket` gets a copy of all commits, which do not wait for it.
        """

    def bucket_status(self) -> BucketStatus | None:
        """Return the status of the copy in a bucket; None without one."""

    @staticmethod
    def look(path: str | PathLike[str], *, cache_bytes: int = ...) -> Store:
        """Return a read-only store with the directory's current content, whoever owns it.

        Calls that would write are refused. Raises OSError if there is no store or its files are damaged.
        """
    @staticmethod
    def stepped(
        path: str | PathLike[str],
        *,
        durability: str = ...,
        segment_bytes: int = ...,
        cache_bytes: int = ...,
        staging_bytes: int = ...,
        ahead_bytes: int = ...,
        own_commit_clients: int = ...,
    ) -> Store:
        """Return a store without threads, for simulations: `step` commits, `maintain` does maintenance.

        Args:
            ahead_bytes: the most space that a journal writes ahead of its frames.
            own_commit_clients: up to how many clients a turn of `StoreEvents` commits at its end.
        """
    @staticmethod
    def stepped_home(
        path: str | PathLike[str],
        *,
        standby: Standby,
        cluster_id: str,
        node_id: int,
        writer: bytes,
        segment_bytes: int,
        cache_bytes: int,
        staging_bytes: int,
        object_bytes: int,
        part_bytes: int,
        objects_max: int,
        history_ms: int,
        linger_ms: int,
        puts_per_second: int,
        cache: SimulatedCache | None = ...,
    ) -> Store:
        """Return a store without threads that confirms what its bucket has. Not in wheels."""
    def step_bucket(self, now_ms: int, wall_ms: int) -> int | None:
        """Do what is due for the bucket; return when to look again, in milliseconds of the same clock."""
    def bucket_calls(self) -> list[BucketCall]:
        """Return the requests to make now."""
    def answer_bucket(self, id: int, answer: BucketAnswer) -> None: ...
    def is_proven_at(self, now_ms: int, lease_ms: int) -> bool:
        """As `is_proven`, at a time of the clock that `step_bucket` gets."""
    def set_pump(self, pump: Callable[[], object]) -> None:
        """Call `pump` repeatedly while a call waits for the bucket."""
    def is_settled(self, sequence: int) -> bool:
        """Whether an operation has an outcome."""
    @property
    def has_work(self) -> bool:
        """Whether an operation waits to be committed."""
    def step(self) -> bool:
        """Commit once in a store without threads; return whether there was anything."""
    def maintain(self) -> bool:
        """Seal or rewrite segments once in a store without threads; return whether there was anything."""
    def abandon(self) -> None:
        """End a store without threads as a killed process would: nothing more is written."""
    def close(self) -> None:
        """Commit staged changes and stop."""
    def fileno(self) -> int: ...
    def drain(
        self,
    ) -> tuple[
        list[tuple[int, str | None]],
        list[tuple[int, _Four]],
        list[int],
        list[tuple[int, int, int, Path, int]],
    ]:
        """Return events since the last call: (sequence number up to which operations ended, error), for
        logs that moved (log, (start, high watermark, last stable offset, end)), finished reads, and
        damaged batches found by readers (log, first offset, last offset, file, byte).
        """
    @property
    def torn(self) -> tuple[Path, int, int] | None:
        """Return file, byte and size of a torn write found when the store was opened."""
    def verify(self, log: int) -> None:
        """Read a whole log, so that `drain` reports its damaged batches; waits for the disk."""
    def wait(self, sequence: int) -> None:
        """Block until the operation has ended."""
    def figures(self) -> tuple[list[int], float, int, int, int, int, int, int]:
        """Return statistics: commits by duration (bucket i: below 2^i microseconds), their total seconds,
        bytes written, failed commits, segments, bytes of batches in them, live bytes, bytes waiting.
        """
    @property
    def staged_bytes(self) -> int: ...
    def entries(self, prefix: bytes) -> list[tuple[bytes, bytes]]: ...
    def change(
        self,
        puts: Sequence[tuple[bytes, bytes]] = ...,
        deletes: Sequence[bytes] = ...,
        *,
        create_logs: Sequence[int] = ...,
        drop_logs: Sequence[int] = ...,
    ) -> int: ...
    def new_log_id(self) -> int: ...
    def logs(self) -> list[int]: ...
    def offsets(self, log: int) -> _Four:
        """Return start, high watermark, last stable offset, end."""
    def log_bytes(self, log: int) -> int: ...
    def configure(
        self,
        log: int,
        *,
        max_batch_bytes: int,
        log_append_time: bool,
        before_max_ms: int,
        after_max_ms: int,
        needs_keys: bool = False,
        compression: tuple[int, int | None] | None = None,
    ) -> None: ...
    def append(self, log: int, records: bytes, now_ms: int) -> tuple[int, int, int, int, int]:
        """Return base offset, last offset, append time or -1, log start, sequence number."""
    def announce(self, log: int, producer: tuple[int, int, int], from_zero: bool, now_ms: int) -> None:
        """Announce a batch about to be appended: producer ID, epoch, first sequence."""
    def append_local(
        self,
        log: int,
        records: Sequence[_Pair],
        now_ms: int,
        producer: tuple[int, int] | None = None,
        lingers: bool = False,
    ) -> tuple[int, int, int, int, int]:
        """Append a batch; transactional with a producer's ID and epoch.

        One that lingers shares the next commit, and is durable after some milliseconds in any case.
        """
    def append_marker(
        self,
        log: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        now_ms: int,
    ) -> tuple[int, int, int, int, int]: ...
    def delete_records(self, log: int, before_offset: int) -> int: ...
    def read(
        self,
        log: int,
        offset: int,
        max_bytes: int,
        limit: int | None = None,
        at_least_one: bool = True,
        max_records: int = ...,
    ) -> tuple[bytes, list[tuple[int, int]]]: ...
    def read_cached(
        self,
        log: int,
        offset: int,
        max_bytes: int,
        limit: int | None = None,
        at_least_one: bool = True,
        max_records: int = ...,
    ) -> tuple[bytes, list[tuple[int, int]]] | None:
        """Read without waiting for the disk or copying more than 256 KB from files; None otherwise."""
    def read_apart(
        self,
        log: int,
        offset: int,
        max_bytes: int,
        limit: int | None = None,
        at_least_one: bool = True,
        max_records: int = ...,
        whole: bool = False,
    ) -> tuple[int, Reading | None]:
        """Read in a thread; return a number that `drain` reports when it is done.

        Without a `Reading` the thread only loads the index; never so if `whole`.
        """
    @property
    def has_reads(self) -> bool:
        """Whether a read waits for a thread."""
    def step_read(self) -> bool:
        """Read once, in a store without threads; return whether there was anything."""
    def readable_bytes(self, log: int, offset: int, max_bytes: int, limit: int | None = None) -> int | None:
        """Return the size of what `read` would return; None if that needs the disk."""
    def scan(
        self, log: int, offset: int, max_bytes: int
    ) -> tuple[list[tuple[int, bool, list[tuple[int, int, bytes | None, bytes | None]]]], int]:
        """Return batches and the offset after the last: producer ID of the transaction or -1, whether it is a
        control batch, and its records: offset, timestamp, key, value.
        """
    def offset_for(self, log: int, timestamp: int) -> tuple[int, int] | None:
        """Return offset and timestamp of the first record that is not older."""
    def retain(self, log: int, *, oldest_ms: int | None = None, max_bytes: int | None = None) -> int | None:
        """Move the start according to retention; return None if it stays."""
    @property
    def maintenance_error(self) -> str | None:
        """Why the last attempt to seal or rewrite segments failed, if it did."""
    @property
    def maintenance_failed(self) -> int:
        """Count those failures since the store was opened."""
    def evicted_segments(self) -> tuple[int, int]:
        """Return how many segments are evicted, and the bytes of batches that only the bucket has."""
    def keep_local(self, logs: Sequence[int]) -> None:
        """Keep the records of these logs on the local disk when segments are evicted, and fetch missing ones.

        Nothing is evicted before the first call.

        Raises:
            OSError: the bucket does not return them.
        """
    def max_timestamp(self, log: int) -> int | None: ...
    def aborted(self, log: int, first: int, end: int) -> list[tuple[int, int]]: ...
    def active_producers(self, log: int) -> list[tuple[int, int, int, int, int, int]]:
        """Return the producers of a log: ID, epoch, last sequence, last timestamp, coordinator epoch, first
        offset of the open transaction; -1 for missing values.
        """
    def expire_producers(self, before_ms: int) -> None: ...
    def plan_fault(self, point: str, errno: int, *, skip: int = 0, times: int = 1) -> None:
        """Make the next writes ("write") or syncs ("sync") fail, for tests."""

def observe_partitions(
    partitions: Sequence[Partition], ends: Sequence[int], now_ms: int
) -> tuple[int, int, int, int, list[int], list[int]]:
    """Sum `Partition.observe` over many partitions, with the ends of their logs: lag, in flight, age in ms
    of the oldest lease, records whose lock expired, records by acknowledge type, records by delivery
    count. Failed engines are skipped. Raises ValueError unless there is an end for each.
    """
@final
class Layout:
    """A message in one version.

    Args:
        spec: (class or None, flexible, fields); each field is (name, kind, array, nullable, tag or None,
            default, spec or None). The class is a subclass of tuple; without one, plain tuples are returned.
        name: of the message, as in Kafka's schemas.
        version: of the message.
    """

    def __new__(cls, spec: tuple[Any, ...], name: str, version: int) -> Self: ...
    def read(self, data: bytes, offset: int) -> tuple[Any, int]:
        """Return the message at `offset`, and the offset after it.

        Raises ValueError: the bytes end too early, or a length or a string in them is invalid.
        """
    def read_apart(self, data: bytes, offset: int) -> Any:
        """Return as `read`, in a thread that yields to others now and then."""
    def write_response_apart(
        self, correlation_id: int, tagged_header: bool, message: Mapping[str, Any] | Produced
    ) -> list[bytes]:
        """Return as `write_response`, in a thread that yields to others now and then."""
    def write(self, message: Mapping[str, Any] | NamedTuple) -> bytes:
        """Return the encoded message.

        Missing fields get their defaults; a struct may be a tuple of the untagged fields in schema order.
        """
    def write_response(
        self, correlation_id: int, tagged_header: bool, message: Mapping[str, Any] | Produced | ShareAnswer
    ) -> list[bytes]:
        """Return a response frame with its size prefix, as buffers to send in order.

        Bytes of 64 KiB or more are not copied.
        """

def read_request_header(frame: bytes, offset: int = 0) -> tuple[int, int, int, str | None, int]:
    """Return API key, version, correlation ID, client ID, and the offset after them, where tagged fields may
    follow.

    Raises ValueError: the frame is too short, or the client ID is not a string.
    """

def skip_tagged_fields(data: bytes, offset: int) -> int:
    """Skip a section of tagged fields; return the offset after it. Raises ValueError."""

_Kept = tuple[int, int, int, int, int, bool]

def survey_store(
    path: str | PathLike[str], progress: Callable[[int, int], object], to: str | PathLike[str] | None = None
) -> tuple[
    list[tuple[str, int, str]],
    list[_Kept],
    list[_Three],
    list[tuple[bytes, bytes]],
    bool,
    tuple[str, int, int] | None,
]:
    """Read a store from end to end; with `to`, build a new one there from the intact parts.

    `path` is not changed.

    Returns: problems (file, byte, what); logs (log, start, end, intact batches, their bytes, whether only
    they show that the log exists); lost offsets (log, first, last); the catalog; whether more may be missing
    without a trace; file, byte and size of a torn write. `progress` gets bytes done and the total. Raises
    OSError.
    """
@final
class BucketCopy:
    """A bucket with the options of the copy in it; used by one store (`Store(bucket=)`).

    `random`: 16 bytes, unique among all stores. `is_tried`: whether the bucket has passed the probe.
    `standby`: has found that nobody leads; the home is claimed only if nobody has written since.
    `cache_bytes`: how much of a home's sealed segments stays on the disk; 0: everything.
    Raises ValueError for invalid settings.
    """

    def __new__(
        cls,
        url: str,
        *,
        endpoint: str | None,
        region: str | None,
        allow_http: bool,
        cluster_id: str,
        node_id: int,
        random: bytes,
        interval_ms: int,
        history_ms: int,
        surplus_bytes: int,
        linger_ms: int = ...,
        puts_per_second: int = ...,
        cache_bytes: int = ...,
        is_tried: bool = ...,
        standby: Standby | None = ...,
    ) -> Self: ...

@final
class BucketStatus:
    """The status of a store's copy; times in milliseconds, counts since the store was opened.

    Attributes:
        state: the state; `stopped` says why it is fenced or refused, and what to do.
        error: why the last attempt failed; None after a success.
        epoch: the writer's epoch; 0 before it writes.
        place: all places of the journal below it are in the bucket.
        behind_ms: how long the oldest of `behind_bytes`, bytes not known to be in the bucket, has waited.
        objects, bytes: of the journal, shipped.
        surplus_bytes: of files kept only until they are uploaded.
        creates, gets, lists, deletes: requests, retries included; `failed` got no definite answer.
        sent_bytes: of all create requests.
        local_bytes, remote_bytes: of a home with a bound, on the disk and in the bucket alone; 0 without one.
        internal_bytes: part of `local_bytes` in evicted segments: records of internal topics.
        evicted: segments that left the disk.
        eviction_failed: failed attempts to evict a segment or to rewrite an evicted one.
        eviction_error: why the last one failed; None after a success.
        pieces: read from the bucket, with their `piece_bytes` and how long all took; reads that failed.
    """

    @property
    def state(self) -> Literal["attaching", "leading", "fenced", "refused"]: ...
    @property
    def stopped(self) -> str | None: ...
    @property
    def error(self) -> str | None: ...
    @property
    def epoch(self) -> int: ...
    @property
    def place(self) -> int: ...
    @property
    def behind_bytes(self) -> int: ...
    @property
    def behind_ms(self) -> int: ...
    @property
    def objects(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def segments_waiting(self) -> int: ...
    @property
    def surplus_bytes(self) -> int: ...
    @property
    def creates(self) -> int: ...
    @property
    def gets(self) -> int: ...
    @property
    def lists(self) -> int: ...
    @property
    def deletes(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def sent_bytes(self) -> int: ...
    @property
    def local_bytes(self) -> int: ...
    @property
    def remote_bytes(self) -> int: ...
    @property
    def internal_bytes(self) -> int: ...
    @property
    def evicted(self) -> int: ...
    @property
    def eviction_failed(self) -> int: ...
    @property
    def eviction_error(self) -> str | None: ...
    @property
    def pieces(self) -> int: ...
    @property
    def piece_bytes(self) -> int: ...
    @property
    def piece_micros(self) -> int: ...
    @property
    def pieces_failed(self) -> int: ...

def bucket_url(url: str) -> str:
    """Return the URL of a bucket in canonical form.

    Raises:
        ValueError: not the URL of a bucket; the text says what is allowed, and repeats no part that may be
            secret.
    """

def reaches_clouds() -> bool:
    """Return whether this build supports S3, Google Cloud Storage and Azure; all support directories."""

def probe_bucket(
    url: str, endpoint: str | None, region: str | None, allow_http: bool, random: tuple[int, int]
) -> tuple[
    list[tuple[str, Literal["passed", "wrong", "unanswered"], str]],
    Literal["fit", "grows", "unfit", "unknown"],
    str,
]:
    """Check whether a bucket is reliable. `random`: two 64-bit numbers for its object names.

    Returns: the checks (name, outcome, why), the verdict and why. Raises ValueError for invalid settings.
    """

def inspect_bucket(
    url: str, endpoint: str | None, region: str | None, allow_http: bool, since_ms: int
) -> tuple[
    str,
    tuple[int, int, int] | None,
    tuple[int, bool, bool] | None,
    int | None,
    list[tuple[str, int, int]],
    int,
]:
    """Return what a bucket holds.

    Returns: cluster id; epoch, place and time of the newest object of the journal; the node that writes it,
    whether answers wait for it, and whether the node has ended; the oldest time that can be restored; objects
    and bytes by the first part of their names; objects of the journal since `since_ms`.
    Raises ValueError for settings that cannot be right, OSError if it cannot be read or holds no copy.
    """

def is_proven(store: Store, lease_ms: int) -> bool:
    """Return whether nobody else can lead a store's home who waits longer than `lease_ms` before a claim;
    always True without durability `bucket`.
    """
@final
class Standby:
    """Watches a home in a bucket that another broker leads.

    `path`: the data directory. A file without a name keeps what was read of the journal there, up to 256 MB,
    for a takeover. Raises ValueError for invalid settings.
    """

    def __new__(
        cls,
        url: str,
        *,
        endpoint: str | None,
        region: str | None,
        allow_http: bool,
        node_id: int,
        silence_ms: int,
        path: str | PathLike[str] | None = ...,
    ) -> Self: ...
    def look(self) -> tuple[int, int, bool] | None:
        """Return the node that leads, its epoch, and whether the bucket is its home; without that it copies
        its data there. None if this broker may claim: nobody leads, or whoever did has ended, or the leader
        of the home was silent for `silence_ms` of looks that were 3 s apart at most. Waits for the bucket;
        raises OSError if it cannot be read.
        """

    def stop(self) -> None:
        """End what `prepare_home` does with this standby: it asks the bucket nothing any more."""
    def segment(self) -> int:
        """Return the segment of the newest frames that were read; 0 before any."""

    def promote(self, random: bytes, now_ms: int) -> None:
        """Claim the copy of a lost broker, which the last look has found, as a writer of this random name.
        Raises OSError if it is not known to be claimed, or if it could not be restored.
        """

    def take_changed(self) -> list[tuple[bytes, bytes | None]]:
        """Return the entries of the catalog that looks have found changed since the last call: keys, and
        values or None for a deleted one.
        """

    def silence(self) -> tuple[int, int]:
        """Return the next place of the journal, and for how many milliseconds it is known to be free."""

@final
class HomeNodes:
    """The objects in which the brokers of a home describe themselves. Raises ValueError for wrong settings.

    Each call waits for the bucket, and raises OSError without a definite answer.
    """

    def __new__(cls, url: str, *, endpoint: str | None, region: str | None, allow_http: bool) -> Self: ...
    def announce(self, node_id: int, body: bytes) -> None:
        """Write a node's description, over the one before."""

    def withdraw(self, node_id: int) -> None:
        """Delete a node's description."""

    def read(self) -> list[tuple[int, bytes]]:
        """Return the node that each description is named for, and its body."""

def has_own_data(path: str | PathLike[str]) -> bool:
    """Return whether a directory has data that are not known to be in a bucket.

    Raises:
        OSError: another process uses the directory, or it cannot be written.
    """

def prepare_home(
    url: str,
    path: str | PathLike[str],
    *,
    endpoint: str | None,
    region: str | None,
    allow_http: bool,
    cluster_id: str | None,
    proposed: str,
    random: tuple[int, int],
    is_tried: bool = False,
    standby: Standby | None = None,
    is_bounded: bool = False,
) -> tuple[Literal["empty", "local", "bucket"], str | None, int, int, int]:
    """Bring a data directory in line with its home in a bucket, after trying whether that can be relied on,
    unless that is known. What `standby` has read of the journal is not read again. If it
    `is_bounded`, only the indexes of missing segments are fetched.

    Returns: `empty` (both are empty), `local` (the directory was not a home so far) or `bucket`; the cluster
    of the home (`proposed` if there was none), None for `local`; place and time of the newest object, and
    bytes read. Raises ValueError for invalid settings, OSError if nothing was changed.
    """

def remove_bucket(url: str, endpoint: str | None, region: str | None, allow_http: bool) -> int:
    """Delete all objects of a home or a copy, and return their number.

    Raises:
        ValueError: the settings are wrong.
        OSError: they could not all be deleted, or it is another program's.
    """

def restore_bucket(
    url: str,
    path: str | PathLike[str],
    progress: Callable[[int, int], object],
    *,
    endpoint: str | None,
    region: str | None,
    allow_http: bool,
    at_ms: int | None = None,
    place: int | None = None,
) -> tuple[tuple[str, int, int, int] | None, bool, str]:
    """Restore a store to an empty directory from the copy in a bucket.

    Returns: cluster ID, place and time of the newest object and bytes read; or None, whether the bucket lacks
    something, and why. `progress` gets bytes read, and 0. Raises ValueError for invalid settings.
    """

def whole_batches(records: bytes) -> tuple[int, int | None]:
    """Return the size of the whole record batches at the front, and the offset after the last; None
    without any.
    """
