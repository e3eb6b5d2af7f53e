"""Writes docs/metrics.md from the declarations of the code: `make metrics-page`."""

from __future__ import annotations

from pathlib import Path

from sharecore.metrics.exporter_families import EXPORTED
from sharecore.metrics.families import FAMILIES, NOT_HERE
from sharecore.metrics.family import Family

PAGE = Path(__file__).parents[2] / "docs/metrics.md"
HEAD = Path(__file__).with_name("metrics.head.md")


def _row(family: Family) -> str:
    labels = ", ".join(family.labels)
    kafka = "<br>".join(f"`{name}`" for name in family.kafka)
    return f"| `{family.sample_name}` | {family.kind.value} | {labels} | {family.doc} | {kafka} |"


def render() -> str:
    """Return the whole page."""
    rows = "\n".join(_row(family) for family in FAMILIES)
    missing = "\n".join(f"| `{name}` | {reason} |" for name, reason in NOT_HERE.items())
    exported = "\n".join(
        f"| `{each.sample_name}` | {', '.join(each.labels)} | {each.doc} |" for each in EXPORTED
    )
    return (
        f"{HEAD.read_text()}\n## Metrics\n\n"
        f"| name | type | labels | what it says | of Kafka |\n|---|---|---|---|---|\n{rows}\n\n"
        f"## Kafka's metrics without a counterpart\n\n| metric | why |\n|---|---|\n{missing}\n\n"
        f"## Metrics of `sharecore export-metrics`\n\n"
        f"| name | labels | what it says |\n|---|---|---|\n{exported}\n"
    )


if __name__ == "__main__":
    PAGE.write_text(render())
