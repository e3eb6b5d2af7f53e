"""What it means that an API is on offer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Handler = Callable[[Any, Any], Any]
"""As `broker.handlers` describes it: of a RequestContext and a request makes a Result."""


@dataclass(frozen=True, slots=True)
class Served:
    """An API that is offered: its versions, and the module of `broker.handlers` that handles it.

    Args:
        min_version: lowest version served.
        max_version: highest version served.
        module: name of the module under `sharecore.broker.handlers`, imported when a client first needs it.
        offered_min_version: lowest version that ApiVersions tells, where that is another.
        handler: handles it in the place of the module.
    """

    min_version: int
    max_version: int
    module: str
    offered_min_version: int | None = None
    handler: Handler | None = None
