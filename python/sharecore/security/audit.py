"""Audit log: denied operations, and allowed ones if enabled."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from typing import NamedTuple

from sharecore.errors import ConfigError
from sharecore.logs import LogGuard, LogThread, cut, shorten, unquoted
from sharecore.security.acl import Operation, ResourceType
from sharecore.security.files import open_to_append
from sharecore.security.principal import Principal

AUDIT = "sharecore.audit"
log = logging.getLogger(AUDIT)
_security_log = logging.getLogger("sharecore.security")


_NAMED_MAX = 100
"""Maximum number of resources named for one request."""


class Decision(NamedTuple):
    """One authorization decision.

    Args:
        more: number of further resources with the same decision, without separate lines.
    """

    principal: Principal
    host: str
    operation: int
    resource_type: int
    name: str
    allowed: bool
    more: int = 0

    def __str__(self) -> str:
        return " ".join(f"{key}={_quoted(value)}" for key, value in self.fields().items())

    def fields(self) -> dict[str, str]:
        """Return the fields of a line by name."""
        fields = {
            "principal": cut(str(self.principal)),
            "host": self.host,
            "operation": Operation(self.operation).name,
            "resource": f"{ResourceType(self.resource_type).name}:{cut(self.name)}",
            "decision": "allowed" if self.allowed else "denied",
        }
        return fields | {"more": str(self.more)} if self.more else fields


def audits_allowed() -> bool:
    """Return whether allowed operations are logged."""
    return log.isEnabledFor(logging.DEBUG)


def record(decision: Decision) -> None:
    """Log a decision, rate-limited per principal and resource type."""
    level = logging.DEBUG if decision.allowed else logging.INFO
    kind = (shorten(str(decision.principal)), decision.operation, decision.resource_type)
    log.log(level, "%s", decision, extra={"kind": kind})


def record_each(about: tuple[Principal, str, int, int], names: Sequence[str], *, allowed: bool) -> None:
    """Log the decision on the resources of one request; many of them share the last line.

    Args:
        about: principal, host, operation and type of the resources.
        names: names of the resources; at least one.
        allowed: the decision.
    """
    shown = names[:_NAMED_MAX]
    for name in shown[:-1]:
        record(Decision(*about, name, allowed))
    record(Decision(*about, shown[-1], allowed, len(names) - len(shown)))


def write_to(path: str, *, allowed: bool) -> None:
    """Write decisions as JSON lines to a separate file, which may be rotated at any time.

    Args:
        path: the file; created with mode 0600 if missing.
        allowed: whether to log allowed operations, too.

    Raises:
        ConfigError: it cannot be written, or is not a regular file.
    """
    try:
        handler = LogThread(_AuditFile(path))
    except OSError as error:
        text = (
            f"sharecore.audit.log={path}: cannot be written: {error.strerror or error}; name a regular file"
        )
        raise ConfigError(text) from error
    handler.setFormatter(_JsonLines())
    handler.addFilter(LogGuard())
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel(logging.DEBUG if allowed else logging.INFO)


class _AuditFile(WatchedFileHandler):
    """Append to a regular file; failures go to the broker's log."""

    def _open(self) -> TextIOWrapper:
        return open(open_to_append(self.baseFilename), "a", encoding="utf-8")

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:  # it was rotated, and cannot be opened again
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        reason = sys.exc_info()[1]
        _security_log.error(
            "%s: cannot write the audit log, decisions are missing in it: %s", self.baseFilename, reason
        )


class _JsonLines(logging.Formatter):
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03d"

    def format(self, record: logging.LogRecord) -> str:
        decision = unquoted(record.args[0]) if isinstance(record.args, tuple) and record.args else None
        fields = decision.fields() if isinstance(decision, Decision) else {"message": record.getMessage()}
        return json.dumps({"time": self.formatTime(record), **fields})


def _quoted(value: str) -> str:
    """Return a value, quoted if it could be read as several fields or lines."""
    plain = value.isprintable() and not any(each in value for each in ' "=')
    return value if plain else json.dumps(value)
