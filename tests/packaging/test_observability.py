"""The alert rules speak of metrics that there are, and the docs say what to do about each alert."""

from __future__ import annotations

import re

from tests.harness.broker import ROOT

from sharecore.metrics.families import FAMILIES

RULES = (ROOT / "packaging/observability/alerts.yml").read_text()
PAGE = (ROOT / "docs/metrics.md").read_text()


def test_alerts_are_about_metrics_that_there_are() -> None:
    names = {family.sample_name for family in FAMILIES}
    used = {
        name
        for line in re.findall(r"expr: (.*)", RULES)
        for name in re.findall(r"\b(?:kafka|sharecore)_\w+", line)
    }
    assert used
    assert used <= names


def test_each_alert_has_its_paragraph() -> None:
    alerts = re.findall(r"alert: (\w+)", RULES)
    assert len(alerts) == 6
    assert [alert for alert in alerts if f"**{alert}**" not in PAGE] == []
