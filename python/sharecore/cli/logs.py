"""How the program logs: plain lines on standard error."""

from __future__ import annotations

import logging
import sys

LEVELS = ("debug", "info", "warning", "error")


def set_up_logging(level: str, formatter: logging.Formatter | None = None) -> None:
    """Sends the log to standard error, one line a message, from `level` upwards."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter or logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # what these are worth is decided once, here: a call a message less
    logging.logThreads = False
    logging.logProcesses = False
    logging.logMultiprocessing = False
