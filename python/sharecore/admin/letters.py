"""One dead letter (KIP-1191), and which of them are wanted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sharecore.admin.origin import Header, redriven_headers

PREFIX = "__dlq.errors."
REJECTED, EXHAUSTED, EXPIRED = "rejected", "exhausted", "expired"
CAUSES = {
    "Offset rejected by client.": REJECTED,
    "Offset delivery count exceeded the threshold.": EXHAUSTED,
    "Record expired.": EXPIRED,
}


class DeadLetterRecord(NamedTuple):
    """A dead-letter record: its place, and the record it is about.

    Args:
        partition, offset: of the dead-letter topic.
        time_ms: when it was written.
        origin: topic, partition and offset of the record.
        deliveries: how often the record was delivered.
        cause: `rejected`, `exhausted`, `expired`, or whatever the letter says.
        key, value, headers: of the record, where the letter carries them.
    """

    partition: int
    offset: int
    time_ms: int
    origin: tuple[str, int, int]
    group: str
    deliveries: int
    cause: str
    key: bytes | None
    value: bytes | None
    headers: list[Header]

    @property
    def is_copy(self) -> bool:
        """Whether it carries the record."""
        return self.key is not None or self.value is not None or bool(self.headers)

    def redriven_headers(self, own: Iterable[Header]) -> list[Header]:
        """Return the headers of the redriven record.

        Args:
            own: of that record.
        """
        topic, partition, offset = self.origin
        return redriven_headers(
            own,
            topic=topic,
            partition=partition,
            offset=offset,
            group=self.group,
            deliveries=self.deliveries,
        )


def read_letter(
    partition: int,
    offset: int,
    time_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[Header],
) -> DeadLetterRecord | None:
    """Return the dead-letter record that a record contains; None for any other record."""
    errors: dict[str, str] = {}
    own: list[Header] = []
    for name, content in headers:
        if name.startswith(PREFIX):
            errors.setdefault(name.removeprefix(PREFIX), (content or b"").decode(errors="replace"))
        else:
            own.append((name, content))
    try:
        origin = errors["topic"], int(errors["partition"]), int(errors["offset"])
        deliveries = int(errors.get("delivery.count", "0"))
        group = errors["group"]
    except (KeyError, ValueError):
        return None
    cause = errors.get("message", "")
    return DeadLetterRecord(
        partition,
        offset,
        time_ms,
        origin,
        group,
        deliveries,
        CAUSES.get(cause, cause),
        key,
        value,
        own,
    )


@dataclass(frozen=True)
class Wanted:
    """Filter of dead-letter records; a field that is None matches all.

    Args:
        since_ms, until_ms: when the letter was written; the end is not included.
        source: topic of the record.
        pattern: is found in the value.
        headers: of the record, each with this value.
    """

    group: str | None = None
    cause: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    source: str | None = None
    key: str | None = None
    pattern: re.Pattern[str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def takes(self, letter: DeadLetterRecord) -> bool:
        """Whether the letter is one of them."""
        own = {name: (value or b"").decode(errors="replace") for name, value in letter.headers}
        return (
            self.group in (None, letter.group)
            and self.cause in (None, letter.cause)
            and (self.since_ms is None or letter.time_ms >= self.since_ms)
            and (self.until_ms is None or letter.time_ms < self.until_ms)
            and self.source in (None, letter.origin[0])
            and (self.key is None or letter.key == self.key.encode())
            and (
                self.pattern is None
                or self.pattern.search((letter.value or b"").decode(errors="replace")) is not None
            )
            and self.headers.items() <= own.items()
        )
