"""`sharecore dlq`: show and redrive dead-letter records."""

from __future__ import annotations

from sharecore.cli.dlq.commands import dlq

__all__ = ["dlq"]
