"""Hooks of mkdocs: the first page is the README, and files beside docs/ are named instead of linked to.

`llms.txt` is an index of the pages with a sentence about each, `llms-full.txt` has all of their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_pages: dict[str, str] = {}
"""Text by path below docs/, as it is built."""


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
    """Name what is beside docs/, which the site does not have."""
    above = "../" * page.file.src_uri.count("/") + "../"
    text = re.sub(rf"\[([^\]]+)\]\({re.escape(above)}(?!\.)([^)]+)\)", r"\1 (`\2`)", markdown)
    _pages[page.file.src_uri] = text
    return text


def on_post_build(config: Any) -> None:
    """Write `llms.txt` and `llms-full.txt` beside the pages."""
    site = Path(config["site_dir"])
    head = f"# {config['site_name']}\n\n> {config['site_description']}\n"
    (site / "llms.txt").write_text(head + index(config["nav"], _pages))
    texts = [_pages[path] for _, path in entries(config["nav"]) if path]
    (site / "llms-full.txt").write_text(head + "".join(f"\n{text.strip()}\n" for text in texts))


def index(navigation: list[dict[str, Any]], pages: Mapping[str, str]) -> str:
    """Return the sections of the navigation, each page with a link and its first sentence."""
    lines = []
    for title, path in entries(navigation):
        if not path:
            lines.append(f"\n## {title}\n")
            continue
        url = path.removesuffix("index.md").removesuffix(".md")
        lines.append(f"- [{title}]({url}/): {first_sentence(pages[path])}" if url else f"\n- [{title}](.)")
    return "\n".join(lines) + "\n"


def entries(navigation: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the title and path of each page; a section comes before its pages, with an empty path."""
    for item in navigation:
        for title, under in item.items():
            if isinstance(under, str):
                yield title, under
            else:
                yield title, ""
                yield from entries(under)


def first_sentence(markdown: str) -> str:
    """Return the first sentence of the text, without links."""
    plain = re.sub(r"<!--.*?-->|```.*?```", "", markdown, flags=re.DOTALL)
    for paragraph in plain.split("\n\n"):
        text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(paragraph.split()))
        if text and text[0] not in "#<|!-*>1" and not paragraph.startswith("    "):
            return re.split(r"(?<=[.:])\s", text)[0].rstrip(":")
    return ""
