"""Reports and their charts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sharecore.errors import ConfigError
from sharecore.jobs.audit_report import audit_report
from sharecore.jobs.charts import SERIES_MAX, bar_chart, line_chart, number
from sharecore.jobs.lag_report import age, lag_report
from sharecore.jobs.load import Load
from sharecore.jobs.output import parquet_path, report_path
from sharecore.jobs.poison_report import poison_report
from sharecore.jobs.redrive_report import redrive_report
from sharecore.jobs.report import CELL_CHARACTERS_MAX, ROWS_MAX, Report, readable
from sharecore.jobs.simulate_report import simulation_report
from sharecore.jobs.simulation import simulate


class Tags(HTMLParser):
    """Checks that opened tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(html: str) -> str:
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert tags.addresses == []
    assert "url(" not in html
    return html


def svg(chart: str) -> ElementTree.Element:
    return ElementTree.fromstring(re.findall(r"<svg.*?</svg>", chart, re.DOTALL)[0])


def test_a_line_for_each_series() -> None:
    chart = line_chart("T", {"<a>": [(0, 1), (10, 3)], "b": [(0, 0), (10, 9.5)]}, x="s", y="n")
    lines = svg(chart).findall("polyline")
    assert len(lines) == 2
    (x0, y0), (x1, y1) = (map(float, point.split(",")) for point in lines[1].attrib["points"].split())
    assert x0 < x1
    assert y0 > y1
    assert "&lt;a&gt;" in chart


def test_more_series_than_colors() -> None:
    chart = line_chart("T", {str(at): [(0, 1)] for at in range(SERIES_MAX + 3)}, x="", y="")
    assert len(svg(chart).findall("polyline")) == SERIES_MAX
    assert "and 3 more" in chart


@pytest.mark.parametrize("points", [[(0, 0)], [(5, 5)], [(0, 1e-9), (1, 2e-9)], [(1, 1e12), (2, 3e12)]])
def test_any_numbers_have_axes(points: list[tuple[float, float]]) -> None:
    svg(line_chart("T", {"": points}, x="x", y="y"))


def test_nothing_has_no_chart() -> None:
    assert line_chart("T", {}, x="", y="") == ""
    assert bar_chart("T", [], y="") == ""


def test_bars() -> None:
    bars = svg(bar_chart("T", [("one", 1), ("two", 2)], y="n")).findall("rect")
    assert float(bars[1].attrib["height"]) == pytest.approx(2 * float(bars[0].attrib["height"]), rel=0.01)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (1234567, "1,234,567"), (0.12345, "0.1235"), (12345.6, "12,346")]
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_what_comes_from_records_is_escaped_and_bounded() -> None:
    report = Report("<T>", {"group": "<b>&"})
    report.table("Records", ["value"], [[b"<script>alert(1)</script>"], ["x" * 5000], [None], [b"\xff\x00"]])
    html = check(report.html())
    assert "<script>" not in html
    assert "x" * (CELL_CHARACTERS_MAX + 1) not in html
    assert "0xff00" in html


def test_a_long_table_is_cut_and_says_so() -> None:
    report = Report("T", {})
    report.table("Rows", ["n"], [[at] for at in range(ROWS_MAX + 5)])
    html = check(report.html())
    assert html.count("<tr>") == ROWS_MAX + 1
    assert f"{ROWS_MAX:,} of {ROWS_MAX + 5:,}" in html


def test_an_empty_table() -> None:
    report = Report("T", {})
    report.table("Rows", ["n"], [])
    assert ">none<" in check(report.html())


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"plain", "plain"), ("é".encode() * 3000, "é"), (b"a\nb", r"a\nb"), (b"", ""), (b"\x80", "0x80")],
)
def test_bytes_as_text(data: bytes, text: str) -> None:
    assert readable(data).startswith(text)


def test_where_things_go(tmp_path: Path) -> None:
    assert parquet_path(str(tmp_path), "runs", overwrite=False) == str(tmp_path / "runs")
    (tmp_path / "runs").mkdir()
    with pytest.raises(ConfigError, match="--overwrite"):
        parquet_path(str(tmp_path), "runs", overwrite=False)
    parquet_path(str(tmp_path), "runs", overwrite=True)
    assert not (tmp_path / "runs").exists()
    assert parquet_path("s3a://bucket/x/", "runs", overwrite=False) == "s3a://bucket/x/runs"
    assert report_path(None, None) is None
    assert report_path("out", None) == Path("out/report.html")
    assert report_path("out", "other.html") == Path("other.html")
    with pytest.raises(ConfigError, match="--report"):
        report_path("hdfs://out", None)


def test_the_report_of_a_sweep() -> None:
    rows = []
    for point, members in enumerate((1, 2, 4)):
        out = simulate(Load(members=members, duration_s=2))
        row = {name: getattr(out, name) for name in out.__slots__ if name != "samples"}
        samples = [{name: getattr(each, name) for name in each.__slots__} for each in out.samples]
        rows.append({"point": point, "partition": 0, "members": members, **row, "samples": samples})
    html = check(simulation_report(rows, ["members"], {"seed": 1}).html())
    assert html.count("<svg") == 8
    assert "3 points, 3 runs" in html


STATE = {"group": "g", "topic": "orders", "topicId": "id", "topicPartition": 0}


def test_the_other_reports() -> None:
    lagging = {
        **dict.fromkeys(("lagBytes", "oldestOffset", "oldestTimestamp", "ageMs"), None),
        **dict.fromkeys(("startOffset", "logStartOffset", "logEndOffset", "lag", "settled"), 5),
        **dict.fromkeys(("redelivered", "lagWithoutRedelivered", "deliveryCountMax"), 1),
        **STATE,
        "partition": 0,
    }
    gone = {**lagging, **dict.fromkeys(("lag", "settled", "logEndOffset"), None), "topic": None}
    html = check(lag_report([lagging, {**lagging, "ageMs": 61_000}, gone], {"group": "g"}).html())
    assert "1 min 1 s" in html
    finding = {**STATE, "severity": "error", "rule": "r", "partition": 1, "offset": 2, "explanation": "<e>"}
    counts = {**STATE, "snapshots": 1, "updates": 2, "tombstones": 0, "first": None, "last": None}
    html = check(audit_report([finding, {**finding, "topicId": None}], [counts], {}).html())
    assert 'class="error"' in html
    record = {"topic": "orders", "partition": 0, "offset": 1, "deliveryCount": 4, "timestamp": None}
    record |= {"key": None, "value": bytearray(b"<v>"), "headers": [{"key": "k", "value": None}]}
    html = check(poison_report([record], 1, {}).html())
    assert "k=null" in html
    assert "&lt;v&gt;" in html
    planned = {"topic": "orders", "partition": 0, "rejected": 1, "exhausted": 2, "done": 0}
    moved = {"topic": "orders", "topicPartition": 0, "toTopic": "t", "toPartition": 0, "records": 3}
    moved |= {"first": 0, "last": 2}
    assert "orders-0" in check(redrive_report([planned], [moved], {"executed": True}).html())
    for empty in (
        lag_report([], {}),
        audit_report([], [], {}),
        poison_report([], 0, {}),
        redrive_report([], [], {}),
    ):
        check(empty.html())


@pytest.mark.parametrize(
    ("ms", "text"),
    [(None, "-"), (400, "0.4 s"), (59_999, "59 s"), (3_660_000, "1 h 1 min"), (90_000_000, "1 d 1 h")],
)
def test_ages(ms: int | None, text: str) -> None:
    assert age(ms) == text
