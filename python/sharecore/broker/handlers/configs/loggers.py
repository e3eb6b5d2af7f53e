"""Loggers of this process: levels can be read and changed at run time, but are not persisted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sharecore.broker.handlers.configs.key_change import Change, KeyOperation
from sharecore.broker.handlers.configs.report import ConfigSource
from sharecore.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from sharecore.broker.handlers.configs.report import Entry

ROOT = "root"
_OURS = "sharecore"
_LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""Kafka's level names, most verbose first."""


def logger_entries() -> list[Entry]:
    """Return each logger with its effective level, for DescribeConfigs."""
    return [
        {
            "name": name,
            "value": _level_name(_logger(name).getEffectiveLevel()),
            "read_only": False,
            "config_source": ConfigSource.DYNAMIC_BROKER_LOGGER,
            "is_sensitive": False,
            "synonyms": [],
            "config_type": 0,
            "documentation": "",
        }
        for name in _names()
    ]


def change_levels(changes: Sequence[Change], *, validate_only: bool) -> None:
    """Set or reset logger levels, all or none.

    Raises:
        KafkaError: INVALID_CONFIG for an unknown logger or level, INVALID_REQUEST for an invalid operation.
    """
    for change in changes:
        _check(change)
    if validate_only:
        return
    for change in changes:
        # Kafka's tools send a value with a deletion
        deleted = change.operation == KeyOperation.DELETE
        _logger(change.name).setLevel(logging.NOTSET if deleted else _LEVELS[change.value or ""])


def _check(change: Change) -> None:
    if change.operation in (KeyOperation.APPEND, KeyOperation.SUBTRACT):
        text = (
            f"{KeyOperation(change.operation).name} operation is not allowed for the BROKER_LOGGER resource"
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if change.name not in _names():
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    if change.operation == KeyOperation.DELETE:
        if change.name == ROOT:
            text = f"Removing the log level of the {ROOT} logger is not allowed"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    elif change.value not in _LEVELS:
        text = (
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log "
            f"level. Valid log levels are {', '.join(sorted(_LEVELS))}"
        )
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)


def _names() -> list[str]:
    """Return the names of the root logger and the broker's loggers, sorted."""
    known = [name for name in tuple(logging.root.manager.loggerDict) if name.startswith(f"{_OURS}.")]
    return [ROOT, *sorted({_OURS, *known})]


def _logger(name: str) -> logging.Logger:
    return logging.getLogger() if name == ROOT else logging.getLogger(name)


def _level_name(level: int) -> str:
    """Return the name of the most verbose enabled level."""
    return next((name for name, number in _LEVELS.items() if number >= level), "OFF")
