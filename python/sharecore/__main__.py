"""`python -m sharecore` is `sharecore`."""

from __future__ import annotations

from sharecore.cli import main

if __name__ == "__main__":
    main()
