"""The table in docs/clients.md has exactly the clients that `make clients` runs."""

from __future__ import annotations

from tests.clients.environments import ROOT, clients


def test_the_page_has_each_client_that_is_run() -> None:
    page = (ROOT / "docs/clients.md").read_text()
    section = page.split("## Clients that were tried\n")[1].split("\n## ")[0]
    table = section.split("|---|---|---|---|---|\n")[1].split("\n\n")[0]
    rows = [tuple(cell.strip() for cell in line.split("|")[1:4]) for line in table.splitlines()]
    assert rows == [(each.name, each.version, each.ran) for each in clients()]
