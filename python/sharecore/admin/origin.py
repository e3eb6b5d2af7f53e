"""Headers of a redriven record that name its origin, as Kafka's dead-letter queue has them.

There (KIP-1191) they are `__dlq.errors.topic`, `.partition`, `.offset`, `.group`, `.delivery.count`, as text.
"""

from __future__ import annotations

from collections.abc import Iterable

PREFIX = "__redrive."
TIMES = PREFIX + "count"

Header = tuple[str, bytes | None]


def redriven_headers(
    headers: Iterable[Header], *, topic: str, partition: int, offset: int, group: str, deliveries: int
) -> list[Header]:
    """Return the headers of a redriven record: its own, its origin, and how often it was redriven.

    What an earlier redrive added is replaced.
    """
    own = list(headers)
    times = next((int(value) for name, value in own if name == TIMES and value and value.isdigit()), 0)
    origin = {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "group": group,
        "delivery.count": deliveries,
        "count": times + 1,
    }
    kept = [header for header in own if not header[0].startswith(PREFIX)]
    return kept + [(PREFIX + name, str(value).encode()) for name, value in origin.items()]
