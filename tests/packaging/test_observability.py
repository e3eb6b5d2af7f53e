"""Dashboard and alert rules speak of metrics that there are, and the docs say what to do about each alert.

`make check-packaging` has promtool evaluate the rules, and Grafana's linter look at the dashboard.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector
from tests.harness.broker import ROOT

from sharecore.metrics.exporter_families import EXPORTED
from sharecore.metrics.families import FAMILIES
from sharecore.metrics.family import Kind

OBSERVABILITY = ROOT / "packaging/observability"
RULES = (OBSERVABILITY / "alerts.yml").read_text()
DASHBOARD = (OBSERVABILITY / "sharecore.json").read_text()
PAGE = (ROOT / "docs/metrics.md").read_text()
NAME = r"\b(?:kafka|sharecore|process)_\w+"
OF_PROMETHEUS = {"job", "instance", "le"}
PARTS = {Kind.HISTOGRAM: ("_bucket", "_count", "_sum"), Kind.SUMMARY: ("_count", "_sum")}


def samples() -> dict[str, set[str]]:
    """Return the labels of each sample, by its name."""
    found = {
        family.sample_name + part: {*family.labels, *OF_PROMETHEUS}
        for family in (*FAMILIES, *EXPORTED)
        for part in PARTS.get(family.kind, ("",))
    }
    process = ProcessCollector(registry=CollectorRegistry()).collect()
    found |= {sample.name: OF_PROMETHEUS for family in process for sample in family.samples}
    return found | {"up": OF_PROMETHEUS}


def panels() -> Iterator[tuple[str, str, str]]:
    """Title, expression and legend of each query."""
    for panel in json.loads(DASHBOARD)["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"], target["legendFormat"]


def expressions() -> list[str]:
    return [*re.findall(r"expr: (.*)", RULES), *(expression for _, expression, _ in panels())]


@pytest.mark.parametrize("expression", expressions())
def test_metrics_and_labels_are_those_that_there_are(expression: str) -> None:
    known = samples()
    names = re.findall(rf"{NAME}|\bup\b", expression)
    assert names, "a query asks for something"
    assert [name for name in names if name not in known] == []
    for name, matchers in re.findall(rf"({NAME})\{{([^}}]*)\}}", expression):
        assert set(re.findall(r"(\w+)=~?\"", matchers)) <= known[name], name
    for grouped in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
        assert all(set(re.findall(r"\w+", grouped)) <= known[name] for name in names), grouped


def test_a_legend_has_the_labels_that_its_query_leaves() -> None:
    for title, expression, legend in panels():
        left = " ".join(re.findall(r"by \(([^)]*)\)", expression))
        assert set(re.findall(r"{{(\w+)}}", legend)) <= set(re.findall(r"\w+", left)), title


def test_each_alert_has_its_paragraph_and_its_trial() -> None:
    alerts = re.findall(r"alert: (\w+)", RULES)
    assert len(alerts) == 17
    assert [alert for alert in alerts if f"**{alert}**" not in PAGE] == []
    tried = set(re.findall(r"alertname: (\w+)", (OBSERVABILITY / "alerts.test.yml").read_text()))
    assert tried == set(alerts)


def test_the_dashboard_is_the_one_that_is_written_down() -> None:
    """`make dashboard`"""
    program = OBSERVABILITY / "dashboard.py"
    printed = subprocess.run([sys.executable, program, "--print"], capture_output=True, text=True, check=True)
    assert printed.stdout == DASHBOARD


def test_the_dashboard_can_be_imported_anywhere() -> None:
    dashboard = json.loads(DASHBOARD)
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert list(variables) == ["datasource", "job", "instance", "group"]
    shown = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert {panel["datasource"]["uid"] for panel in shown} == {"${datasource}"}
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert all(panel["description"] and panel["fieldConfig"]["defaults"]["unit"] for panel in shown)
    places = [tuple(panel["gridPos"][key] for key in "xywh") for panel in dashboard["panels"]]
    cells = [(x + dx, y + dy) for x, y, w, h in places for dx in range(w) for dy in range(h)]
    assert len(cells) == len(set(cells)), "no panel lies on another"
