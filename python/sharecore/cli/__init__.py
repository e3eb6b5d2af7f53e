"""The command line. Each command lives in a module of its own and imports what it needs when it runs."""

from __future__ import annotations

from sharecore.cli.app import main

__all__ = ["main"]
