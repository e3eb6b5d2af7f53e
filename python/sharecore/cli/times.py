"""Times on the command line: read as Kafka's tools read them, and shown with their zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Optional

import typer

from sharecore.cli.clients import UsageFailed

Local = Annotated[bool, typer.Option("--local", help="Show times in this machine's zone, not in UTC.")]
Time = Optional[str]  # noqa: UP045 - typer evaluates the annotation
FORMAT = "YYYY-MM-DDThh:mm:ss.sss"


def read_time(text: str, option: str) -> datetime:
    """Return the time that a text means; without a zone it is UTC, as for Kafka's tools.

    Raises:
        UsageFailed: it is none.
    """
    from sharecore.admin.times import parse_time

    try:
        return parse_time(text)
    except ValueError:
        raise UsageFailed(
            f"{option} {text}: not a time; allowed: {FORMAT} with Z or an offset such as +02:00 behind it, "
            "UTC without either"
        ) from None


def show_time(milliseconds: int, *, local: bool = False) -> str:
    """Return a time as text, with its zone."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    if local:
        return moment.astimezone().isoformat(timespec="milliseconds")
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
