"""The index of the documentation for language models."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from tests.tidy.tree import ROOT


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "packaging/site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_index_has_each_page_with_its_first_sentence(site: ModuleType) -> None:
    navigation = [{"Start": "index.md"}, {"Use": [{"Client": "client.md"}, {"More": [{"Deep": "a/b.md"}]}]}]
    pages = {
        "index.md": "# sharecore\n",
        "client.md": "# C\n\n<!-- none -->\n\n    code\n\nReads [records](x.md)\nof a topic. And more.\n",
        "a/b.md": "# Deep\n\n| a | table |\n\nIt has:\n",
    }
    assert site.index(navigation, pages).splitlines() == [
        "",
        "- [Start](.)",
        "",
        "## Use",
        "",
        "- [Client](client/): Reads records of a topic.",
        "",
        "## More",
        "",
        "- [Deep](a/b/): It has",
    ]


def test_each_page_says_in_its_first_sentence_what_it_is_about(site: ModuleType) -> None:
    silent = [
        str(page.relative_to(ROOT))
        for page in (ROOT / "docs").rglob("*.md")
        if not site.first_sentence(page.read_text())
    ]
    assert silent == []
