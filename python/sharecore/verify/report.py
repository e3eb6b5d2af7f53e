"""The result of a check: a self-contained HTML page, and lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from sharecore.verify.check import Result
from sharecore.verify.timeline import Timeline

PROMISES = {
    "lost": "A confirmed write is in the log and visible to readers",
    "failed": "A write that failed is not read",
    "foreign": "Every record read was sent, unchanged",
    "duplicate": "No record is in the log more often than it was sent",
    "changed": "An offset keeps its record",
    "order": "The records of a producer keep their order within a partition",
    "aborted": "Readers of committed records see only those (G1a), and none before its commit",
    "torn": "Transactions are atomic",
    "circle": "Transactions do not read one another's records in a cycle (G1c)",
    "position": "Reader positions and log ends do not go back",
    "committed": "Committed offsets are those last confirmed",
    "start": "Start offsets of share groups only increase",
    "again": "A record with a confirmed accept or reject is not delivered again",
    "overlap": "One member at a time holds a record",
    "count": "Delivery counts increase, up to the limit",
    "given up": "A record is archived only at the delivery limit",
    "stuck": "An unacknowledged record is redelivered",
    "lag": "Lag is the number of unacknowledged records",
}
"""The guarantee that each kind of breach breaks."""

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;
padding:0 1em;color:#1b1f24;background:#fff}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.25em .8em .25em 0;border-bottom:1px solid #d8dee4;vertical-align:top}
td.n,th.n{text-align:right}pre{overflow-x:auto;background:#f4f6f8;padding:.6em;font-size:12px}
.good{color:#1a7f37}.bad{color:#b3261e;font-weight:600}svg{width:100%;height:auto}
@media(prefers-color-scheme:dark){body{color:#e6e9ec;background:#15181c}pre{background:#20252b}td,th{border-color:#3a4048}
.good{color:#56d364}.bad{color:#ff7b72}}
"""
_COLORS = {"ok": "#2f81f7", "failed": "#d29922", "unknown": "#b3261e"}
_WIDTH, _HEIGHT = 900, 200


def summary(result: Result) -> Iterator[str]:
    """Yield the result as terminal lines."""
    lines = sum(result.operations.values())
    seconds = (result.timeline.end_ms - result.timeline.start_ms) / 1000
    yield f"{lines:,} operations with {result.records:,} records in {seconds:,.1f} s, by the history's clock"
    if result.unchecked:
        yield f"{result.unchecked:,} confirmed records were never looked for: nobody read those offsets"
    for breach in result.breaches:
        yield f"BREACH {breach.kind}: {breach.text}"
        for number in breach.lines:
            yield f"    line {number}: {_cut(result.shown.get(number, ''))}"
    more = sum(result.counts.values()) - len(result.breaches)
    if more:
        yield f"and {_count(more, 'more ')} of these kinds"
    total = sum(result.counts.values())
    if total:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(result.counts.items()))
        yield f"{_count(total)}: {kinds}"
    else:
        yield "no breach"


def _count(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}{'breach' if count == 1 else 'breaches'}"


def page(result: Result) -> str:
    """Return the result as an HTML page."""
    total = sum(result.counts.values())
    verdict = f'<span class="bad">{_count(total)}</span>' if total else '<span class="good">no breach</span>'
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>sharecore verify</title><style>{_STYLE}</style></head><body>",
        f"<h1>sharecore verify: {verdict}</h1>",
        _run(result),
        "<h2>Timeline</h2>",
        _chart(result.timeline, [breach.at_ms for breach in result.breaches if breach.at_ms]),
        _faults(result.timeline),
        "<h2>Calls</h2>",
        _calls(result),
        "<h2>Promises</h2>",
        _promises(result.counts),
        *_breaches(result),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _run(result: Result) -> str:
    known = {
        key: value for key, value in result.header.items() if key not in ("op", "start", "end", "outcome")
    }
    rows = [("operations", f"{sum(result.operations.values()):,}"), ("records", f"{result.records:,}")]
    rows.append(("confirmed records that nobody looked for", f"{result.unchecked:,}"))
    rows.append(("seconds", f"{(result.timeline.end_ms - result.timeline.start_ms) / 1000:,.1f}"))
    rows += [(key, _text(value)) for key, value in known.items()]
    return _table(("", ""), rows, numbers=False)


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_text(each)}" for key, each in value.items())
    return str(value)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, numbers: bool = True) -> str:
    kind = ' class="n"' if numbers else ""

    def row(cells: tuple[str, ...], tag: str) -> str:
        first, *others = cells
        rest = "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell in others)
        return f"<tr><{tag}>{escape(first)}</{tag}>{rest}</tr>"

    shown = row(head, "th") if any(head) else ""
    return f"<table>{shown}{''.join(row(each, 'td') for each in rows)}</table>"


def _calls(result: Result) -> str:
    names = sorted({name for name, _ in result.operations} - {"history", "fault", "quiet"})
    rows = [
        (
            name,
            *(f"{result.operations[name, outcome]:,}" for outcome in _COLORS),
            *(f"{result.timeline.latency_ms(name, quantile):,.0f}" for quantile in (0.5, 0.99, 1.0)),
        )
        for name in names
    ]
    return _table(("call", *_COLORS, "median ms", "99 % ms", "longest ms"), rows)


def _promises(counts: Mapping[str, int]) -> str:
    rows = [
        f'<tr><td>{escape(text)}</td><td class="{"bad" if counts.get(kind) else "good"}">'
        f"{_count(counts[kind]) if counts.get(kind) else 'held'}</td></tr>"
        for kind, text in PROMISES.items()
    ]
    return f"<table>{''.join(rows)}</table>"


def _breaches(result: Result) -> Iterator[str]:
    if result.breaches:
        yield f"<h2>Breaches, the first {len(result.breaches)}</h2>"
    for breach in result.breaches:
        lines = "\n".join(f"{number}: {_cut(result.shown.get(number, ''))}" for number in breach.lines)
        yield f"<h3>{escape(breach.kind)}</h3><p>{escape(breach.text)}</p><pre>{escape(lines)}</pre>"


def _cut(text: str) -> str:
    return text if len(text) <= 600 else text[:600] + " ..."


def _chart(timeline: Timeline, breaches: list[float]) -> str:
    """Return a chart of rates by outcome over time, with faults as bands and breaches as marks."""
    length = max(1.0, timeline.end_ms - timeline.start_ms)
    rates = {outcome: timeline.rates(outcome) for outcome in _COLORS}
    top = max((max(values, default=0.0) for values in rates.values()), default=0.0) or 1.0
    parts = [
        f'<rect x="{fault.start_ms / length * _WIDTH:.1f}" y="0" height="{_HEIGHT}" fill="#8884" '
        f'width="{max(1.0, (fault.end_ms - fault.start_ms) / length * _WIDTH):.1f}">'
        f"<title>{escape(fault.kind)}</title></rect>"
        for fault in timeline.faults
    ]
    for outcome, values in rates.items():
        points = " ".join(
            f"{min(1.0, (at + 0.5) * timeline.width_ms / length) * _WIDTH:.1f},"
            f"{_HEIGHT - value / top * (_HEIGHT - 10):.1f}"
            for at, value in enumerate(values)
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{_COLORS[outcome]}" stroke-width="1.5"/>'
        )
    for at in breaches:
        x = (at - timeline.start_ms) / length * _WIDTH
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_HEIGHT}" stroke="#b3261e"/>')
    legend = ", ".join(f'<span style="color:{color}">{outcome}</span>' for outcome, color in _COLORS.items())
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="calls a second">{"".join(parts)}</svg>'
        f"<p>Calls a second, {top:,.0f} at most: {legend}. Gray: faults. Red lines: breaches.</p>"
    )


def _faults(timeline: Timeline) -> str:
    if not timeline.faults:
        return "<p>No faults.</p>"
    rows = [
        (fault.kind, f"{fault.start_ms / 1000:,.1f}", f"{(fault.end_ms - fault.start_ms) / 1000:,.1f}")
        for fault in timeline.faults[:200]
    ]
    table = _table(("fault", "after s", "for s"), rows)
    return f"<details><summary>{len(timeline.faults)} faults</summary>{table}</details>"
