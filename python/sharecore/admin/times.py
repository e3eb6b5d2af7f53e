"""Times as people write them: without a zone they are UTC, as for Kafka's tools."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?", re.IGNORECASE
)


def parse_time(text: str) -> datetime:
    """Parse a time; raise ValueError if the text is not one."""
    if not (_TIME.fullmatch(text) or _DATE.fullmatch(text)):
        raise ValueError(f"{text}: not a time")
    found = datetime.fromisoformat(text.upper())
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
