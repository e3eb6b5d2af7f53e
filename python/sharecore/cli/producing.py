"""Produce records with confluent-kafka, and report retried refusals at once."""

from __future__ import annotations

import logging
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING

import typer

from sharecore.cli.clients import CommandFailed, is_refusal
from sharecore.client.producing.records import is_sendable

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_LOOK_SECONDS = 0.5
_SAID_AGAIN_SECONDS = 10.0
_TIMEOUTS = ("message.timeout.ms", "delivery.timeout.ms")
"""librdkafka's name and Java's."""
_ERROR = re.compile(r"encountered error: (.*) \(actions [^)]*Retry|PID from broker \S+: (.*): retrying")

Headers = Sequence[tuple[str, bytes | None]]


class Records:
    """Records that are sent, and tried again until their time runs out; a context manager.

    Args:
        settings: of confluent-kafka; with `debug` or another `log_level` librdkafka's own log is left alone,
            and nothing is reported from it.
        seconds: how long a record is tried, unless the settings say so.

    Attributes:
        count: how many were sent.
        written: how many the cluster has confirmed.
        failed: why records were not written, in the order of the answers.
    """

    def __init__(self, settings: Mapping[str, object], seconds: float) -> None:
        from confluent_kafka import KafkaError, KafkaException, Producer

        chosen = {"enable.idempotence": True, "acks": "all", "error_cb": self._on_error, **settings}
        if not chosen.keys() & {*_TIMEOUTS}:
            chosen[_TIMEOUTS[0]] = round(seconds * 1000)
        self._seconds = next(float(str(chosen[name])) / 1000 for name in _TIMEOUTS if name in chosen)
        logger = None
        if "debug" not in chosen and chosen.get("log_level") == "0":
            # librdkafka reports retries only in its debug log
            chosen |= {"debug": "msg", "log_level": "7"}
            logger = logging.Logger("librdkafka")
            logger.addHandler(_Errors(self._tried_again))
        self._timed_out, self._exception = KafkaError._MSG_TIMED_OUT, KafkaException
        self._denied = KafkaError.TOPIC_AUTHORIZATION_FAILED
        try:
            self._producer = Producer(chosen, logger=logger) if logger else Producer(chosen)
        except KafkaException as error:
            raise CommandFailed(error.args[0].str()) from None
        self.count = self.written = 0
        self.failed: list[str] = []
        self._sent_at: dict[int, float] = {}
        self._refused = ""
        self._answered = ""
        self._said: dict[str, float] = {}
        self._serving = self._interrupted = False
        self._before: Callable[[int, FrameType | None], object] | int | None = None

    def __enter__(self) -> Records:
        if current_thread() is main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        """Give up unwritten records.

        A producer's threads must not outlive this: at the end of the process OpenSSL is taken down under a
        handshake of theirs, and the process dies of SIGSEGV.
        """
        self._serving = True
        self._producer.purge()
        self._producer.close()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int = -1,
        headers: Headers = (),
        written: Callable[[], None] | None = None,
    ) -> None:
        """Send one; wait while there are too many on their way.

        Args:
            partition: -1: as its key says.
            written: is called once the cluster has it.

        Raises:
            CommandFailed: the record cannot be sent at all, such as one that is too large.
        """
        number = self.count
        for kind, name in (("topic name", topic), *(("header name", name) for name, _ in headers)):
            if not is_sendable(name):
                raise CommandFailed(
                    f"record {number + 1}: {kind} {name!r} is not UTF-8 without null characters"
                )

        def answered(error: KafkaError | None, message: object) -> None:
            # it is missing if Ctrl-C came in between
            self._sent_at.pop(number, None)
            if error is not None:
                late = error.code() == self._timed_out
                denied = error.code() == self._denied
                reason = f"the right WRITE on topic {topic} is missing" if denied else error.str()
                refusal = f"{reason} (record {number + 1})"
                self.failed.append((self._answered or self._refused or error.str()) if late else refusal)
            else:
                self.written += 1
                if written is not None:
                    written()

        while True:
            try:
                self._producer.produce(topic, value, key, partition, on_delivery=answered, headers=[*headers])
                break
            except BufferError:
                self._served(self._producer.poll, 0.1)
            except self._exception as error:
                reason = f"record {number + 1}: {error.args[0].str()}"
                raise CommandFailed(reason) from None
        self._sent_at[number] = time.monotonic()
        self.count += 1
        self._served(self._producer.poll, 0)

    def finish(self) -> None:
        """Wait for pending records; raise CommandFailed if any was not written."""
        while self._served(self._producer.flush, _LOOK_SECONDS) and not self._refused:
            pass
        lost = len(self.failed) + len(self._sent_at)
        if lost:
            reason = self._refused or self.failed[0]
            raise CommandFailed(f"{lost} of {self.count} records were not written: {reason}")

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-C. What a callback raises confluent-kafka loses, or makes a SystemError of it."""
        self._interrupted = True
        if not self._serving:
            raise KeyboardInterrupt

    def _served(self, call: Callable[[float], int], seconds: float) -> int:
        """Return a call that runs the producer's callbacks; raise KeyboardInterrupt behind it."""
        self._serving = True
        try:
            left = call(seconds)
        finally:
            self._serving = False
        if self._interrupted:
            raise KeyboardInterrupt
        return left

    def _on_error(self, error: KafkaError) -> None:
        if is_refusal(error):
            self._refused = error.str()
        else:
            self._answered = error.str()

    def _tried_again(self, error: str) -> None:
        """Record an error of the cluster for records that are being retried."""
        self._answered = error
        now = time.monotonic()
        if now < self._said.get(error, -_SAID_AGAIN_SECONDS) + _SAID_AGAIN_SECONDS:
            return
        self._said[error] = now
        first = next(iter(self._sent_at.values()), now)
        until = "until they are written"
        if self._seconds:
            left = max(0.0, first + self._seconds - now)
            until = f"until {datetime.fromtimestamp(time.time() + left, UTC):%H:%M:%SZ}"
        typer.echo(f"sharecore: {error}; what is not written is tried again {until}", err=True)


class _Errors(logging.Handler):
    """Report errors that librdkafka retries."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__()
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        """One line of librdkafka's debug log."""
        found = _ERROR.search(record.getMessage())
        if found is not None:
            self._report(found[1] or found[2])
