"""Lasting errors, logged once with their cause and once when they are resolved."""

from __future__ import annotations

import logging


class Trouble:
    """An error that recurs until it is resolved.

    Args:
        logger: logger of the affected module.
        what: the failed operation: "group g cannot be joined".
        level: log level of the cause.

    Attributes:
        cause: the last cause; empty without an error.
    """

    def __init__(self, logger: logging.Logger, what: str, level: int = logging.WARNING) -> None:
        self.cause = ""
        self._logger, self._what, self._level = logger, what, level

    def goes_on(self, error: object) -> None:
        """Log a cause, unless it was the last one logged."""
        cause = str(error)
        if cause != self.cause:
            self.cause = cause
            self._logger.log(self._level, "%s; retrying until it works: %s", self._what, cause)
        else:
            self._logger.debug("%s: %s", self._what, cause)

    def is_over(self) -> None:
        """Log that the error is resolved, if there was one."""
        if self.cause:
            self._logger.warning("%s: resolved", self._what)
            self.cause = ""
