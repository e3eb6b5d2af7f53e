"""How the program logs: plain lines or JSON on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timezone

from sharecore.logs import LogGuard

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")


def set_up_logging(level: str, formatter: logging.Formatter | None = None) -> None:
    """Sends the log to standard error, one line a message, from `level` upwards.

    Lines of a kind are limited and counted, and long names are cut (`sharecore.logs`).
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(LogGuard())
    handler.setFormatter(formatter or logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # what these are worth is decided once, here: a call a message less
    logging.logThreads = False
    logging.logProcesses = False
    logging.logMultiprocessing = False


class JsonLines(logging.Formatter):
    """A line is one JSON object: time, level, logger, message, and what the message is about.

    That is `group`, `topic`, `partition` and `member`, as far as whoever logs has named them with `extra`.
    """

    _ABOUT = ("group", "topic", "partition", "member")

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, timezone.utc)
        line: dict[str, object] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: record.__dict__[name] for name in self._ABOUT if name in record.__dict__}
        if record.exc_info:
            line["exception"] = record.exc_text or self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
