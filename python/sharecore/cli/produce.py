"""`sharecore produce`: values from the command line or, line by line, from standard input."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any, Optional

import typer

from sharecore.cli.admin import Settings, SettingsFile, confluent_settings
from sharecore.cli.clients import (
    BOOTSTRAP,
    Bootstrap,
    CommandFailed,
    check_clients,
    failures_in_one_line,
    is_refusal,
)

ANSWER_SECONDS_MAX = 30
FLUSH_SECONDS = 0.5


def produce(
    topic: Annotated[str, typer.Argument(help="Made where the broker may make topics by itself.")],
    values: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer evaluates the annotation
        typer.Argument(metavar="[VALUE]...", help="One record each; the lines of stdin where there is none."),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    settings: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """Write records to a topic, and wait until the broker has answered for each."""
    with failures_in_one_line():
        check_clients(bootstrap)
        from confluent_kafka import KafkaException, Producer

        broken: list[str] = []
        refused: list[str] = []

        def on_error(error: Any) -> None:
            (refused if is_refusal(error) else broken).append(error.str())

        chosen = confluent_settings(bootstrap, settings, command_config)
        try:
            producer = Producer({"enable.idempotence": True} | chosen, error_cb=on_error)
        except KafkaException as error:
            raise CommandFailed(error.args[0].str()) from None
        count = 0
        failed: list[str] = []

        def on_delivery(error: Any, message: Any) -> None:
            if error is not None:
                failed.append(error.str())

        for value in values or (line.rstrip("\n") for line in sys.stdin):
            while True:
                try:
                    producer.produce(topic, value.encode(), on_delivery=on_delivery)
                    break
                except BufferError:
                    producer.poll(1)
            producer.poll(0)
            count += 1
        until = time.monotonic() + ANSWER_SECONDS_MAX
        while (unanswered := producer.flush(FLUSH_SECONDS)) and not refused and time.monotonic() < until:
            pass
        if failed or unanswered:
            reason = (failed + refused + broken + [f"no answer within {ANSWER_SECONDS_MAX} s"])[0]
            raise CommandFailed(f"{len(failed) + unanswered} of {count} records were not written: {reason}")
        typer.echo(f"{count} {'record' if count == 1 else 'records'} written to {topic}")
