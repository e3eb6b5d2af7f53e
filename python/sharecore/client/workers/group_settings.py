"""The settings of a group that affect a worker: its back-off and its order."""

from __future__ import annotations

from collections.abc import Mapping

from sharecore._core import Record
from sharecore.client.configs import ConfigEntry
from sharecore.client.producing.times import DELIVER_AT_HEADER
from sharecore.client.workers.lanes import Order
from sharecore.client.workers.retry import Backoff

_DIGITS_MAX = 19
Configs = Mapping[str, ConfigEntry]

RESET, LIMIT = "share.auto.offset.reset", "share.delivery.count.limit"
WINDOW, RENEWALS = "share.partition.max.record.locks", "share.renew.acknowledge.enable"
BACKOFF, BACKOFF_ON = "share.retry.backoff.ms", "share.retry.backoff.on"
_BACKOFF_MAX, _BACKOFF_FACTOR = "share.retry.backoff.max.ms", "share.retry.backoff.multiplier"
_BACKOFF_JITTER = "share.retry.backoff.jitter"
_ORDERING, _ORDERING_HEADER = "share.ordering", "share.ordering.key.header"
DELIVER_AT = "share.deliver.at.header"
NAMES = (
    *(RESET, LIMIT, WINDOW, RENEWALS),
    *(BACKOFF, BACKOFF_ON, _BACKOFF_MAX, _BACKOFF_FACTOR, _BACKOFF_JITTER),
    *(_ORDERING, _ORDERING_HEADER, DELIVER_AT),
)


def number_of(configs: Configs | None, name: str) -> int | None:
    """Return a setting that is a whole number; None if it does not exist, or the worker may not read it."""
    value = _value(configs, name)
    return None if value is None else int(value)


def waits_after_release(configs: Configs | None) -> bool:
    """Return whether a released record is known to be redelivered only after a delay."""
    return bool(number_of(configs, BACKOFF)) and "release" in _backoff_on(configs)


def ignores_delivery_times(configs: Configs | None) -> bool:
    """Return whether the group is known to deliver records at once that `send(delay=...)` has written."""
    return configs is not None and _value(configs, DELIVER_AT) != DELIVER_AT_HEADER


def is_early(record: Record, now_ms: float) -> bool:
    """Return whether a record has a delivery time in its header that has not come."""
    due_ms = next((value for name, value in reversed(record.headers) if name == DELIVER_AT_HEADER), None)
    return due_ms is not None and due_ms.isdigit() and len(due_ms) <= _DIGITS_MAX and int(due_ms) > now_ms


def order_of(configs: Configs | None) -> Order | None:
    """Return the group's order; None if it has none, or the worker may not read it."""
    ordering = _value(configs, _ORDERING)
    if ordering not in ("key", "partition"):
        return None
    return Order(ordering == "key", _value(configs, _ORDERING_HEADER) or "")


def backoff_changes(configs: Configs | None, backoff: Backoff) -> dict[str, str]:
    """Return the settings to change so that the group has a back-off."""
    wanted = {
        BACKOFF: str(backoff.first_ms),
        _BACKOFF_MAX: str(backoff.last_ms),
        _BACKOFF_FACTOR: str(float(backoff.factor)),
        _BACKOFF_JITTER: str(float(backoff.jitter)),
    }
    changes = {name: value for name, value in wanted.items() if not _is_number(_value(configs, name), value)}
    on = _backoff_on(configs)
    if "release" not in on:
        changes[BACKOFF_ON] = ",".join(["release", *on])
    return changes


def _value(configs: Configs | None, name: str) -> str | None:
    entry = (configs or {}).get(name)
    return None if entry is None else entry.value


def is_set(configs: Configs, name: str, value: str) -> bool:
    """Return whether the brokers show this value."""
    return _value(configs, name) == value


def _backoff_on(configs: Configs | None) -> list[str]:
    # sharecore shows its own settings only if they are set
    value = _value(configs, BACKOFF_ON) or "release,timeout"
    return [word.strip() for word in value.split(",")]


def _is_number(value: str | None, wanted: str) -> bool:
    return value is not None and float(value) == float(wanted)
