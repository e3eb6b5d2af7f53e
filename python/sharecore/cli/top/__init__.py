"""`sharecore top`: share groups on a terminal, as they change."""

from __future__ import annotations

from sharecore.cli.top.command import top

__all__ = ["top"]
