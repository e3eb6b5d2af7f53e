"""Log lines of a worker: fields in the text, and as an object for JSON."""

from __future__ import annotations

import logging

from sharecore._core import Record
from sharecore.client.workers.verdicts import describe

logger = logging.getLogger("sharecore.worker")
_KEY_LENGTH_MAX = 100


class WorkerLog:
    """Logs events of one worker.

    Args:
        name: of the handler.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(
        self,
        level: int,
        event: str,
        *,
        record: Record | None = None,
        error: BaseException | None = None,
        trace: bool = False,
        **rest: object,
    ) -> None:
        """Log an event; `trace` adds the error's traceback."""
        if not logger.isEnabledFor(level):
            return
        fields: dict[str, object] = {"event": event, "worker": self._name}
        if record is not None:
            fields |= {
                "topic": record.topic,
                "partition": record.partition,
                "offset": record.offset,
                "delivery_count": record.delivery_count,
            }
        fields |= rest
        if error is not None:
            fields["error"] = describe(error)
        text = " ".join(f"{name}={value}" for name, value in fields.items())
        logger.log(level, text, exc_info=error if trace else None, extra={"fields": fields})


def shown_key(record: Record) -> str | None:
    """Return a record's key as text of bounded length."""
    key = record.key
    if key is None:
        return None
    text = key.decode(errors="backslashreplace") if isinstance(key, bytes) else str(key)
    return text if len(text) <= _KEY_LENGTH_MAX else text[:_KEY_LENGTH_MAX] + "..."
