"""Callbacks, for requests on which tasks and futures would cost too much."""

from __future__ import annotations

from collections.abc import Callable

from sharecore._core import Gather, settle
from sharecore.errors import KafkaError

__all__ = ["Done", "Gather", "settle"]

Done = Callable[[KafkaError | None], None]
"""Called once: with None when an operation is durable, else with an error."""
