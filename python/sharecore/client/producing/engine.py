"""librdkafka's producer, its thread, and pending confirmations."""

from __future__ import annotations

import atexit
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex

from sharecore.client.arguments import whole_number
from sharecore.client.errors import AuthenticationFailed
from sharecore.client.producing.bulk import Bulk, Callback
from sharecore.client.producing.failures import is_refusal, kafka_error
from sharecore.client.producing.records import (
    NewRecord,
    SentRecords,
    header_pairs,
    is_sendable,
    not_confirmed,
    serialize,
)
from sharecore.client.producing.settings import ProducerSettings, refused
from sharecore.errors import ConfigError, ErrorCode, KafkaError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError as RdkafkaError
    from confluent_kafka import Message

    Answered = Callable[[RdkafkaError | None, Message[bytes, bytes]], None]

logger = logging.getLogger("sharecore.client.producing")

_POLL_SECONDS = 0.1
_SERVE_EACH = 64
"""A bulk runs pending callbacks after this many records."""
_SPACE_SECONDS = 0.02
_REFUSED_SECONDS = 5.0
"""How long records fail at once after refused credentials, before a retry."""
_TRANSACT_SECONDS, _TRY_SECONDS = 60.0, 5.0
_ANY_PARTITION = -1
_PARTITION_MAX, _TIMESTAMP_MAX = 2**31 - 1, 2**63 - 1

Done = Callable[[KafkaError | None, "Message[bytes, bytes]"], None]
"""Called with the error, or with None and the confirmed message; in a thread of the producer."""


class Ready(NamedTuple):
    """A record in librdkafka's form."""

    topic: str
    value: bytes | None
    key: bytes | None
    partition: int
    timestamp: int
    headers: list[tuple[str, bytes | None]] | None


class NoSpace(Exception):
    """The limit of pending records is reached."""


class Engine:
    """Sends records and calls back with the result of each; thread-safe.

    Callbacks of librdkafka run only in the engine's thread, or in one that sends a bulk: an exception of a
    signal handler, such as Ctrl-C, would be lost in them.

    Args:
        settings: the producer's.

    Raises:
        ConfigError: settings that librdkafka rejects.
    """

    def __init__(self, settings: ProducerSettings) -> None:
        from confluent_kafka import KafkaException, Producer

        self.settings = settings
        self._exception = KafkaException
        self._refusal: AuthenticationFailed | None = None
        self._refused_at = 0.0
        self._fatal: KafkaError | None = None
        self._last_error, self._last_error_at = "", 0.0
        try:
            self._producer = Producer({**settings.rdkafka, "error_cb": self._on_error}, logger=logger)
        except KafkaException as error:
            raise refused(error.args[0].str(), settings) from None
        except (TypeError, ValueError) as error:
            raise ConfigError(f"a producer's settings: {error}") from None
        self._count = threading.Lock()
        self._open = 0
        self._no_bulk = threading.Event()
        self._no_bulk.set()
        self._bulk = threading.Lock()
        self._unused: list[Callback] = []
        self._ending = self._given_up = False
        self._prepared = self._transacting = False
        self.when_served: Callable[[], None] | None = None
        """Called in the engine's thread after callbacks ran: there may be space."""
        self._thread = threading.Thread(target=self._serve, name="sharecore producer", daemon=True)
        self._thread.start()
        _engines.add(self)

    # records

    def ready(self, topic: str, record: object) -> Ready:
        """Return a value, or a `NewRecord`, in librdkafka's form.

        Raises:
            TypeError, ValueError: it cannot be sent.
        """
        new = record if isinstance(record, NewRecord) else NewRecord(record)
        _check_topic(topic)
        partition, timestamp = _ANY_PARTITION, 0
        if new.partition is not None:
            partition = _whole("partition", new.partition, 0, _PARTITION_MAX, "None for the key to decide")
        if new.timestamp is not None:
            timestamp = _whole("timestamp", new.timestamp, 1, _TIMESTAMP_MAX, "None for now")
        return Ready(
            topic,
            self.settings.value_serializer(new.value),
            self.settings.key_serializer(new.key),
            partition,
            timestamp,
            header_pairs(new.headers),
        )

    def send(self, record: Ready, done: Done) -> None:
        """Pass a record to librdkafka, which calls `done` later.

        Raises:
            NoSpace: try again later.
            KafkaError: permanently refused.
        """
        self._check_refusal()
        self._began(1)
        try:
            self._produce(record.topic, record, partial(self._answered, done))
        except BaseException:
            self._ended(1)
            raise

    def _produce(self, topic: str, record: bytes | Ready, answered: Answered) -> None:
        produce = self._producer.produce
        try:
            if isinstance(record, bytes):
                produce(topic, record, None, _ANY_PARTITION, answered)
            elif record.headers is None:
                produce(
                    topic, record.value, record.key, record.partition, answered, timestamp=record.timestamp
                )
            else:
                produce(
                    topic,
                    record.value,
                    record.key,
                    record.partition,
                    answered,
                    timestamp=record.timestamp,
                    headers=record.headers,  # type: ignore[arg-type]  # lists are invariant
                )
        except BufferError:
            raise NoSpace from None
        except self._exception as error:
            raise kafka_error(error.args[0]) from None

    def prepare(self, topic: str, records: Iterable[object]) -> list[bytes | Ready]:
        """Return records for `send_bulk`; raise as `ready` does, before anything is sent."""
        plain = self.settings.value_serializer is serialize
        _check_topic(topic)
        return [
            record if plain and type(record) is bytes else self.ready(topic, record) for record in records
        ]

    def send_bulk(
        self, topic: str, records: Sequence[bytes | Ready], done: Callable[[SentRecords], None]
    ) -> None:
        """Pass records to librdkafka in order, waiting for space as needed.

        Args:
            topic: for records that are plain bytes, which are values without a key.
            done: called once all are answered; in any thread.
        """
        count = len(records)

        def finish(results: SentRecords) -> None:
            self._ended(count)
            done(results)

        self._began(count)
        bulk = Bulk(topic, count, self._failure, finish)
        produce, unused = self._producer.produce, self._unused
        with self._bulk:
            self._no_bulk.clear()
            index = 0
            try:
                for index, record in enumerate(records):
                    if not index % _SERVE_EACH:
                        self._check_refusal()
                        self._poll(0)
                    # no other thread takes one: bulks are sent one at a time
                    called = unused.pop() if unused else Callback(unused)
                    called.bulk, called.index = bulk, index
                    try:
                        if type(record) is bytes:
                            produce(topic, record, None, _ANY_PARTITION, called)
                        else:
                            self._produce(topic, record, called)
                    except (BufferError, NoSpace):
                        self._produce_when_space(topic, record, called)
            except KafkaError as error:
                bulk.not_sent(index, error)
            except self._exception as error:
                bulk.not_sent(index, kafka_error(error.args[0]))
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                bulk.not_sent(index, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, reason))
            finally:
                self._no_bulk.set()

    def _produce_when_space(self, topic: str, record: bytes | Ready, answered: Answered) -> None:
        until = time.monotonic() + self.settings.max_block_ms / 1000
        while True:
            self._poll(_SPACE_SECONDS)
            self._purge_refused()
            self._check_refusal()
            try:
                self._produce(topic, record, answered)
                return
            except NoSpace:
                if time.monotonic() >= until:
                    raise self.no_space() from None

    def no_space(self) -> KafkaError:
        """Return the error for a record without space within `max.block.ms`."""
        return not_confirmed(
            f"no space for the record within max.block.ms={self.settings.max_block_ms}{self._recent_error}"
        )

    # answers

    def _answered(self, done: Done, error: RdkafkaError | None, message: Message[bytes, bytes]) -> None:
        done(None if error is None else self._failure(error), message)
        self._ended(1)

    def _failure(self, error: RdkafkaError) -> KafkaError:
        if error.name() in ("_PURGE_QUEUE", "_PURGE_INFLIGHT"):
            return (
                self._fatal
                or self._refusal
                or not_confirmed("the producer was closed before the record was confirmed")
            )
        if error.name() == "_MSG_TIMED_OUT":
            seconds = self.settings.delivery_timeout_ms / 1000
            return kafka_error(error, f"not confirmed within {seconds:g} s{self._recent_error}")
        return kafka_error(error)

    def _began(self, count: int) -> None:
        with self._count:
            self._open += count

    def _ended(self, count: int) -> None:
        with self._count:
            self._open -= count

    def _poll(self, seconds: float, *, flush: bool = False) -> None:
        """Run pending callbacks; `flush` also sends lingering records."""
        try:
            if flush:
                self._producer.flush(seconds)
            else:
                self._producer.poll(seconds)
        except self._exception as error:
            # such as a newer producer with the same transactional.id: nothing can be sent any more
            self._fatal = self._fatal or kafka_error(error.args[0])

    def _on_error(self, error: RdkafkaError) -> None:
        self._last_error, self._last_error_at = error.str(), time.monotonic()
        if is_refusal(error):
            refusal = kafka_error(error)
            assert isinstance(refusal, AuthenticationFailed)
            self._refusal, self._refused_at = refusal, time.monotonic()

    @property
    def _recent_error(self) -> str:
        """The last broker error of librdkafka, to complement errors without details."""
        recent = time.monotonic() - self._last_error_at < self.settings.delivery_timeout_ms / 1000
        return f"; {self._last_error}" if self._last_error and recent else ""

    def _check_refusal(self) -> None:
        if self._fatal is not None:
            raise self._fatal
        if self._refusal is not None:
            if time.monotonic() < self._refused_at + _REFUSED_SECONDS:
                raise self._refusal
            self._refusal = None

    def _purge_refused(self) -> None:
        """Fail records waiting for a broker that refuses the credentials, or that can no longer be sent."""
        if self._fatal is not None:
            self._producer.purge(blocking=False)
        elif self._refusal is not None:
            self._producer.purge(in_queue=True, in_flight=False, blocking=False)

    # the thread, and the end

    def _serve(self) -> None:
        while not self._ending:
            self._no_bulk.wait()
            self._poll(_POLL_SECONDS)
            self._purge_refused()
            if self.when_served is not None:
                self.when_served()
        # the producer was closed or garbage-collected, or the program ends
        if self._given_up:
            self._producer.purge()
        self.flush(self.settings.delivery_timeout_ms / 1000)
        self._producer.purge()
        if self._fatal is None:
            self._producer.close()
        _engines.discard(self)

    def flush(self, seconds: float) -> bool:
        """Send lingering records, and wait; return whether all pending ones were answered.

        Runs callbacks: do not call it in the main thread.
        """
        until = time.monotonic() + seconds
        while self._open:
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._poll(min(left, _POLL_SECONDS), flush=True)
            self._purge_refused()
        return True

    def end(self, *, give_up: bool = False) -> None:
        """Have pending records sent, or failed at once, and the thread ended; `join` waits for that."""
        self._given_up = give_up
        self._ending = True

    def join(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    # transactions

    @contextlib.contextmanager
    def one_transaction(self) -> Iterator[None]:
        """Hold the producer's only transaction.

        Raises:
            RuntimeError: there is no `transactional.id`, or a transaction is in progress.
        """
        if not self.settings.transactional:
            raise RuntimeError("transaction needs transactional.id")
        if self._transacting:
            raise RuntimeError("a transaction is in progress: a producer has one at a time")
        self._transacting = True
        try:
            yield
        finally:
            self._transacting = False

    def begin_transaction(self) -> None:
        """Begin a transaction; the first one also fences earlier producers with the `transactional.id`."""
        if not self._prepared:
            self.transact("init_transactions")
            self._prepared = True
        self.transact("begin_transaction")

    def transact(self, step: str) -> None:
        """Take a step of a transaction, retrying while librdkafka says that it may succeed.

        Raises:
            KafkaError: it failed; PRODUCER_FENCED: another producer uses the transactional.id.
        """
        until = time.monotonic() + max(_TRANSACT_SECONDS, self.settings.delivery_timeout_ms / 1000)
        # bounds each attempt, so that refused credentials are noticed
        arguments = () if step == "begin_transaction" else (_TRY_SECONDS,)
        while True:
            try:
                getattr(self._producer, step)(*arguments)
                return
            except self._exception as raised:
                error = raised.args[0]
                if not error.retriable() or time.monotonic() > until:
                    raise kafka_error(error) from None
            self._purge_refused()
            self._check_refusal()


def _check_topic(topic: object) -> None:
    if not isinstance(topic, str) or not topic or not is_sendable(topic):
        raise ValueError(f"topic={topic!r}: pass the name of a topic")


def _whole(name: str, number: SupportsIndex, low: int, high: int, otherwise: str) -> int:
    found = whole_number(number)
    if found is None:
        raise TypeError(f"{name}={number!r}: pass a whole number, or {otherwise}")
    if not low <= found <= high:
        raise ValueError(f"{name}={found}: pass {low} to {high}, or {otherwise}")
    return found


_engines: set[Engine] = set()
"""Engines that have not ended."""


def end_all(engines: Iterable[Engine]) -> None:
    """Flush and end several at once."""
    several = list(engines)
    for engine in several:
        engine.end()
    for engine in several:
        engine.join()


@atexit.register
def _at_exit() -> None:
    end_all(_engines)
