"""`sharecore dlq`: what lies in dead-letter topics, and the way back."""

from __future__ import annotations

from sharecore.cli.dlq.commands import dlq

__all__ = ["dlq"]
