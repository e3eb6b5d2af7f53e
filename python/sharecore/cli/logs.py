"""How the program logs: plain lines or JSON on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timezone
from types import TracebackType

import typer

from sharecore.cli.clients import UsageFailed
from sharecore.logs import LogGuard, LogThread

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")


def set_up_logging(
    level: str, formatter: logging.Formatter | None = None, *, in_thread: bool = False
) -> None:
    """Send the log to standard error, one line a message, from `level` upwards.

    Lines of a kind are limited and counted, and long names are cut (`sharecore.logs`).

    Args:
        level: the lowest that is written.
        formatter: of the lines.
        in_thread: a thread writes them, for a process whose event loop serves others.
    """
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if in_thread:
        handler = LogThread(handler)
        _flush_before_tracebacks(handler)
    handler.addFilter(LogGuard())
    handler.setFormatter(formatter or logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # disabled once, here, to save a call per message
    logging.logThreads = False
    logging.logProcesses = False
    logging.logMultiprocessing = False


def formatter_of(log_format: str) -> logging.Formatter | None:
    """Return the formatter for --log-format, None for plain lines; raise UsageFailed."""
    if log_format not in FORMATS:
        raise UsageFailed(f"--log-format {log_format}: unknown; allowed: one of {', '.join(FORMATS)}")
    return JsonLines() if log_format == "json" else None


def say_after_the_log(line: str) -> None:
    """Write a line to standard error, after everything logged so far."""
    for handler in logging.getLogger().handlers:
        handler.flush()
    typer.echo(line, err=True)


def _flush_before_tracebacks(handler: logging.Handler) -> None:
    """Write pending log lines before the traceback of an exception that ends the process."""
    show = sys.excepthook

    def flush_and_show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        handler.flush()
        show(kind, error, trace)

    sys.excepthook = flush_and_show


class JsonLines(logging.Formatter):
    """Format each line as a JSON object: time, level, logger, message, and the message's fields.

    The last are `group`, `topic`, `partition` and `member`, if the caller passes them as `extra`.
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


class JsonFields(logging.Formatter):
    """A line of a worker's log is one JSON object: time, level, logger, and the fields of the message."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        fields = getattr(record, "fields", None)
        line |= fields if fields is not None else {"message": record.getMessage()}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
