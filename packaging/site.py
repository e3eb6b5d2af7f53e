"""Hooks of mkdocs: the first page is the README, and files beside docs/ are named instead of linked to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def on_files(files: Any, config: Any) -> Any:
    """Add the README as the first page."""
    from mkdocs.structure.files import File

    text = (ROOT / "README.md").read_text()
    # ](docs/x.md) -> ](x.md); a folder of docs/ has no page of its own
    text = re.sub(r"\[([^\]]+)\]\(docs/decisions\)", r"\1", text)
    text = text.replace("](docs/", "](")
    text = re.sub(r"\[([^\]]+)\]\(LICENSE\)", r"\1", text)
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Names what is beside docs/, which the site does not have."""
    above = "../" * page.file.src_uri.count("/") + "../"
    return re.sub(rf"\[([^\]]+)\]\({re.escape(above)}(?!\.)([^)]+)\)", r"\1 (`\2`)", markdown)
