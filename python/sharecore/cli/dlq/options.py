"""Options that choose letters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import key_values
from sharecore.cli.clients import UsageFailed, failures_in_one_line
from sharecore.cli.times import FORMAT, Time, read_time

if TYPE_CHECKING:
    from sharecore.admin.letters import Wanted

Text = Optional[str]  # noqa: UP045 - typer evaluates the annotation
Group = Annotated[Text, typer.Option("--group", "-g", help="Only of this share group.")]
Cause = Annotated[
    Text,
    typer.Option(metavar="rejected|exhausted|expired", help="exhausted: the delivery limit was reached."),
]
Since = Annotated[
    Time,
    typer.Option(
        "--since", metavar=FORMAT, help="Written at or after this time; UTC unless a zone is given."
    ),
]
Until = Annotated[
    Time,
    typer.Option("--until", metavar=FORMAT, help="Written before this time; UTC unless a zone is given."),
]
Source = Annotated[Text, typer.Option("--source", metavar="TOPIC", help="Only records from this topic.")]
Key = Annotated[
    Text, typer.Option("--key", help="Only records with this key, if the dead-letter record carries it.")
]
Filter = Annotated[Text, typer.Option("--filter", metavar="REGEX", help="Only records whose value matches.")]
Headers = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--header", metavar="NAME=VALUE", help="Only records with this header; may be repeated."),
]


def wanted_of(
    group: str | None,
    cause: str | None,
    since: str | None,
    until: str | None,
    source: str | None,
    key: str | None = None,
    pattern: str | None = None,
    headers: list[str] | None = None,
) -> Wanted:
    """Return the filter of the options; end the program if one is invalid."""
    from sharecore.admin.letters import EXHAUSTED, EXPIRED, REJECTED, Wanted

    with failures_in_one_line():
        if cause not in (None, REJECTED, EXHAUSTED, EXPIRED):
            raise UsageFailed(f"--cause {cause}: must be one of {REJECTED}, {EXHAUSTED}, {EXPIRED}")
        try:
            compiled = None if pattern is None else re.compile(pattern)
        except re.error as error:
            raise UsageFailed(f"--filter {pattern}: {error}") from None
        return Wanted(
            group,
            cause,
            _milliseconds(since, "--since"),
            _milliseconds(until, "--until"),
            source,
            key,
            compiled,
            key_values(headers or [], "--header"),
        )


def _milliseconds(time: str | None, option: str) -> int | None:
    return None if time is None else round(read_time(time, option).timestamp() * 1000)
