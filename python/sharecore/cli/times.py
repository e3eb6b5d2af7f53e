"""Times on the command line: read as Kafka's tools read them, and shown with their zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Optional

import typer

from sharecore.cli.clients import UsageFailed

Local = Annotated[bool, typer.Option("--local", help="Show times in this machine's zone, not in UTC.")]
Time = Optional[str]  # noqa: UP045 - typer evaluates the annotation
FORMAT = "YYYY-MM-DDThh:mm:ss.sss"

_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION_MS_MAX = 3650 * _UNIT_MS["d"]


def read_duration_ms(text: str, option: str) -> int:
    """Return the milliseconds of a duration such as 90s, 10m or 1.5h.

    Raises:
        UsageFailed: it is not a duration, or longer than ten years.
    """
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)", text.strip())
    duration_ms = round(float(match[1]) * _UNIT_MS[match[2]]) if match is not None else 0
    if not 0 < duration_ms <= _DURATION_MS_MAX:
        raise UsageFailed(f"{option} {text}: not a duration; allowed: 1ms to 3650d, such as 90s, 10m, 2h, 1d")
    return duration_ms


def show_duration(milliseconds: int) -> str:
    """Return a duration as `read_duration_ms` reads it, in the largest unit that it is a whole number of."""
    name, unit = next(each for each in reversed(_UNIT_MS.items()) if milliseconds % each[1] == 0)
    return f"{milliseconds // unit}{name}"


def read_time(text: str, option: str) -> datetime:
    """Return the time that a text means; without a zone it is UTC, as for Kafka's tools.

    Raises:
        UsageFailed: it is not a time.
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
