"""The log of decisions: who was denied what, and where it is asked for who was allowed what."""

from __future__ import annotations

import json
import logging
from logging.handlers import WatchedFileHandler
from typing import NamedTuple

from sharecore.logs import LogGuard, shorten, unquoted
from sharecore.security.acl import Operation, ResourceType
from sharecore.security.principal import Principal

AUDIT = "sharecore.audit"
log = logging.getLogger(AUDIT)


class Decision(NamedTuple):
    """One question that was answered."""

    principal: Principal
    host: str
    operation: int
    resource_type: int
    name: str
    allowed: bool

    def __str__(self) -> str:
        return " ".join(f"{key}={_quoted(value)}" for key, value in self.fields().items())

    def fields(self) -> dict[str, str]:
        """The fields of a line, by name."""
        return {
            "principal": shorten(str(self.principal)),
            "host": self.host,
            "operation": Operation(self.operation).name,
            "resource": f"{ResourceType(self.resource_type).name}:{shorten(self.name)}",
            "decision": "allowed" if self.allowed else "denied",
        }


def audits_allowed() -> bool:
    """Whether somebody wants to know what was allowed."""
    return log.isEnabledFor(logging.DEBUG)


def record(decision: Decision) -> None:
    """Write one decision, within the limit of lines about a principal and a type of resource."""
    level = logging.DEBUG if decision.allowed else logging.INFO
    kind = (shorten(str(decision.principal)), decision.operation, decision.resource_type)
    log.log(level, "%s", decision, extra={"kind": kind})


def write_to(path: str, *, allowed: bool) -> None:
    """From now on decisions are lines of JSON in a file of their own, which may be moved away at any time.

    Args:
        path: the file; made with mode 0600 where it is not there.
        allowed: also what is allowed.

    Raises:
        OSError: it cannot be written.
    """
    handler = WatchedFileHandler(path)
    handler.setFormatter(_JsonLines())
    handler.addFilter(LogGuard())
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel(logging.DEBUG if allowed else logging.INFO)


class _JsonLines(logging.Formatter):
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03d"

    def format(self, record: logging.LogRecord) -> str:
        decision = unquoted(record.args[0]) if isinstance(record.args, tuple) and record.args else None
        told = decision.fields() if isinstance(decision, Decision) else {"message": record.getMessage()}
        return json.dumps({"time": self.formatTime(record), **told})


def _quoted(value: str) -> str:
    """A value that cannot be taken for two, nor for two lines."""
    plain = value.isprintable() and not any(each in value for each in ' "=')
    return value if plain else json.dumps(value)
