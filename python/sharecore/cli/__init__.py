"""The command line. Each command lives in a module of its own and imports what it needs when it runs."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the program; never returns."""
    try:
        from sharecore.cli.app import main as run
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] == "sharecore":
            raise
        # the engine as a library needs no other package
        sys.exit(f"sharecore: {error.name} is missing: commands take pip install 'sharecore[broker]'")
    except KeyboardInterrupt:
        # as typer ends a command that runs, or loads
        sys.exit(130)
    run()


__all__ = ["main"]
