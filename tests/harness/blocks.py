"""Blocks of code in README.md and docs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.harness.broker import ROOT
from tests.harness.tour import BEGIN, END

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"(?:<!-- ([^\n]*) -->\n)?^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A block of code.

    Args:
        page: such as docs/client.md.
        mark: the comment on the line before it, which readers do not see.
        in_tour: whether it is one of the commands that `tests.harness.tour` finds.
    """

    page: str
    language: str
    text: str
    mark: str
    in_tour: bool


def blocks() -> Iterator[Block]:
    """Return the blocks of all pages, in their order."""
    for page in PAGES:
        text = page.read_text()
        begin, end = text.find(BEGIN), text.find(END)
        for found in _BLOCK.finditer(text):
            in_tour = found[2] == "console" and begin < found.start(2) < end
            yield Block(str(page.relative_to(ROOT)), found[2], found[3], found[1] or "", in_tour)
