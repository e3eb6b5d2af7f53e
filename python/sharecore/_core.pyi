"""The compiled part of sharecore."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import GenericAlias
from typing import Any, Generic, Literal, Self, final
from uuid import UUID

from typing_extensions import TypeVar, disjoint_base

from sharecore.errors import KafkaError

__all__ = [
    "AnswerBudget", "BucketCopy", "BucketStatus", "Checks", "Dispatch", "Exchange", "ExpandedCache",
    "Expression", "Gather", "GroupBounds", "Later", "Layout", "Leader", "Leaders", "LetterBatch",
    "LogAccess", "LogCleaner", "LogOffsets", "MemoryBudget", "MemoryDisk", "Partition", "PartitionFetch",
    "Pending", "Produce", "ProduceContents", "ProduceWork", "Produced", "Reading", "Record", "Rules",
    "Sessions", "ShareAcknowledge", "ShareAnswer", "ShareFetch", "ShareFetching", "ShareLook",
    "ShareSession", "ShareStateFold", "StagedBatch", "Staging", "Standby", "StateContent", "StateFold",
    "States", "Store", "StoredLog", "Ticket", "Tickets", "Timeouts", "WaitingReasons", "WaitingShareFetch",
    "Write", "WrittenAnswer", "bench_trace", "bucket_url", "call_by_name", "combine",
    "combine_state_batches", "crc32c", "damaged_batches", "decode_columns", "decode_records",
    "decode_share_state", "decompress", "encode_batch", "encode_records", "inspect_bucket", "is_proven",
    "java_hash", "monotonic_ms", "next_epoch", "now_ms", "observe_partitions", "plant_bug", "prepare_home",
    "probe_bucket", "reaches_s3", "read_request_header", "restore_bucket", "settle", "skip_tagged_fields",
    "survey_store", "use_one_heap", "whole_batches",
]  # fmt: skip

_Ticket = TypeVar("_Ticket", bound=Ticket)
_Four = tuple[int, int, int, int]
_Pair = tuple[bytes | None, bytes | None]
_Three = tuple[int, int, int]
_Column = tuple[int, bytes | None]
_Unread = tuple[int, int, str]

def bench_trace(path: str, runs: int, warmup: int) -> dict[str, float]:
    """Replays the trace in a file, `runs` times after `warmup` times unmeasured, without Python in between.

    Returns: ops, records, runs, ms_median, ops_per_s, records_per_s. Raises OSError when the file cannot be
    read or is no trace, ValueError for no runs.
    """

def monotonic_ms() -> int:
    """Monotonic milliseconds, including suspensions of the machine."""

def now_ms() -> int:
    """Milliseconds since the epoch."""

def use_one_heap() -> None:
    """Make all threads allocate from one heap, if the C library has several."""

def combine(existing: Sequence[_Four], new: Sequence[_Four], start_offset: int) -> list[_Four]:
    """Join new state batches, (first, last, state, delivery count), with persisted ones; the highest
    (delivery count, state) of an offset wins, what lies before `start_offset` goes (negative: nothing).

    Returns: ascending, without overlap, equal neighbours joined.
    """

def crc32c(data: bytes) -> int:
    """Return the checksum of bytes (Castagnoli)."""

def java_hash(units: bytes, before: int) -> int:
    """Return Java's hash, of 32 bits with a sign, of text in UTF-16BE after text whose hash is `before`."""

def decompress(data: bytes, compression: int, *, expanded_bytes_max: int) -> bytes:
    """Bytes that were compressed, by Kafka's number of the compression type.

    Raises ValueError: there is no such type, the bytes are not of it, or they expand to more.
    """
@final
class Expression:
    """A regular expression that matches whole names, in bounded time.

    Args:
        expression: in the syntax of the crate `regex-automata`.
        bytes_max: about how many bytes it may take compiled.

    Raises:
        ValueError: it is none, or too large.
    """

    def __new__(cls, expression: str, bytes_max: int) -> Self: ...
    def matching(self, names: Sequence[str]) -> list[str]:
        """Return those of the names that it matches; raise ValueError if that takes too long."""

@final
class AnswerBudget:
    """The bound on the bytes of answers that wait for their clients to read them.

    An owner has half of it at most. Answers with records are made as large as there is room, and wait where
    there is none.

    Args:
        bytes_max: the bound; a negative one means none.
    """

    def __new__(cls, bytes_max: int = ...) -> Self: ...
    @property
    def used_bytes(self) -> int:
        """Bytes of answers, and of records that are being read for some."""

    @property
    def is_wanted(self) -> bool:
        """Whether an answer waits for room."""

    def wanted(self) -> list[tuple[str, bool]]:
        """Owners whose answers wait for room, and whether for room of their own."""

    def _wake(self) -> None:
        """Call those who wait and have room."""

@final
class MemoryBudget:
    """The bound on the bytes of requests in memory: of those that are being read, and of those that are not
    answered yet.

    A request that is not small asks for room before it is read. Smaller ones do not wait for larger ones, and
    an owner has half of the room for requests of a size at most.

    Args:
        bytes_max: the bound; a negative one means none.
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
        """Owners whose requests wait for room, the bytes, and whether they wait for room of their own."""

@final
class Pending:
    """An answer that is not known yet.

    Args:
        future: what the handler waits for, a `Later` or a future; it belongs to the connection, which cancels
            it when the client goes.
        finish: turns the future, when it is done, into buffers to send, or None when nothing is to be
            answered.
    """

    def __new__(cls, future: Any, finish: Callable[[Any], list[bytes] | None]) -> Self: ...
    @property
    def future(self) -> Any: ...
    @property
    def finish(self) -> Callable[[Any], list[bytes] | None]: ...

@final
class Checks:
    """Checks that requests need at the moment; all of them until `publish`."""

    def __new__(cls) -> Self: ...
    def publish(self, *, rights: bool, features: bool, quotas: bool, leaders: bool) -> None:
        """Say what has to be asked from now on.

        Args:
            rights: there is an authorizer.
            features: share groups are not served.
            quotas: some client has a quota.
            leaders: another broker may lead a partition.
        """

@disjoint_base
class Dispatch:
    """Reads requests, has them handled and writes their answers.

    Its subclass is `sharecore.broker.requests.dispatch.Dispatcher`.

    A subclass has `_learn`, `_unsupported_api_versions`, `_note`, `_meter`, `_check`, `_unwritable`,
    `_refusal` and `_handle_apart`, which handles requests with many entries.

    Args:
        broker: its `throttles.on` says whether requests have a meter; its `checks`, where it has them,
            whether that is asked at all.
        context: `RequestContext`.
        check_names: whether `_check` sees each answer.
        log_requests: whether `_note` is told of each request.
        entries_max: a request whose arrays have more entries in all is malformed.
    """

    def __new__(
        cls, broker: Any, context: type[Any], check_names: bool, log_requests: bool, entries_max: int
    ) -> Self: ...
    def add(self, api_key: int, api_version: int, messages: Any, handle: Any) -> None:
        """Register the handler of an API version.

        Args:
            messages: its `Codec`.
            handle: a `Produce`, `ShareFetch` or `ShareAcknowledge`, whose requests become no objects of
                Python's; or what is called with the context and the message.

        Raises ValueError: one of those, and another request than its own.
        """
    def on_frame(self, connection: Any, frame: bytes) -> list[bytes] | Pending | None:
        """Handle a request frame; raise `Disconnect` for an invalid one."""

@final
class WrittenAnswer:
    """An answer that a handler has written already: the message, and its frame as buffers."""

    @property
    def message(self) -> Any: ...
    def __new__(cls, message: Any, parts: list[bytes]) -> Self: ...

@final
class Produce:
    """Handles Produce requests: appends batches where they belong, those of the ordinary kind without Python.

    Args:
        now_ms: the time that batches are appended at.
        places: called at most once for a request, with its context and the ids or names of its topics;
            returns what tells the logs of each and why nothing may be appended to them, or raises
            `KafkaError`; and whether that stays so for everybody.
        in_turns: called with the context and the `ProduceWork` of a request with many partitions; returns the
            answer.
        admit: called with context, log, records, transactional id and time before a batch of a transaction is
            appended. Raises `KafkaError`.
        may_begin: whether a context may use a transactional id, asked where a batch is of a transaction; not
            if the request has none.
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
        """Read a request with many partitions, for a thread. Raises `ValueError` for malformed bytes.

        Args:
            at: where in the frame the message begins.
        """
    def __call__(self, context: Any, request: ProduceContents) -> Any:
        """Return the answer to a request that a thread has read; see `in_turns`."""
    def forget(self) -> None:
        """Call `places` again, as topics have changed."""

@final
class ProduceContents:
    """A Produce request with many partitions, as a thread has read it. It is handled once."""

@final
class ProduceWork:
    """A Produce request with many partitions, which is taken batch by batch."""

    @property
    def topic_count(self) -> int: ...
    def topic(self, place: int) -> Any:
        """Return the id or the name of a topic, by its place in the request."""
    def learn(self, place: Callable[[Any], tuple[Any, KafkaError | None]], stays: bool) -> None:
        """Note where batches go, before the first step; see `Produce`."""
    def step(self) -> bool:
        """Take the next batch; return False if there is none."""
    def end(self) -> Any:
        """Return the answer, which is not there before the last step."""

@final
class ShareAnswer:
    """An answer to ShareFetch or ShareAcknowledge while its partitions come together, in the order in which
    they are first named.

    Args:
        cluster: knows the leaders.
        listener: of the client, whose addresses it is told.
        lock_ms: how long leases of the group run.
    """

    def __new__(cls, cluster: Any, listener: str, lock_ms: int) -> Self: ...
    @property
    def partitions(self) -> list[tuple[UUID, int]]:
        """Those that it names."""
    @property
    def served(self) -> list[tuple[UUID, int]]:
        """Those of which it brings records."""
    @property
    def failed(self) -> list[tuple[UUID, int]]:
        """Those that could not be fetched."""
    def name(self, partition: tuple[UUID, int]) -> None:
        """Names a partition."""
    def refuse(self, partition: tuple[UUID, int], error: KafkaError, *, acknowledging: bool = False) -> None:
        """Names a partition with its error; `acknowledging`: in the field of what was acknowledged."""
    def fetched(
        self,
        partition: tuple[UUID, int],
        records: bytes,
        acquired: Sequence[_Three],
        error: KafkaError | None = None,
    ) -> None:
        """Names a partition with what was acquired of it: first offset, last offset, delivery count."""
    def acknowledged(self, gather: Gather, *, beside: bool = False) -> None:
        """Names the partitions of which records were acknowledged, each with its error where there is one;
        passes over what has no name. `beside`: the answer has fields of their own for them.
        """
    def message(self) -> ShareAnswer:
        """Itself, as it is to be sent: with the nodes that it sends the client to (KIP-951)."""
    def throttled(self, throttle_time_ms: int) -> ShareAnswer:
        """Return the same answer, which says how long the client has to wait."""

@final
class ShareAcknowledge:
    """Handles ShareAcknowledge requests: `Dispatch` reads them for it.

    Args:
        check: raises `KafkaError` unless the client of a context may be a member of a group.
        may_read: whether the client of a context may read a topic; asked where there is an authorizer.
    """

    def __new__(cls, check: Callable[[Any, str], object], may_read: Callable[[Any, UUID], bool]) -> Self: ...

@final
class GroupBounds:
    """What a share group and its members may be given at this broker, and the fetches that wait for more.

    Args:
        now_ms: monotonic.
        call_later: for fetches that the rate or the breaker keeps waiting.
        broken: called when the breaker opens, with the records that were given up and all that have ended.
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
        """Set the bounds, 0 or nothing for none, and let the fetches look again that wait.

        Args:
            breaker: percent, window in ms, least records, pause in ms.
        """
    def breaker(self) -> tuple[int, int | None, int] | None:
        """Return the state of the breaker (0: closed, 1: half open, 2: open), when it lets records through
        again if it is open, and how often it has opened; None without a breaker.
        """
    def add(self, leader: Leader) -> None:
        """Count what members hold of a share partition, too."""
    def held_back(self) -> tuple[int, int, int]:
        """Count the fetches that wait for the rate, for the bound of their member, and for the breaker."""
    def more(self) -> None:
        """Let waiting fetches look again, as members may hold less than before."""
    def _due(self) -> None: ...

@final
class WaitingReasons:
    """Why records of a share partition do not come.

    Attributes:
        backoff, delivery: records that wait since they were given back, and for their delivery time.
        unread: records that were not looked at since the partition was loaded, or its rules changed.
        backoff_due_ms: when the first of `backoff` comes up, by the monotonic clock.
        delivery_due_ms: when the first of `delivery` does, by the wall clock.
        leased: records that members hold.
        kept: those of them whose lock was started anew, as their member is connected.
        is_full: no new records come into the window.
        is_in_line: whatever is not leased waits until all that is leased has come back.
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
    def is_full(self) -> bool: ...
    @property
    def is_in_line(self) -> bool: ...
    @property
    def keys(self) -> tuple[int, int, list[tuple[int, int, int]]] | None: ...

@disjoint_base
class LogOffsets:
    """Where a log begins and ends; see `sharecore.storage.Log`.

    Attributes:
        start_offset: first offset that may be read.
        high_watermark: end of what is durable, and so of what may be read.
        last_stable_offset: end of what is durable and belongs to no open transaction.
        end_offset: offset of the next record, writes under way counted.
    """

    start_offset: int
    high_watermark: int
    last_stable_offset: int
    end_offset: int

    def __new__(cls, *_args: Any, **_rest: Any) -> Self: ...

@final
class ExpandedCache:
    """Expanded record batches of all logs, those forgotten first that were not wanted for longest.

    Args:
        bytes_max: how many bytes they may take.
    """

    def __new__(cls, bytes_max: int) -> Self: ...
    @property
    def bytes(self) -> int:
        """Their size."""

@disjoint_base
class LogAccess:
    """How the records of a log are acquired; see `sharecore.partition.leasing.Leasing`, which has `read`,
    `aborted` and `reading_bytes`.

    Attributes:
        stored: where the log may be read without a call of `read`.
        read_committed: whether `aborted` names what is archived instead.
        expanded: where expanded batches are kept; None where nothing is left out of answers.
    """

    stored: StoredLog | None
    read_committed: bool
    expanded: ExpandedCache | None

    def __new__(cls, *_args: Any, **_rest: Any) -> Self: ...

@disjoint_base
class Leader:
    """What fetches and acknowledgements ask of a share partition again and again; see
    `sharecore.partition.SharePartition`.

    A subclass has `key`, `_persister`, `_call_later`, `_check_engine`, `_not_written`, `_persist_start`,
    `_send` and `_expire`.

    Attributes:
        engine: None while the state is not loaded.
        error: why there is none.
        id: topic id and partition index.
        resting: whether nothing is leased at the moment.
        used_ms: when records were last leased or acknowledged.
        bounds: what the group may be given; None without such bounds.
        log: what is acquired from.
        leasing: how it is read.
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
        """Changes that are not durable yet."""

    @property
    def _interested(self) -> list[ShareSession]:
        """Sessions to notify once when records may be available, longest waiting first."""

    @property
    def _told(self) -> list[ShareSession]:
        """Sessions to notify when the leader ends: waiting ones, and others after them."""

    def _take_told(self) -> list[ShareSession]:
        """Take out and return the sessions to notify when the leader ends."""

    def wake(self) -> None:
        """Notify interested sessions, longest waiting first, until no record is left to acquire."""

    def _freed(self) -> None:
        """Let fetches held back by their bounds look again, as members may hold less than before."""

    def _log_advanced(self, log: Any) -> None:
        """Handle a log that has grown or has another start."""

    @property
    def readable_end(self) -> int:
        """The offset before which records may be delivered."""

    @property
    def fetchable(self) -> bool:
        """Whether a fetch may find something to acquire now."""

    def acknowledge(
        self, member: str, batches: Sequence[tuple[int, int, bytes]], done: Callable[..., None]
    ) -> None:
        """Acknowledge, release or renew acquired records; `done` is called once that is durable.

        Args:
            batches: first offset, last offset, acknowledge types: one for all, or one an offset.

        Raises:
            KafkaError: INVALID_RECORD_STATE or INVALID_REQUEST; nothing has changed then but the locks that
                were renewed in front of what was refused.
        """

    def _persist(self, write: Write | None, done: Callable[..., None] | None = None) -> None:
        """Persist a started change; do nothing for None."""

    def _arm(self, due_ms: int) -> None:
        """Schedule `_expire` no later than `due_ms`."""

    def _rearm(self) -> None:
        """Schedule `_expire` for the next lease expiry, unless it is scheduled."""

    def _send_letters(self) -> None:
        """Send the dead letters that have become due."""

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
        """Return the present configuration of a group; `_group_config` of the subclass tells it."""

    def _let_go(self, leader: Leader) -> None:
        """Forget a leader that has ended."""

    def peek(self, group_id: str, topic_id: UUID, partition: int) -> Any:
        """Return the leader of a share partition where there is one, else None."""

@disjoint_base
class Sessions:
    """Share sessions; see `sharecore.session.ShareSessionCache`, which has `_check_identity`."""

    def __new__(cls, *args: Any, **rest: Any) -> Self: ...
    @property
    def _sessions(self) -> dict[tuple[str | None, str | None], ShareSession]:
        """Sessions by group and member."""

    def resume(self, group_id: str | None, member_id: str | None, epoch: int) -> ShareSession:
        """Return the member's session, for a request with an epoch other than 0; its epoch moves on by one.

        The request may come over any connection; the session still ends with the one that it was opened
        over. With the final epoch (-1) the session is given as it is: the caller closes it once its
        acknowledgements are in.

        Raises:
            KafkaError: INVALID_REQUEST for an unusable group or member id; SHARE_SESSION_NOT_FOUND;
                INVALID_SHARE_SESSION_EPOCH when the epoch is not the one expected.
        """

@final
class ShareSession:
    """What one member of one group fetches, those of its partitions that a fetch looks at, and the fetches
    that wait.

    One that a fetch finds empty is not ready any more, and its leader is asked to tell, once, when that may
    have changed. So a fetch costs by what it looks at, not by what the session has.

    Args:
        connection: the one that it was opened over, and ends with.

    Attributes:
        epoch: the one that the next request must bring.
        fetches: those whose answer is not known yet; `abandon` of each is called when the session ends.
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
        """Group id and member id, by which a session is found."""
    @property
    def partitions(self) -> list[tuple[UUID, int]]:
        """In the order in which they were added, or last brought records."""
    @property
    def held(self) -> list[tuple[UUID, int]]:
        """Partitions whose records are released when the session ends, in their order. As in Apache Kafka's
        broker, what was leased of others, forgotten or of a session before, stays with the member until its
        lock runs out.
        """
    @property
    def unreported(self) -> list[tuple[UUID, int]]:
        """Partitions of which no answer has told yet that they can be fetched: those that were added, and
        those whose last answer was an error.
        """
    @property
    def unknown(self) -> set[tuple[UUID, int]]:
        """Those without a leader that is loaded; each fetch tries them again."""
    @property
    def waiting(self) -> bool:
        """Whether a fetch waits for what leaders tell."""
    def add(self, partitions: Iterable[tuple[UUID, int]]) -> None:
        """Put partitions into the session; those that are in it keep their place."""
    def forget(self, partitions: Iterable[tuple[UUID, int]]) -> None:
        """Take partitions out of the session; unknown ones are passed over."""
    def rotation(self) -> int:
        """Return the place at which this request begins to serve. It moves by one partition a request, as
        with Kafka, so that a busy partition cannot keep the others from being served.
        """
    def in_order(self, partitions: Iterable[tuple[UUID, int]], first: int) -> list[tuple[UUID, int]]:
        """Partitions in the order in which a request serves them that begins at the place `first`; those that
        are not in the session (any more) are left out.
        """
    def report(
        self,
        partitions: Iterable[tuple[UUID, int]],
        failed: Iterable[tuple[UUID, int]],
        served: Iterable[tuple[UUID, int]],
    ) -> None:
        """Note which partitions an answer names.

        The first answer of a session is expected to name each partition that can be fetched, and so is the
        first after a partition was added or had an error; later ones name partitions with records alone.

        Args:
            failed: those of them that it names with an error.
            served: those of them of which it brings records; from the second answer on they go behind the
                others, as with Kafka.
        """
    @property
    def partition_count(self) -> int:
        """Number of partitions."""
    def touch(self, partition: tuple[UUID, int]) -> None:
        """Note that the member has leased records of a partition."""
    def replace(self, before: ShareSession) -> None:
        """The session takes the place of another one of its member, who holds what it held."""
    def walk(self, first: int) -> list[Any]:
        """Return the leaders of what is ready, from a place on and round."""
    def failed(self, leader: Leader) -> None:
        """A partition's leader has ended."""
    def close(self) -> None:
        """The session has ended: its fetches are abandoned, and no leader tells any more."""

@disjoint_base
class States:
    """States of share partitions; see `sharecore.sharestate.coordinator.ShareCoordinator`.

    A subclass has `_find_shard`, `_check_epochs`, `_runtime`, `_clock` and `_updates_per_snapshot`.
    """

    _routes: dict[Any, Any]

    def __new__(cls, *args: Any, **rest: Any) -> Self: ...
    def _shard(self, key: Any) -> Any:
        """Return the shard that holds the state of a share partition, loaded.

        Raises:
            KafkaError: it is not this broker's, or why it cannot be loaded.
        """

    def _writable(self, shard: Any, key: Any, state_epoch: int, leader_epoch: int) -> Any:
        """Return the state for a writer that nobody has superseded.

        Raises:
            KafkaError: INVALID_REQUEST where there is none; FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH.
        """

    def write_begun(
        self, key: Any, state_epoch: int, leader_epoch: int, write: Write, done: Callable[..., None]
    ) -> None:
        """Write a change that an engine of this process has begun.

        No state is written for records that need none: the start offset passes what is settled and touches
        it. So a consumer that accepts in order costs one small record a request.

        Raises:
            KafkaError: as `ShareCoordinator.write`.
        """

@final
class PartitionFetch:
    """Records acquired by a fetch from one share partition."""

    @property
    def partition(self) -> Any:
        """Its leader."""
    @property
    def records(self) -> bytes:
        """The record batches that hold what was leased."""
    @property
    def acquired(self) -> list[_Three]:
        """First offset, last offset, delivery count."""
    @property
    def error(self) -> KafkaError | None:
        """Why there is nothing."""

@final
class ShareLook:
    """A share fetch over the ready partitions of a session, from a position on.

    Split max_bytes evenly over the first max_records fetchable partitions, and the rest over the others. The
    first partition returns at least one batch, whatever its size.

    Args:
        found: leaders of partitions that the session does not know yet.
        batch_size: after how many offsets new records start another batch.
        record_limit: never more than `max_records`.
        hidden: partitions that it must not look at.
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
        """Load leaders and look; return None if the fetch must wait."""

@final
class Timeouts:
    """When the time of fetches that wait is over; one timer serves all of them.

    Args:
        now_ms: milliseconds that never go backwards.
        call_later: calls back after so many seconds.
    """

    def __new__(cls, now_ms: Callable[[], int], call_later: Callable[..., Any]) -> Self: ...
    def _over(self) -> None:
        """The time of some may be over."""

@final
class WaitingShareFetch:
    """Gathers records for one member once there are enough.

    It ends when at least `min_bytes` were acquired, when a partition that it waits for has failed, or when
    its time is over; nothing is acquired before that, so that no lease runs while the client waits. Records
    that have to be read from the disk first are waited for, whatever the time.

    Args:
        look: where it looks, and has found nothing; what becomes ready in its session meanwhile is looked at,
            too.
        ended: called once with what was acquired.
    """

    def __new__(cls, look: ShareLook, timeouts: Timeouts, ended: Any) -> Self: ...
    @property
    def waiting(self) -> bool: ...
    def wait(self, max_wait_ms: int) -> None:
        """Start waiting."""
    def again(self) -> bool:
        """Look again; say whether the fetch waits no longer."""
    def end(self, fetched: list[PartitionFetch]) -> None:
        """Answer a waiting fetch; do nothing if it was answered."""
    def cancel(self) -> None:
        """Wait no longer, and is not answered."""
    def _loaded(self) -> None: ...
    def _look_at_loaded(self) -> None: ...

@final
class ShareFetching:
    """A ShareFetch on its way; who waits for what may `abandon` it."""

    def abandon(self) -> None:
        """Acquires nothing any more, and is answered with what it has."""

@disjoint_base
class ShareFetch:
    """Handles ShareFetch requests: `Dispatch` reads them for it.

    A subclass has `_open`, `_refuse` and `_sift` (see `sharecore.broker.handlers.share.records`).

    Args:
        check: raises `KafkaError` unless the client of a context may be a member of a group.
        may_read: whether the client of a context may read a topic; asked where there is an authorizer.
    """

    def __new__(
        cls, check: Callable[[Any, str], object], may_read: Callable[[Any, UUID], bool], *_args: Any
    ) -> Self: ...

def call_by_name(on: bool) -> None:
    """Has methods of Python's classes looked up where the compiled part would call its own, or not any more:
    for tests that put others in their place. Published wheels do not have it.
    """

def plant_bug(name: str | None = None) -> None:
    """Plant a bug in every share partition of this process, or take it away: for tests that have to find it.
    Published wheels do not have it.

    Raises:
        ValueError: there is no such bug.
    """

def next_epoch(epoch: int) -> int:
    """Return the epoch that follows; past the largest int32 comes 1, since 0 would open a new session."""
@final
class Produced:
    """The answer to a Produce request."""

    def throttled(self, throttle_time_ms: int) -> Produced:
        """Return the same answer, which says how long the client has to wait."""

@disjoint_base
class Exchange:
    """The way of requests on one connection: bytes become frames, these are handed on one by one, and their
    answers leave in the same order; those that are ready at once are written together.

    Reading stops while a request cannot be handed on, while there is no room for the next one, and while the
    client does not read. A large answer is sent by parts, a turn of the event loop each. A
    subclass is the protocol of a transport, and has `close(reason)`, `_pump_soon()`, `_send_soon()`, and
    `_wait_for_room()`.

    Args:
        server: `on_frame`, `now`, `budget`, `answers`, `scratch` and `limits` are taken from it.
    """

    on_frame: Callable[[Any, bytes], list[bytes] | Pending | None]
    """What frames go to, called with the connection; another handler stands here until the client has said
    who it is. It may raise `Disconnect`."""
    closed: bool
    frame_bytes_max: int
    """A frame that claims to be larger closes the connection."""
    _transport: Any

    def __new__(cls, server: Any, *args: Any, **rest: Any) -> Self: ...
    @property
    def owner(self) -> str:
        """Owner of the client's memory budget."""

    @property
    def held_bytes(self) -> int:
        """Bytes of this client's requests that count in the budget."""

    @property
    def partial(self) -> tuple[int, int] | None:
        """Of the request that is being read: bytes that are there, and bytes that are to come."""

    @property
    def waits_since(self) -> tuple[float, bool, int] | None:
        """Of a large request that waits for its answer: since when, whether it is set aside, its bytes."""

    @property
    def unread_bytes(self) -> int:
        """Bytes of answers that the client has not read yet, as they were last counted."""

    @property
    def has_asked(self) -> bool:
        """Whether the client has ever sent a whole request."""

    @property
    def in_flight(self) -> int:
        """Requests that were handed on and are not answered yet."""

    def idle_since(self) -> float | None:
        """Return the moment of the last byte in either direction, or None while a request waits for its
        answer.
        """

    def enter(self, budget: MemoryBudget, owner: str) -> None:
        """From now on the client takes its memory of `budget`, and as `owner`."""

    def answer_room(self) -> int:
        """Bytes of records that the next answer may carry; 0 where it has to wait for clients to read."""

    def hold_answer_bytes(self, change: int) -> None:
        """Count bytes more, or fewer, as unread: those of answers that are not made yet."""

    def when_answer_room(self, room: Callable[[], object]) -> None:
        """Call back when there is room for an answer."""

    def get_buffer(self, _size_hint: int) -> memoryview: ...
    def buffer_updated(self, count: int) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def _pump(self) -> None:
        """Dispatch requests that have been read, within the pipeline limit."""

    def _send(self) -> None:
        """Send the next part of an answer, unless the client does not read."""

    def _send_rest(self) -> None:
        """Send all that is left of answers."""

    def _pause(self, reason: int) -> None: ...
    def _resume(self, reason: int) -> None: ...
    def _recount(self) -> None:
        """Count anew what the client has not read."""

    def _readers_have_read(self) -> None:
        """There is room for the next answer."""

    def _drop_backlog(self) -> None:
        """Drop requests that were read but not dispatched."""

    def _end(self) -> list[Any]:
        """The client has gone: gives back what is held, and return the futures that nobody waits
        for.
        """

@disjoint_base
class Later:
    """An answer that is not known yet; see `sharecore.waiting.Later`."""

    def __new__(cls) -> Self: ...
    def done(self) -> bool:
        """Whether the answer is known, or will never be."""

    def cancelled(self) -> bool:
        """Whether the caller has cancelled it."""

    def exception(self) -> BaseException | None:
        """Why there is no answer; None where there is one."""

    def result(self) -> Any:
        """Return the answer; raise what there is instead."""

    def set_result(self, value: Any) -> None:
        """The answer is there."""

    def set_exception(self, error: BaseException) -> None:
        """There will be none."""

    def cancel(self) -> bool:
        """Nobody wants it any more; says whether it was still to come."""

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call back with this object when it is done, at once when it is."""

@disjoint_base
class Ticket:
    """One write on its way to the disk; see `sharecore.storage.Ticket`."""

    def __new__(cls, sequence: int) -> Self: ...
    @property
    def sequence(self) -> int: ...
    @property
    def error(self) -> KafkaError | None:
        """Why the write failed; None when it has not."""

    def done(self) -> bool:
        """Whether it is known how the write ended."""

    def exception(self) -> KafkaError | None:
        """Alias of `error`."""

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call back with this object once the write has ended, at once when it has."""

    def settle(self, error: KafkaError | None = None) -> None:
        """End the write; for the storage alone. A callback that raises is logged and holds up no other."""

@final
class Tickets(Generic[_Ticket]):
    """What waits for the writes of one store, in their order.

    Args:
        made: a kind of `Ticket`, of which there are some for those who ask.
        ended: the writes up to this one count as done.
    """

    def __new__(cls, made: Callable[[int], _Ticket], ended: int = 0) -> Self: ...
    def ticket(self, sequence: int) -> _Ticket:
        """Return the ticket of a write; of one that has ended one that is done."""
    @property
    def newest(self) -> int | None:
        """The newest write with a waiting caller."""
    def end(self, sequence: int, error: KafkaError | None) -> None:
        """The writes up to this one have ended; for the storage alone."""

@final
class StoredLog:
    """A log of a store.

    Args:
        id: of the log, there.
        tickets: of that store.
        threads: `DiskReads`, which hears when a thread of the store has done its work.
    """

    def __new__(cls, store: Store, id: int, tickets: Tickets[Any], threads: Any) -> Self: ...
    def hurry(self) -> None:
        """Commit lingering writes of the store at once."""

@disjoint_base
class Gather:
    """Operations that end through callbacks, and what they have ended with; see `sharecore.waiting.Gather`.

    Args:
        names: of operations that are known beforehand, in the order of the outcomes.
    """

    def __new__(cls, names: Iterable[Any] | None = None) -> Self: ...
    @property
    def outcomes(self) -> dict[Any, Any]:
        """Outcome of each operation's callback; None for a pending one."""

    @property
    def pending(self) -> bool:
        """Whether some have not ended yet."""

    def part(self, name: Any) -> Callable[..., None]:
        """Return what the operation of that name calls when it ends; later calls are passed over."""

    def run(self, name: Any, operation: Callable[..., object], *args: Any) -> None:
        """Start an operation; its last argument is the callback. A KafkaError becomes its outcome."""

    def put(self, name: Any, outcome: Any) -> None:
        """Set an outcome that is known."""

    def when_ended(self, then: Callable[[], object]) -> None:
        """Call back when all of them have ended, at once when they have."""

    def promise(self, later: Later, answer: Callable[[], object]) -> None:
        """Complete `later` with the result of `answer` once all have ended, unless it was cancelled."""

def settle(callbacks: Iterable[Callable[..., object]], *outcome: Any) -> None:
    """Call each callback; one that raises is logged, and the others are called all the same."""
@final
class StagedBatch:
    """Records that go out together, and who waits for them."""

    @property
    def producer(self) -> tuple[int, int] | None:
        """Producer of its transaction."""
    @property
    def records(self) -> list[tuple[bytes, bytes | None]]: ...
    def wait(self, done: Callable[..., object]) -> None:
        """Call back when the batch ends."""
    def __call__(self, ticket: Any) -> None:
        """An append of it has ended."""

@disjoint_base
class Staging:
    """Records on their way into a partition of a coordinator's topic; see
    `sharecore.coordinator_log.StagedLog`, which has `_mend`, `_cut` and `_time_is_over`.
    """

    stale: bool
    """Whether memory is ahead of the log."""

    def note_move(self) -> None:
        """Note that something in memory is gone, or lies elsewhere: leaders look for their state again."""

    def __new__(
        cls,
        log: Any,
        timers: Any,
        write_timeout_ms: int,
        *,
        monotonic_ms: Callable[[], int],
        sent: Callable[[], object],
        writes: Any,
        **_rest: Any,
    ) -> Self: ...
    @property
    def log(self) -> Any: ...
    @property
    def _staged(self) -> list[StagedBatch]: ...
    @property
    def _sent(self) -> list[StagedBatch]:
        """Those that are under way."""
    @property
    def _lost(self) -> list[StagedBatch]:
        """Those that were not written, and what waits behind them."""
    @property
    def _oldest(self) -> StagedBatch | None:
        """The first of those that are not answered."""
    def _overdue(self, now_ms: int) -> StagedBatch | None:
        """Return the first of those that are not answered, where its time is over."""
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
        """Stages records.

        Args:
            now_ms: timestamp of the batch.
            done: called when all of them are durable, when they are lost, or when the time-out is over.
            ended: called before `done` when they are durable or lost, whether or not there was a time-out.
            placed: called with the offset of the first of them, once it is known; again when a second
                attempt gave them another.
            producer: of the transaction that they are part of.
        """
    def flush(self) -> None:
        """Append staged records, unless an earlier write has failed and will be retried."""
    def _try_again(self) -> None:
        """Send what was lost once more, in its order."""
    def _abandon(self) -> list[StagedBatch]:
        """Take out failed records and those staged after them: none of them is written."""
    def _abandon_transactions(self) -> list[StagedBatch]:
        """Take out batches of transactions that are lost, or wait behind what is lost."""
    def _end(self, batch: StagedBatch, error: KafkaError | None) -> None:
        """Call those who follow the end of a batch, then those who wait for an answer."""
    def _arm(self, now_ms: int) -> None:
        """Schedule `_time_is_over` for the oldest pending write."""
    def _settle(self, batch: StagedBatch, error: KafkaError | None) -> None:
        """Complete a batch for its waiting callers."""

@final
class Write:
    """State that has begun to change and waits for the persister."""

    @property
    def id(self) -> int:
        """Names the write in `Partition.commit` and `Partition.rollback`."""
    @property
    def start_offset(self) -> int:
        """The start offset from before the operation."""
    @property
    def delivery_complete_count(self) -> int:
        """Settled records at or behind the start offset (KIP-1226)."""
    def batches(self) -> list[_Four]:
        """Return what changed: (first offset, last offset, state, delivery count), equal neighbours
        joined.
        """

@final
class Rules:
    """When the records of a share partition come, and come again.

    With rules the in-flight limit of a partition counts what is leased.

    Args:
        backoff_ms: how long a record waits before its second delivery.
        backoff_max_ms: the longest wait, to which jitter is added.
        multiplier: how much longer each wait is than the one before.
        jitter: a wait is longer by up to this part of it.
        on_release: whether records wait that a member releases.
        on_timeout: whether records wait whose lock ran out.
        max_waiting: how many records may be in the window that are neither leased nor settled.
        ordering: "none"; "partition": one member at a time has records, the next ones in their order; "key":
            that for the records of each key.
        run_max: so many records may be leased together that an order lets have one after the other.
        deliver_at_header: name of the header with the time before which a record is not delivered, in
            milliseconds since the epoch; empty: none.
        ttl_ms: a record that is older is given up; None: no record.
        ttl_header: name of the header with a record's own time to live; empty: none.
        expired_letters: whether expired records get a dead letter, if the partition has dead letters.
        key_header: the key is the value of this header; empty: the record's own.

    Raises:
        ValueError: a number out of bounds, or an ordering that there is not.
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
        """Whether records have delivery times, expire, or are ordered by key: they are looked at before they
        are acquired.
        """
    def looks_otherwise(self, before: Rules) -> bool:
        """Whether records have to be looked at anew where these rules follow others."""
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
        """How long records wait from an offset on that were delivered so often."""

@final
class Partition:
    """The in-flight state of one share partition (KIP-932).

    Time is an argument in milliseconds and must not go backwards. A refused request raises
    `sharecore.errors.KafkaError` and changes nothing, save that renewals in front of what was refused stand.
    Safe to use from several threads. UNKNOWN_SERVER_ERROR from any call or property means that the engine
    failed, now or in an earlier call; such a partition is of no more use and is to be loaded anew.

    Args:
        start_offset: the persisted start offset.
        state_batches: persisted state, as (first offset, last offset, state, delivery count).
        max_delivery_count: how often a record is delivered before it is archived.
        max_inflight: how many offsets may be in flight.
        lock_ms: how long an acquisition lock lasts.
        renew_enabled: whether members may renew their locks.
        dead_letters: whether what is rejected or given up waits for a dead letter (KIP-1191) before it is
            archived.

    Raises:
        ValueError: a limit that is not positive, or a number that is no record state.
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
            now_ms: the locks run out `lock_ms` from here.
            member: who gets the records.
            batches: (base offset, last offset) of the record batches, ascending.
            fetch_offset: where the log was read from.
            max_fetch_records: how many records are wanted; whole record batches unless `record_limit`.
            batch_size: after how many offsets new records start another batch, at an edge of a record batch.
            record_limit: never more than `max_fetch_records`.

        Returns:
            (first offset, last offset, delivery count) in order; empty when nothing can be had.
        """
    def acknowledge(
        self, now_ms: int, member: str, batches: Sequence[tuple[int, int, bytes]]
    ) -> Write | None:
        """Acknowledge, release or renew records of `member`; a refusal leaves only earlier renewals.

        Args:
            batches: (first offset, last offset, acknowledge types); one type for all or one an offset.

        Returns:
            What must be made durable, or None.

        Raises:
            KafkaError: INVALID_RECORD_STATE, INVALID_REQUEST.
        """
    def held_by(self, member: str) -> int:
        """Number of offsets held by a member, including pending acknowledgements."""

    def running_out(self, now_ms: int) -> list[str]:
        """Return the members whose locks have run out, each once, in order."""
    def keep_locks(self, now_ms: int, members: Sequence[str], max_ms: int) -> None:
        """Start the locks of members anew that have run out, so that `advance` leaves them.

        A lock goes on until `max_ms` after its records were delivered, or after their member has renewed them
        last; the delivery count stays. Nothing is persisted.
        """
    def release(self, now_ms: int, member: str) -> Write | None:
        """Releases all that a member holds, because its session closed."""
    def advance(self, now_ms: int, wall_ms: int = 0) -> Write | None:
        """Free the records whose lock has run out; they are free whether the write succeeds or not.

        Records come up whose delivery time has come, and those are given up that have expired, by `wall_ms`,
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
        """Take in record batches that the log returned for a read from `fetch_offset` on, with the times and
        keys of their records; without rules that look at records nothing.

        Args:
            now_ms: monotonic.
            wall_ms: milliseconds since the epoch.
            fetch_offset: `next_admission`, or less.
            batches: (base offset, last offset) of the record batches, ascending.
            entries: (offset, delivery time or None, when it expires or None, what stands for its key or 0),
                ascending. Offsets up to the next entry go with it.
            batch_size: after how many offsets another batch begins, at an edge of a record batch.

        Returns:
            Whether they follow what has been looked at; else nothing is taken in.
        """
    @property
    def next_admission(self) -> int | None:
        """Where to read the log for unexamined records; None without capacity."""
    @property
    def next_wall_ms(self) -> int | None:
        """When, in milliseconds since the epoch, `advance` has something to do."""
    def keys(self, limit: int) -> tuple[int, int, list[tuple[int, int, int]]] | None:
        """Return how many records come after others of their key and wait for nothing else, how many keys
        there are, and (digest, records, first) of those with the most; None without an order by key.
        """
    def waiting_reasons(self, limit: int) -> WaitingReasons:
        """Return why records do not come, with the `limit` keys that have the most."""
    def looked_at(self) -> tuple[int, int, int, int]:
        """Count expired records, headers that are no number, batches that could not be expanded, and the
        bytes that answers left out.
        """
    def move_log_start(self, now_ms: int, offset: int) -> None:
        """The log now starts at `offset`; there is nothing to persist, it goes with the next write."""
    def archive(self, now_ms: int, first: int, last: int) -> None:
        """Archive offsets without a record for this group: aborted transactions, control records."""
    def pass_hole(self, now_ms: int, first: int, last: int) -> None:
        """The log holds nothing from `first` to `last`, as a fetch from `first` has shown: what is available
        there is archived, and the start offset passes. There is nothing to persist, it goes with the next
        write."""
    def can_acquire_before(self, end: int) -> bool:
        """Whether something in front of an offset can be leased, as far as it is known without the log."""
    def take_dead_letters(self) -> list[tuple[int, int, int, int]]:
        """Return the dead letters that became due since the last call, in due order.

        Returns:
            (first offset, last offset, delivery count, cause): 0 for their delivery limit, 1 for a member
            that rejected them, 2 for their time to live. Loaded state does not tell: 0 or 1 is guessed by the
            delivery count.
        """
    def finish_archiving(self, now_ms: int, first: int, last: int) -> Write | None:
        """The letters of first to last are written, or never will be: what waited for them is
        archived.

        It stays archived whether the write succeeds or not.
        """
    def commit(self, write_id: int, now_ms: int) -> None:
        """The write is durable."""
    def rollback(self, write_id: int, now_ms: int) -> None:
        """The write failed: its records are leased as before, or free where their lock has run out."""
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
        """Change when records come again; what waits keeps its time, and wait no longer without rules."""
    def waiting(self) -> tuple[int, bool]:
        """How many records wait, and whether the window takes no new ones because of what waits in it."""
    @property
    def has_rules(self) -> bool: ...
    @property
    def next_time_ms(self) -> int | None:
        """When `advance` has something to do: a lock runs out, or records have waited long enough."""
    def batch_end(self, offset: int) -> int:
        """Return the last offset of what `offset` was acquired together with; itself where it is not in
        flight.
        """
    def is_slow(self, offset: int) -> bool:
        """Whether what a fetch from `offset` on gets next is near its delivery limit, or in one batch with
        what is: a fetch that has something already leaves it, and one that begins with it goes no further.
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
        """For metrics, in one call: start offset, end offset, in flight, delivery complete count, next
        deadline, records whose lock ran out; records acknowledged by type (gap, accept, release, reject,
        renew); records leased by delivery count, from 1 on, 16 and above as one. Counted since the partition
        was made."""
    def inflight(self) -> list[_Four]:
        """Return the records from the start offset on, as (first offset, last offset, state, delivery
        count).
        """
    def leases(self) -> list[tuple[int, int, str, int | None]]:
        """Return what members hold from the start offset on, as (first offset, last offset, member,
        deadline).

        While a write of what a member asked for is open, the records are still its own. The deadline is None
        where the lock has run out meanwhile.
        """
    def check(self) -> None:
        """Check every invariant; linear in the window. Raises AssertionError."""
    def fail(self) -> None:
        """Fails as a defect would have it, for tests: raises KafkaError, as every later call does. Published
        wheels do not have it.
        """

_K = TypeVar("_K", default=Any)
_V = TypeVar("_V", default=Any)

@final
class Record(Generic[_K, _V]):
    """One record: what a consumer acquired, or what an application made to test a handler with.

    Immutable, safe to hand to other threads. Two are equal when all but the lease is. One that an application
    made, or that came out of a pickle, belongs to no consumer: it cannot be acknowledged, leased or renewed.
    `Record[bytes, Order]` says what key and value are to type checkers.

    Args:
        timestamp, leader_epoch: -1, for none, unless given.
        serialized_key_size, serialized_value_size: the length of a key or value that is bytes, -1 for others,
            unless given.

    Raises:
        ValueError: there is no such timestamp type.
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
        """0 for the producer's clock, 1 for the broker's at the append."""
    @property
    def key(self) -> _K:
        """Bytes, or what the key deserializer made of them; None when the record has none."""
    @property
    def value(self) -> _V:
        """Bytes, or what the value deserializer made of them; None when the record has none."""
    @property
    def serialized_key_size(self) -> int:
        """Bytes of the key as it came, whatever a deserializer made of it; -1 without a key."""
    @property
    def serialized_value_size(self) -> int:
        """Bytes of the value as it came, whatever a deserializer made of it; -1 without a value."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """In the order in which the producer wrote them; a new list each time."""
    @property
    def delivery_count(self) -> int:
        """How often the record was delivered, this time included: 1 the first time."""
    @property
    def leader_epoch(self) -> int:
        """Epoch of the leader that wrote the record."""
    @property
    def lease(self) -> Any:
        """The object given to `decode_records`: what the record was acquired with; None without one."""
    @property
    def position(self) -> int:
        """The record's place among the acquired offsets, counted from 0 over all ranges."""
    def replace(self, key: Any, value: Any) -> Record:
        """Return the same record with another key and value."""
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
        records: record batches v2, of which the last may be cut off; what was not acquired is left out.
        acquired: (first offset, last offset, delivery count), ascending.
        topic, partition, lease: go into every record.
        expanded_bytes_max: bound of all decompressed bytes together.

    Returns:
        The records, and the acquired offsets for which there is none, as (first, last): those that the log
        does not have (gaps), those of a batch that was cut off, and those of batches that cannot be read,
        with the reason.

    Raises:
        ValueError: ranges that overlap, do not ascend or are without bound.
    """

def decode_columns(
    records: bytes, ranges: Sequence[_Three], *, headers: bool = True, expanded_bytes_max: int = 1073741824
) -> tuple[int, list[_Column], int | None, list[_Unread]]:
    """Record as buffers in Arrow's layout.

    Args:
        records: record batches v2; a last one that is cut off is left out.
        ranges: (first offset, last offset, number), ascending, without overlap; what lies outside is left
            out.
        headers: whether to read the headers.
        expanded_bytes_max: bound of all decompressed bytes together, at most 2 GiB.

    Returns:
        The number of rows; (nulls, buffer) in the order key (validity, offsets, bytes), value (the same),
        offset (int64), timestamp (int64, microseconds), timestamp type (int32), the range's number (int32),
        and with headers: list (validity, offsets), names (offsets, bytes), contents (validity, offsets,
        bytes), a validity without nulls being None; the offset behind the last whole batch, None when there
        is none; and the batches that cannot be read, as (first, last, reason).

    Raises:
        ValueError: ranges that overlap or do not ascend.
    """

def damaged_batches(records: bytes, ranges: Sequence[tuple[int, int]]) -> list[_Unread]:
    """Batches with an offset in the ascending ranges and a wrong format or checksum: first, last, why."""

def encode_batch(
    records: Sequence[tuple[bytes | None, bytes | None]],
    *,
    now_ms: int,
    producer: tuple[int, int, int] | None = None,
) -> bytes:
    """One uncompressed record batch of keys and values, at offset 0 and in no transaction.

    Args:
        now_ms: the timestamp of all of them.
        producer: id, epoch and sequence number of the first record, of an idempotent producer.

    Raises ValueError: there are no records.
    """

def encode_records(
    records: Sequence[tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]], now_ms: int
) -> bytes:
    """Return the same of keys, values and headers, by no producer in particular."""

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
    """Record of `__share_group_state` as buffers in Arrow's layout, a row a record.

    Args:
        records: record batches v2; a last one that is cut off is left out.
        first, end: offset from which on records count, and the one behind the last that does.
        position: of the first batch in `records`.
        rows_max: after the batch with which there are so many rows, nothing more is read; nor after 64 MiB of
            rows.
        keep_unreadable: whether what cannot be read becomes a row that says why.
        group: only records of this share group.
        expanded_bytes_max: what a batch may expand to, at most 128 MiB.

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
        ValueError: the position lies behind the end, or a limit is too high.
    """
@final
class StateContent:
    """What the records of one share partition say; without any, snapshot epoch and start offset are -1."""

    def __new__(cls) -> Self: ...
    def replay_snapshot(self, value: bytes) -> None:
        """Apply the value of a ShareSnapshot record; raise ValueError for one that is damaged, which
        changes nothing.
        """

    def replay_update(self, value: bytes) -> None:
        """Apply the value of a ShareUpdate record; raise as `replay_snapshot`."""

    def batches(self) -> bytes:
        """State batches from the start offset on, packed, ascending, apart."""

    @property
    def snapshot_epoch(self) -> int: ...
    @property
    def state_epoch(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def fence_epoch(self) -> int:
        """The highest leader epoch that was ever seen."""

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
        """Begins the state anew at a start offset (-1: not known yet); returns the value of the ShareSnapshot
        to append. Only a snapshot that is due begins the count of updates anew.
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
        """Apply a change. The start offset never falls, nor does the count while it stays.

        Args:
            batches: packed, ascending, apart, none below the start offset.
            leader_epoch: a higher one than before; None leaves it.

        Returns:
            Whether the record to append is a snapshot, since so many updates stand since the last one, and
            its value.

        Raises:
            ValueError: `batches` are no state batches.
        """

    def write_begun(self, write: Write, now_ms: int, updates_per_snapshot: int) -> tuple[bool, bytes]:
        """As `write`, for a change that an engine has begun. The start offset passes the acknowledged batches
        that touch it: these need no state any more.
        """

    def snapshot(self, now_ms: int, create_ms: int) -> bytes:
        """Return the value of the ShareSnapshot that makes all earlier records redundant."""

    def is_superseded(self, state_epoch: int, leader_epoch: int) -> bool:
        """Whether a higher epoch than one of these has been seen; -1 is not looked at."""

@final
class StateFold:
    """Folds the records of one partition of `__share_group_state` into the states that hold in the end."""

    def __new__(cls) -> Self: ...
    def take(self, offset: int, key: bytes | None, value: bytes | None) -> str | None:
        """Take a record, in the order of offsets.

        Returns:
            None, or why it was passed over: a type that is not known, an update without a snapshot.

        Raises:
            ValueError: the record is damaged; what was taken before stands.
        """

    @property
    def repaired(self) -> int:
        """Number of invalid state batches so far, whose records are redelivered."""
    def states(self) -> list[tuple[bytes, int, StateContent]]:
        """Return a copy of each state with what follows the type in its records' keys, and the offset of its
        last snapshot.
        """

    def waiting(self, deliveries: int) -> list[tuple[bytes, int]]:
        """How many records were delivered so often and wait to be delivered again, by what follows the type
        in the keys of those states that have some.

        Raises:
            OverflowError: a number below zero or above 2^32 - 1.
        """

    def state(self, key: bytes) -> StateContent | None:
        """Return a copy of one state, by what follows the type in its records' keys."""

    def drain(self) -> list[tuple[bytes, int, StateContent]]:
        """As `states`, but takes them out."""

@final
class ShareStateFold:
    """Folds the records of one partition of `__share_group_state` into the states that hold in the end.

    Args:
        first, end, group, expanded_bytes_max: as in `decode_share_state`.
        unreadable_max: how many things that cannot be read become rows; None for none.

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
        """Take the whole record batches at the front, in the order of their offsets.

        Returns:
            The offset behind them, None when there is none; the first thing that could not be read so far.
        """

    def drain(
        self, rows_max: int = 16384
    ) -> tuple[tuple[int, list[tuple[int, bytes | None]]], tuple[int, str] | None]:
        """Return the next rows, as `decode_share_state` gives them, ordered by share partition; none at the
        end.

        Returns:
            Rows, and the first thing that could not be read: an update that has no snapshot shows only here.
        """

def combine_state_batches(parts: Sequence[bytes], start_offset: int) -> bytes:
    """One packed list of state batches out of many: what holds at each offset from `start_offset` on.

    Where batches overlap, the highest delivery count wins, then the highest state. Packed: 20 bytes a
    batch, as Kafka's ShareSnapshotValue holds them. A negative start offset keeps everything.

    Raises:
        ValueError: the bytes are no state batches.
    """
@final
class LetterBatch:
    """One record batch of dead letters, which grows letter by letter (KIP-1191).

    Args:
        group, topic, partition: the share partition.
        copy: whether the letters carry key, value and headers of the records.
        now_ms: when they are written, milliseconds since the epoch.
        max_bytes: how large the batch shall be at most.
    """

    def __new__(
        cls, group: str, topic: str, partition: int, *, copy: bool, now_ms: int, max_bytes: int
    ) -> Self: ...
    @property
    def count(self) -> int:
        """Number of letters."""
    def add(
        self, ranges: Sequence[tuple[int, int, int, int]], source: bytes, read_to: int
    ) -> tuple[int, int]:
        """Add letters, as many as fit.

        Offsets of control batches get none. A letter is without the record's content where that is not in
        `source`, and where it is too large; one that is too large only with the record's own headers goes
        without those. A batch without letters takes one of any size.

        Args:
            ranges: first offset, last offset, delivery count and cause, as of `Partition.take_dead_letters`,
                ascending; one that goes back ends the call.
            source: whole record batches, ascending: all that the log has from the first range on of the
                offsets before `read_to`.
            read_to: no letter is written for this offset and those behind it.

        Returns:
            How many ranges are done, and the first offset of the next one that is not; 0 where all are.
        """
    def finish(self) -> bytes:
        """Return the batch; this one is empty then."""

@final
class LogCleaner:
    """Compacts logs of a store; `sharecore.storage.cleaner` says what the numbers mean."""

    def __new__(cls, store: Store) -> Self: ...
    def dirt(self, log: int, newest_ms: int) -> tuple[int, int, int | None, int, int | None]: ...
    def roll(self) -> None: ...
    def clean(
        self, log: int, *, times_ms: tuple[int, int, int], limits: tuple[int, float, int, float]
    ) -> tuple[int, int, int, int, int, int, int, bool, int | None] | None: ...

@final
class MemoryDisk:
    """A disk in memory for simulations, mounted on a directory of this process for every store in it.

    What was synced stands after a crash; of what was not, anything may be left. Published wheels do not
    have it.
    """

    def __new__(cls, path: str | PathLike[str], seed: int) -> Self: ...
    def unmount(self) -> None: ...
    def fail(self, operation: str, errno: int, *, skip: int = ..., times: int = ...) -> None:
        """Make `open`, `write`, `sync`, `rename` or `read` fail `times` times, after `skip` successes."""
    def lie(self, *, skip: int = ..., times: int = ...) -> None:
        """Make syncs report success without syncing."""
    def misdirect(self, *, skip: int = ..., times: int = ...) -> None:
        """Make writes land in another place."""
    def set_rot(self, per_mille: int) -> None:
        """Of how many of 1,000 unsynced writes that survive a crash a bit is wrong then."""
    @property
    def harmed(self) -> int:
        """How often the disk has not held what it had said it held."""
    def files(self) -> list[tuple[str, bytes]]:
        """All files as they are, by their names."""
    def replace(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Put other files in the place of all; open ones are of no more use."""
    def heal(self) -> None:
        """Forgets the failures to come."""
    def end_after(self, changes: int) -> None:
        """The disk is gone after so many more changes, the last one begun."""
    @property
    def is_gone(self) -> bool: ...
    def set_capacity(self, bytes: int) -> None: ...
    def set_cold(self, per_mille: int) -> None:
        """How many of 1,000 reads would have to wait for the disk."""
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
    """What a thread of a store reads, into the bytes that are then given out."""

    @property
    def size(self) -> int:
        """Bytes that are read."""
    def result(self) -> tuple[bytes, list[tuple[int, int]]]:
        """As `Store.read` gives it, once `Store.drain` has named it. Raises KafkaError where it failed."""

@final
class Store:
    """Logs of record batches and a catalogue of keys, in one directory; `sharecore.storage` gives it a face.

    Changes are staged and numbered; a thread commits what is staged and makes `fileno()` readable. Calls
    raise `KafkaError` when they are refused.
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
        bucket: BucketCopy | None = None,
    ) -> Self:
        """Raise OSError when the directory cannot be had, is in use, or holds damaged files.

        `bucket` gets a copy of what is committed; commits do not wait for it.
        """

    def bucket_status(self) -> BucketStatus | None:
        """Return how the copy in a bucket stands; None without one."""

    @staticmethod
    def look(path: str | PathLike[str], *, cache_bytes: int = ...) -> Store:
        """Return a store to read: what the directory holds now, whoever has it. Nothing in it is changed,
        and what would write is refused. Raises OSError when there is no store or its files are damaged."""
    @staticmethod
    def stepped(
        path: str | PathLike[str],
        *,
        durability: str = ...,
        segment_bytes: int = ...,
        cache_bytes: int = ...,
        staging_bytes: int = ...,
        ahead_bytes: int = ...,
    ) -> Store:
        """Return a store without threads, for simulations: `step` commits, `maintain` looks after segments.

        Args:
            ahead_bytes: what a journal has written ahead of its frames at most.
        """
    @property
    def has_work(self) -> bool:
        """Whether something waits to be committed."""
    def step(self) -> bool:
        """Commit once in a store without threads; say whether there was anything."""
    def maintain(self) -> bool:
        """Seals or rewrites segments once in a store without threads; says whether there was anything."""
    def abandon(self) -> None:
        """End a store without threads as a killed process does: nothing more is written."""
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
        """Since the last call: (sequence number up to which operations ended, why they failed), for logs
        that moved (log, (start, high watermark, last stable offset, end)), reads that have ended, and damaged
        batches that readers have found (log, first offset, last offset, file, byte)."""
    @property
    def torn(self) -> tuple[Path, int, int] | None:
        """File, byte and number of bytes of a write that was cut short before the store was opened."""
    def verify(self, log: int) -> None:
        """Read all of a log, so that `drain` names what is damaged of it; waits for the disk."""
    def wait(self, sequence: int) -> None:
        """Blocks until the operation has ended."""
    def figures(self) -> tuple[list[int], float, int, int, int, int, int, int]:
        """Commit by duration (bucket i: below 2^i microseconds), their seconds together, bytes written,
        commits that failed, segments, bytes of batches in them, how many of these a log still reaches, bytes
        that wait."""
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
        """Start, high watermark, last stable offset, end."""
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
        """Of a batch that is about to be appended: producer id, epoch, first sequence."""
    def append_local(
        self,
        log: int,
        records: Sequence[_Pair],
        now_ms: int,
        producer: tuple[int, int] | None = None,
        lingers: bool = False,
    ) -> tuple[int, int, int, int, int]:
        """With a producer's id and epoch the batch is part of its transaction. One that lingers shares the
        next commit that another write needs, and is durable some milliseconds later in any case.
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
    ) -> tuple[int, Reading | None]:
        """Has a thread read what `read` would return, and a number that `drain` gives when it has. Without a
        `Reading` the thread only loads what tells where that lies.
        """
    @property
    def has_reads(self) -> bool:
        """Whether a read waits for a thread."""
    def step_read(self) -> bool:
        """Read once, in a store without threads; whether there was anything."""
    def readable_bytes(self, log: int, offset: int, max_bytes: int, limit: int | None = None) -> int | None:
        """Size of what `read` would return; None when the disk would have to be asked."""
    def scan(
        self, log: int, offset: int, max_bytes: int
    ) -> tuple[list[tuple[int, bool, list[tuple[int, int, bytes | None, bytes | None]]]], int]:
        """Batches and the offset behind the last: id of the producer whose transaction it is part of or -1,
        whether it is a control batch, and its records: offset, timestamp, key, value.
        """
    def offset_for(self, log: int, timestamp: int) -> tuple[int, int] | None:
        """Offset and timestamp of the first record that is not older."""
    def retain(self, log: int, *, oldest_ms: int | None = None, max_bytes: int | None = None) -> int | None:
        """Move the start as retention has it; None when it stays."""
    @property
    def maintenance_error(self) -> str | None:
        """Why sealing or rewriting of segments failed, when the newest attempt did."""
    def max_timestamp(self, log: int) -> int | None: ...
    def aborted(self, log: int, first: int, end: int) -> list[tuple[int, int]]: ...
    def active_producers(self, log: int) -> list[tuple[int, int, int, int, int, int]]:
        """Return producers that have written to a log: id, epoch, last sequence, last timestamp, coordinator
        epoch, first offset of the open transaction; -1 for what there is not.
        """
    def expire_producers(self, before_ms: int) -> None: ...
    def plan_fault(self, point: str, errno: int, *, skip: int = 0, times: int = 1) -> None:
        """Make the next writes ("write") or syncs ("sync") fail, for tests."""

def observe_partitions(
    partitions: Sequence[Partition], ends: Sequence[int], now_ms: int
) -> tuple[int, int, int, int, list[int], list[int]]:
    """`Partition.observe` of many, summed, with the ends of their logs: lag, in flight, age in ms of the
    oldest lease, records whose lock ran out, records by acknowledge type, records by delivery count. One
    whose engine has failed counts for nothing. Raises ValueError unless there is an end for each."""
@final
class Layout:
    """A message in one version.

    Args:
        spec: (class or None, flexible, fields); each field is (name, kind, array, nullable, tag or None,
            default, spec or None). The class is a subclass of tuple; without one, plain tuples are made.
        name: of the message, as Kafka's schemas have it.
        version: of the message.
    """

    def __new__(cls, spec: tuple[Any, ...], name: str, version: int) -> Self: ...
    def read(self, data: bytes, offset: int) -> tuple[Any, int]:
        """Return the message at `offset`, and the offset behind it.

        Raises ValueError: the bytes end too early, or a length or a string in them is impossible.
        """
    def read_apart(self, data: bytes, offset: int) -> Any:
        """As `read`, in a thread that lets others run now and then."""
    def write_response_apart(
        self, correlation_id: int, tagged_header: bool, message: Mapping[str, Any] | Produced
    ) -> list[bytes]:
        """As `write_response`, in a thread that lets others run now and then."""
    def write(self, message: Mapping[str, Any]) -> bytes:
        """Return the bytes of a message. What the mapping does not hold gets its default; a struct in it may
        be a tuple instead, with the fields that are not tagged in the order of the schema.
        """
    def write_response(
        self, correlation_id: int, tagged_header: bool, message: Mapping[str, Any] | Produced | ShareAnswer
    ) -> list[bytes]:
        """Return a response frame with its size before it, as buffers to send one after the other.

        Bytes in it of 64 KiB and more are not copied.
        """

def read_request_header(frame: bytes, offset: int = 0) -> tuple[int, int, int, str | None, int]:
    """Return API key, version, correlation id, client id, and the offset behind them, where tagged fields
    may come.

    Raises ValueError: the frame is too short, or the client id is not a string.
    """

def skip_tagged_fields(data: bytes, offset: int) -> int:
    """Step over a section of tagged fields; give the offset behind it. Raises ValueError."""

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
    """Read a store from end to end; with `to` makes a new one there of what is whole. `path` stays as it is.

    Returns: problems (file, byte, what); logs (log, start, end, whole batches, their bytes, whether nothing
    but they tells of it); lost offsets (log, first, last); the catalogue; whether more may be missing that
    nothing tells of; file, byte and bytes of a write that was cut short. `progress` gets bytes done and to
    do. Raises OSError.
    """
@final
class BucketCopy:
    """A bucket, and what is asked of the copy in it; one store takes it (`Store(bucket=)`).

    `random`: 16 bytes that no other store ever used. `is_tried`: the bucket is known to be one that can be
    relied on. Raises ValueError for settings that cannot be right.
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
        is_tried: bool = ...,
    ) -> Self: ...

@final
class BucketStatus:
    """How the copy of a store stands; times in milliseconds, counts since the store was opened.

    Attributes:
        state: what it is doing; `stopped` says why it is fenced or refused, and what to do.
        error: why the newest attempt failed; None once one has succeeded.
        epoch: in which it writes; 0 before it does.
        place: all places of the journal below it are in the bucket.
        behind_ms: how long the oldest of `behind_bytes` has waited, which are not known to be in the bucket.
        objects, bytes: of the journal, copied.
        surplus_bytes: of files that are kept only until the bucket has them.
        creates, gets, lists, deletes: requests, each attempt counted; `failed` got no definite answer.
        sent_bytes: of all create requests.
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

def bucket_url(url: str) -> str:
    """Return the URL of a bucket as it is written everywhere else.

    Raises:
        ValueError: it names no bucket; the text says what is allowed, and repeats no part that may be secret.
    """

def reaches_s3() -> bool:
    """Whether this build reaches S3; every build has directories as buckets."""

def probe_bucket(
    url: str, endpoint: str | None, region: str | None, allow_http: bool, random: tuple[int, int]
) -> tuple[
    list[tuple[str, Literal["passed", "wrong", "unanswered"], str]],
    Literal["fit", "grows", "unfit", "unknown"],
    str,
]:
    """Try whether a bucket can be relied on. `random`: two numbers of 64 bits for the names of its objects.

    Returns: the checks (name, outcome, why), the verdict and why. Raises ValueError for settings that cannot
    be right.
    """

def inspect_bucket(
    url: str, endpoint: str | None, region: str | None, allow_http: bool, since_ms: int
) -> tuple[str, tuple[int, int, int] | None, int | None, list[tuple[str, int, int]], int]:
    """Return what a bucket holds.

    Returns: cluster id; epoch, place and time of the newest object of the journal; the oldest time that can
    be restored; objects and bytes by the first part of their names; objects of the journal since `since_ms`.
    Raises ValueError for settings that cannot be right, OSError if it cannot be read or holds no copy.
    """

def is_proven(store: Store, lease_ms: int) -> bool:
    """Whether nobody else can lead a store's home who waits longer than `lease_ms` before a claim; True where
    answers wait for no bucket.
    """
@final
class Standby:
    """Watches a home in a bucket that another broker leads. Raises ValueError for wrong settings."""

    def __new__(
        cls,
        url: str,
        *,
        endpoint: str | None,
        region: str | None,
        allow_http: bool,
        node_id: int,
    ) -> Self: ...
    def look(self) -> tuple[int, int] | None:
        """Return the node that leads and its epoch; None if this broker may claim: nobody leads, or whoever
        did has ended, or was silent for 6.5 s of looks that were 3 s apart at most. Waits for the bucket;
        raises OSError if it cannot be read.
        """

def prepare_home(
    url: str,
    path: str | PathLike[str],
    *,
    endpoint: str | None,
    region: str | None,
    allow_http: bool,
    cluster_id: str | None,
    random: tuple[int, int],
) -> tuple[Literal["empty", "local", "bucket"], str | None, int, int, int]:
    """Bring a data directory in line with its home in a bucket, after trying whether that can be relied on.

    Returns: `empty` (nothing is in either), `local` (the directory was no home so far) or `bucket`; the
    cluster whose home it is, None if that is not known; place and time of the newest object, and bytes read.
    Raises ValueError for settings that cannot be right, OSError if nothing was changed.
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
    """Make a store in an empty directory from the copy in a bucket.

    Returns: cluster id, place and time of the newest object and bytes read; or None, whether the bucket
    lacks something, and why. `progress` gets bytes read, and 0. Raises ValueError for settings that cannot
    be right.
    """

def whole_batches(records: bytes) -> tuple[int, int | None]:
    """Bytes of the whole record batches at the front, and the offset behind the last; None without any."""
