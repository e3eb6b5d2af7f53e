"""A report as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from pathlib import Path

from sharecore.jobs.charts import number

ROWS_MAX = 1_000
"""Rows of a table in a report; Parquet has all of them."""
CELL_CHARACTERS_MAX = 200
_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1180px; color: #222 }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
dl { display: grid; grid-template-columns: max-content auto; gap: 0 1em }
dt { color: #666 } dd { margin: 0 }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .2em .7em; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top }
th { background: #f4f4f4; white-space: nowrap } td.n { text-align: right; white-space: nowrap }
td.t { overflow-wrap: anywhere; font-family: ui-monospace, monospace; font-size: .92em }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 1em }
svg { width: 100%; height: auto } svg text { font: 11px system-ui, sans-serif; fill: #444 }
svg text.title { font-size: 13px; fill: #222 } svg .grid { stroke: #e2e2e2 }
.legend { font-size: .88em; margin: 0 } .legend span { margin-right: 1em }
.legend i { display: inline-block; width: .8em; height: .8em; margin-right: .35em; border-radius: 2px }
.note { color: #666 } .error { color: #b0261c; font-weight: 600 }
.warning { color: #9a6a00; font-weight: 600 }
"""


class Report:
    """The results of a job as an HTML page.

    Args:
        title: what the job did, and to what.
        facts: what it ran with, by name.
    """

    def __init__(self, title: str, facts: Mapping[str, object]) -> None:
        self._title = title
        pairs = "".join(f"<dt>{escape(name)}</dt><dd>{_text(value)}</dd>" for name, value in facts.items())
        self._parts = [f"<dl>{pairs}</dl>"]

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def table(
        self, title: str, header: Sequence[str], rows: Sequence[Sequence[object]], of: int | None = None
    ) -> None:
        """Add a table; `of` is the number of all rows, if `rows` are not all."""
        shown = rows[:ROWS_MAX]
        head = "".join(f"<th>{escape(name)}</th>" for name in header)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in shown)
        self._parts.append(f"<h2>{escape(title)}</h2>")
        total = len(rows) if of is None else of
        if not rows:
            self._parts.append('<p class="note">none</p>')
            return
        if total > len(shown):
            self._parts.append(f'<p class="note">{len(shown):,} of {total:,}; Parquet has all</p>')
        self._parts.append(
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )

    def charts(self, title: str, charts: Sequence[str]) -> None:
        """Add charts side by side; empty ones are skipped."""
        some = [f"<div>{chart}</div>" for chart in charts if chart]
        if some:
            self._parts.append(f'<h2>{escape(title)}</h2><div class="charts">{"".join(some)}</div>')

    def write(self, path: Path) -> None:
        """Write the page; raise OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.html(), encoding="utf-8")

    def html(self) -> str:
        """Return the page."""
        made = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(self._title)}</title>'
            f"<style>{_STYLE}</style></head><body><h1>{escape(self._title)}</h1>"
            f'{"".join(self._parts)}<p class="note">sharecore, {made}</p></body></html>\n'
        )


def _cell(value: object) -> str:
    if value is None:
        return "<td>-</td>"
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int | float):
        return f'<td class="n">{number(value)}</td>'
    if isinstance(value, bytes | bytearray):
        return f'<td class="t">{_text(readable(bytes(value)))}</td>'
    if value in ("error", "warning"):
        return f'<td class="{value}">{value}</td>'
    return f"<td>{_text(value)}</td>"


def readable(data: bytes) -> str:
    """Return bytes as UTF-8 text, or else in hexadecimal digits."""
    head = data[: 4 * CELL_CHARACTERS_MAX]
    try:
        # the last character may be truncated
        text = head.decode(errors="strict") if len(head) == len(data) else head[:-4].decode(errors="ignore")
    except UnicodeDecodeError:
        return "0x" + head.hex()
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def _text(value: object) -> str:
    text = str(value)
    if len(text) > CELL_CHARACTERS_MAX:
        text = f"{text[:CELL_CHARACTERS_MAX]}… ({len(text):,} characters)"
    return escape(text)
