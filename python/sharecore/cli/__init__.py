"""The command line. Each command has a module of its own and imports its dependencies when it runs."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the program; never return."""
    try:
        from sharecore.cli.app import main as run

        run()
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] == "sharecore":
            raise
        from sharecore.errors import missing

        # a command of an extra, or an installation without its dependencies
        sys.exit(f"sharecore: {missing(error)}")
    except KeyboardInterrupt:
        # the exit status that typer uses for Ctrl-C
        sys.exit(130)


__all__ = ["main"]
