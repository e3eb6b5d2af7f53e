"""`sharecore consume`: a member of a share group that acknowledges each record by its content."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile, Timeout, over_transport
from sharecore.cli.clients import (
    BOOTSTRAP,
    Bootstrap,
    CommandFailed,
    ctrl_c_ends,
    failures_in_one_line,
)
from sharecore.cli.interrupts import Interrupts
from sharecore.cli.lines import Lines
from sharecore.cli.printable import printable_bytes

if TYPE_CHECKING:
    from sharecore.client import AcknowledgeType, Record
    from sharecore.client.blocking import ShareConsumer
    from sharecore.client.wire.transport import Transport

Texts = Optional[list[str]]  # noqa: UP045 - typer evaluates the annotation
_POLL_SECONDS = 0.2
_POLL_RECORDS_MAX = 500
_LOOK_SECONDS = 5.0
"""How often a consumer that nothing comes for looks whether its topic is still there."""
_REFUSED_SECONDS = 10.0
"""A share partition that is refused for so long is given up."""


def consume(
    topic: Annotated[str, typer.Argument()],
    group: Annotated[str, typer.Option("--group", "-g", help="The share group to be a member of.")],
    reject: Annotated[
        Texts,
        typer.Option(metavar="TEXT", help="Reject records that contain TEXT: they are not redelivered."),
    ] = None,
    release: Annotated[
        Texts,
        typer.Option(metavar="TEXT", help="Release records that contain TEXT: they are redelivered at once."),
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start a new group at the first record.")
    ] = False,
    max_records: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--max", "-n", metavar="N", min=1, help="Exit after N records.  [default: never]"),
    ] = None,
    idle: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            metavar="SECONDS", help="Exit after this many seconds without a record.  [default: never]"
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    settings: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Consume records as a member of a share group, print each on a line, and accept it.

    A pipe or file gets the record's bytes unchanged; for a terminal, control characters are escaped. A record
    is acknowledged once its line is written. If the reader ends early, records it did not read are released
    and redelivered.
    """
    with failures_in_one_line(), ctrl_c_ends():
        cluster = Cluster(bootstrap, settings, command_config, timeout)
        cluster.check()
        interrupts = Interrupts()
        lines = Lines(interrupts)
        from sharecore.client.blocking import ShareConsumer
        from sharecore.client.settings import read_settings
        from sharecore.errors import ConfigError, KafkaError

        try:
            config = {"enable.metrics.push": "false", **cluster.given}
            config |= _MEMBER | {"group.id": group}
            read_settings(config)
        except (ConfigError, OSError) as error:
            raise CommandFailed(str(error)) from None

        # an error ends the command with one line; the consumer's warnings would repeat it
        logging.getLogger("sharecore").addHandler(logging.NullHandler())

        def check_topic() -> None:
            check_topic_exists(topic, cluster)

        check_topic()
        if from_beginning:
            start_at_the_beginning(group, cluster)
        try:
            with interrupts, ShareConsumer(config) as consumer:
                consumer.subscribe([topic])
                consuming = _Consuming(consumer, lines, interrupts, reject or [], release or [], check_topic)
                consuming.run(max_records, idle)
        except (KafkaError, OSError) as error:
            raise CommandFailed(str(error)) from None


_MEMBER = {
    "share.acknowledgement.mode": "explicit",
    # prefetched records would lose a delivery when they are released
    "prefetch.records": "0",
    "share.acquire.mode": "record_limit",
}


class _Consuming:
    """Takes records, writes each and settles it.

    Args:
        reject, release: records that hold one of these are rejected or released.
        check_topic: raises CommandFailed once the topic is gone.
    """

    def __init__(
        self,
        consumer: ShareConsumer,
        lines: Lines,
        interrupts: Interrupts,
        reject: Sequence[str],
        release: Sequence[str],
        check_topic: Callable[[], None],
    ) -> None:
        from sharecore.client import AcknowledgeType

        self._consumer = consumer
        self._lines = lines
        self._interrupts = interrupts
        self._check_topic = check_topic
        self._wanted = [(os.fsencode(text), AcknowledgeType.REJECT, "rejected") for text in reject]
        self._wanted += [(os.fsencode(text), AcknowledgeType.RELEASE, "released") for text in release]

    def run(self, max_records: int | None, idle: float | None) -> None:
        """Consume until enough records were seen, none came for `idle` seconds, or the output is closed.

        Raises:
            CommandFailed: the topic is gone, a share partition is refused, or records could not be settled.
            KafkaError, OSError: as the consumer and standard output raise them.
        """
        taken, step = 0, 1
        last = looked = time.monotonic()
        while self._lines.has_reader:
            wanted = step if max_records is None else min(step, max_records - taken)
            if wanted == 0:
                return
            self._interrupts.check()
            batch = self._consumer.poll(wanted, timeout=_POLL_SECONDS)
            if batch:
                # an early end leaves at most as many unread records as were read
                step = min(2 * step, _POLL_RECORDS_MAX)
                taken += len(batch)
                if not self._write(batch):
                    return
                last = looked = time.monotonic()
                continue
            now = time.monotonic()
            is_over = idle is not None and now - last >= idle
            if is_over or now - looked > _LOOK_SECONDS:
                looked = now
                self._check_topic()
            self._check_refused(0.0 if is_over and not taken else _REFUSED_SECONDS)
            if is_over:
                return

    def _write(self, batch: Sequence[Record]) -> bool:
        """Write and acknowledge records under renewed locks; return False if the output is closed."""
        from sharecore.client import AcknowledgeType

        has_reader = True
        with self._consumer.lease(batch):
            try:
                for index, record in enumerate(batch):
                    kind, outcome = self._settlement(record)
                    if not self._lines.write(self._line(record, outcome)):
                        has_reader = False
                        self._consumer.acknowledge(batch[index:], AcknowledgeType.RELEASE)
                        break
                    self._consumer.acknowledge(record, kind)
                    self._interrupts.check()
            finally:
                failed = {
                    partition: error
                    for partition, error in self._consumer.commit_sync(30.0).items()
                    if error is not None
                }
            for partition, error in failed.items():
                place = f"{partition.topic}-{partition.partition}"
                raise CommandFailed(f"{place}: not settled, what is shown of it may come again: {error}")
        return has_reader

    def _settlement(self, record: Record) -> tuple[AcknowledgeType, str]:
        from sharecore.client import AcknowledgeType

        value = record.value or b""
        for text, kind, outcome in self._wanted:
            if text in value:
                return kind, outcome
        return AcknowledgeType.ACCEPT, "accepted"

    def _line(self, record: Record, outcome: str) -> bytes:
        value = record.value or b""
        place = f"{record.topic}-{record.partition}@{record.offset}"
        start = f"{place}  delivery {record.delivery_count}  {outcome}  ".encode()
        return start + (printable_bytes(value).encode() if self._lines.is_terminal else value) + b"\n"

    def _check_refused(self, seconds: float) -> None:
        for partition, refusal in self._consumer.refusals.items():
            if refusal.for_ms >= seconds * 1000:
                raise CommandFailed(
                    f"{partition.topic}-{partition.partition} gives no records: {refusal.error}"
                )


def check_topic_exists(topic: str, cluster: Cluster) -> None:
    """Raise CommandFailed if the topic does not exist, with similar names."""
    import difflib

    from sharecore.errors import ErrorCode, KafkaError

    async def look(transport: Transport) -> None:
        try:
            await transport.topic(topic)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            near = difflib.get_close_matches(topic, await transport.topic_names(), n=3)
            hint = f"; near names: {', '.join(near)}" if near else ""
            raise CommandFailed(f"there is no topic {topic}{hint}") from None

    over_transport(cluster, look)


def start_at_the_beginning(group: str, cluster: Cluster) -> None:
    """Have a group that is new begin with the first record; raises CommandFailed."""
    from sharecore.client.configs import ResourceKind, alter_configs

    async def alter(transport: Transport) -> None:
        await alter_configs(transport, ResourceKind.GROUP, group, {"share.auto.offset.reset": "earliest"})

    over_transport(cluster, alter)
