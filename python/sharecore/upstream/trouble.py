"""Trouble that lasts, logged once with its cause and once when it is over."""

from __future__ import annotations

import logging


class Trouble:
    """What goes wrong again and again with one thing until somebody or something puts it right.

    Args:
        logger: of the module whose trouble it is.
        what: cannot be done, as an error names it: "group g cannot be joined".
        level: of the log lines that tell the cause.

    Attributes:
        cause: the last cause; empty while nothing is wrong.
    """

    def __init__(self, logger: logging.Logger, what: str, level: int = logging.WARNING) -> None:
        self.cause = ""
        self._logger, self._what, self._level = logger, what, level

    def goes_on(self, error: object) -> None:
        """Log a cause, unless it is the one that was logged last."""
        cause = str(error)
        if cause != self.cause:
            self.cause = cause
            self._logger.log(self._level, "%s, which is tried again until it works: %s", self._what, cause)
        else:
            self._logger.debug("%s: %s", self._what, cause)

    def is_over(self) -> None:
        """Log that it works again, where it did not."""
        if self.cause:
            self._logger.warning("%s: this is over, it works again", self._what)
            self.cause = ""
