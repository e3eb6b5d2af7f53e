"""Writes the dashboard for Grafana, `sharecore.json`: `make dashboard`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("sharecore.json")

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_BROKER = 'job=~"$job", instance=~"$instance"'
_GROUP = f'{_BROKER}, group=~"$group"'
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 3
_LOCAL_TIME = "kafka_network_request_metrics_local_time_seconds"
_SHARE_GROUPS = "kafka_server_share_group_metrics"
_REQUEST_TIME = f"kafka_network_request_metrics_total_time_seconds_bucket{{{_BROKER}}}[$__rate_interval]"


@dataclass(frozen=True)
class Panel:
    """A graph.

    Args:
        unit: Grafana's name of the unit.
        queries: each with what its lines are called.
    """

    title: str
    description: str
    unit: str
    queries: tuple[tuple[str, str], ...]


def _rate(name: str, matchers: str) -> str:
    return f"rate({name}{{{matchers}}}[$__rate_interval])"


def _sum(labels: str, name: str, matchers: str) -> str:
    return f"sum by ({labels}) ({_rate(name, matchers)})"


def _quantile(quantile: float, name: str) -> tuple[str, str]:
    buckets = f"sum by (le) ({_rate(name + '_bucket', _BROKER)})"
    return f"histogram_quantile({quantile}, {buckets})", f"p{quantile * 100:g}"


ROWS: dict[str, tuple[Panel, ...]] = {
    "Share groups": (
        Panel(
            "Lag",
            "Records of a topic that wait for a share group or are in its hands.",
            "short",
            ((f"sum by (group, topic) (sharecore_share_group_lag{{{_GROUP}}})", "{{group}} {{topic}}"),),
        ),
        Panel(
            "In flight",
            "Records that are leased, given back, or settled behind one that is not.",
            "short",
            (
                (
                    f"sum by (group, topic) (sharecore_share_group_in_flight{{{_GROUP}}})",
                    "{{group}} {{topic}}",
                ),
            ),
        ),
        Panel(
            "Oldest lease",
            "Age of the oldest lease not renewed since. Near the lock duration workers are too slow.",
            "s",
            (
                (
                    f"max by (group, topic) (sharecore_share_group_oldest_lease_age_seconds{{{_GROUP}}})",
                    "{{group}} {{topic}}",
                ),
            ),
        ),
        Panel(
            "Members",
            "Members of each group.",
            "short",
            ((f"sum by (group) (sharecore_group_members{{{_GROUP}}})", "{{group}}"),),
        ),
        Panel(
            "Deliveries by count",
            "Records leased a second, by which delivery it was: all above the first is work done again.",
            "rowsps",
            (
                (
                    _sum("delivery", "sharecore_share_group_deliveries_total", _GROUP),
                    "delivery {{delivery}}",
                ),
            ),
        ),
        Panel(
            "Acknowledgements",
            "Records a second, by what was said of them.",
            "rowsps",
            (
                (
                    _sum("ack_type", f"{_SHARE_GROUPS}_record_acknowledgements_total", _GROUP),
                    "{{ack_type}}",
                ),
            ),
        ),
        Panel(
            "Locks that ran out",
            "Records a second whose lease ended before they were settled.",
            "rowsps",
            (
                (
                    _sum("group, topic", "sharecore_share_group_acquisition_lock_timeouts_total", _GROUP),
                    "{{group}} {{topic}}",
                ),
            ),
        ),
        Panel(
            "Dead letters",
            "Records written to the groups' dead-letter topics, and ranges that could not be.",
            "rowsps",
            (
                (
                    _sum("group", f"{_SHARE_GROUPS}_dead_letter_queue_record_count_total", _GROUP),
                    "{{group}}",
                ),
                (
                    "sum by (group) ("
                    + _rate(
                        "kafka_server_share_group_metrics_dead_letter_queue_failed_produce_requests_total",
                        _GROUP,
                    )
                    + ")",
                    "{{group}} failed",
                ),
            ),
        ),
        Panel(
            "Partitions farthest behind",
            "The twenty share partitions with most lag.",
            "short",
            (
                (
                    f"topk(20, sum by (group, topic, partition) (sharecore_share_partition_lag{{{_GROUP}}}))",
                    "{{group}} {{topic}}-{{partition}}",
                ),
            ),
        ),
        Panel(
            "In flight by partition",
            "The twenty share partitions with most records in flight: at share.partition.max.record.locks "
            "nothing more is handed out.",
            "short",
            (
                (
                    "topk(20, sum by (group, topic, partition) ("
                    f"kafka_server_share_partition_metrics_in_flight_message_count{{{_GROUP}}}))",
                    "{{group}} {{topic}}-{{partition}}",
                ),
            ),
        ),
        Panel(
            "Oldest unsettled record",
            "Of sharecore export-metrics: age of the oldest record that waits or is in flight.",
            "s",
            (
                (
                    f"max by (group, topic) (sharecore_share_group_oldest_unsettled_seconds{{{_GROUP}}})",
                    "{{group}} {{topic}}",
                ),
            ),
        ),
        Panel(
            "Poison candidates",
            "Of sharecore export-metrics: records that came back again and again and wait to be delivered.",
            "short",
            (
                (
                    f"sum by (group, topic) (sharecore_share_group_poison_candidates{{{_GROUP}}})",
                    "{{group}} {{topic}}",
                ),
            ),
        ),
    ),
    "Requests": (
        Panel(
            "Requests",
            "Requests a second, by API.",
            "reqps",
            (
                (
                    _sum("request", "kafka_network_request_metrics_requests_total", _BROKER),
                    "{{request}}",
                ),
            ),
        ),
        Panel(
            "Slowest 1 % of requests",
            "From a request's last byte to its answer, what a fetch waited for included.",
            "s",
            ((f"histogram_quantile(0.99, sum by (le, request) (rate({_REQUEST_TIME})))", "{{request}}"),),
        ),
        Panel(
            "Work a request",
            "What the broker worked before it answered or began to wait, on average.",
            "s",
            (
                (
                    _sum("request", f"{_LOCAL_TIME}_sum", _BROKER)
                    + " / "
                    + _sum("request", f"{_LOCAL_TIME}_count", _BROKER),
                    "{{request}}",
                ),
            ),
        ),
        Panel(
            "Bytes",
            "Bytes a second of requests and of answers.",
            "Bps",
            (
                (f"sum({_rate('kafka_network_request_metrics_request_bytes_total', _BROKER)})", "in"),
                (f"sum({_rate('kafka_server_broker_topic_metrics_bytes_out_total', _BROKER)})", "out"),
            ),
        ),
        Panel(
            "Connections",
            "Open connections by listener.",
            "short",
            (
                (
                    f"sum by (listener) (kafka_server_socket_server_metrics_connection_count{{{_BROKER}}})",
                    "{{listener}}",
                ),
            ),
        ),
        Panel(
            "Groups",
            "Share groups by state.",
            "short",
            (
                (
                    f"sum by (state) (kafka_server_group_coordinator_metrics_share_group_count{{{_BROKER}}})",
                    "{{state}}",
                ),
            ),
        ),
    ),
    "Store and process": (
        Panel(
            "Commits",
            "How long it takes to write and sync what was staged.",
            "s",
            (
                _quantile(0.5, "sharecore_store_commit_seconds"),
                _quantile(0.99, "sharecore_store_commit_seconds"),
            ),
        ),
        Panel(
            "Written",
            "Bytes a second to the journal.",
            "Bps",
            (
                (
                    _sum("instance", "sharecore_store_written_bytes_total", _BROKER),
                    "{{instance}}",
                ),
            ),
        ),
        Panel(
            "Commits that failed",
            "On a full disk for instance.",
            "cps",
            (
                (
                    _sum("instance", "sharecore_store_commit_failures_total", _BROKER),
                    "{{instance}}",
                ),
            ),
        ),
        Panel(
            "Disk",
            "Bytes in the journal's files, what of it logs still reach, and the free space beside them.",
            "bytes",
            (
                (f"sum by (instance) (sharecore_store_segment_bytes{{{_BROKER}}})", "{{instance}} written"),
                (f"sum by (instance) (sharecore_store_live_bytes{{{_BROKER}}})", "{{instance}} reached"),
                (f"sum by (instance) (sharecore_store_disk_free_bytes{{{_BROKER}}})", "{{instance}} free"),
            ),
        ),
        Panel(
            "Event-loop delay",
            "How late the broker's one thread comes to a timer.",
            "s",
            (
                _quantile(0.5, "sharecore_event_loop_delay_seconds"),
                _quantile(0.99, "sharecore_event_loop_delay_seconds"),
            ),
        ),
        Panel(
            "Idle",
            "Part of the time in which the broker's one thread has nothing to do.",
            "percentunit",
            (
                (
                    "avg by (instance) ("
                    f"kafka_server_group_coordinator_metrics_thread_idle_ratio{{{_BROKER}}})",
                    "{{instance}}",
                ),
            ),
        ),
        Panel(
            "CPU",
            "Cores in use.",
            "short",
            ((_sum("instance", "process_cpu_seconds_total", _BROKER), "{{instance}}"),),
        ),
        Panel(
            "Memory",
            "Resident memory.",
            "bytes",
            ((f"sum by (instance) (process_resident_memory_bytes{{{_BROKER}}})", "{{instance}}"),),
        ),
        Panel(
            "Share partitions",
            "Those that have state or a leader, and how many of them have no series of their own.",
            "short",
            (
                (f"sum(sharecore_share_partitions{{{_BROKER}}})", "all"),
                (f"sum(sharecore_share_partitions_without_series{{{_BROKER}}})", "without series"),
            ),
        ),
    ),
}


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    return {
        "title": "sharecore",
        "uid": "sharecore",
        "description": "Share groups, requests and the store of sharecore brokers: docs/metrics.md.",
        "tags": ["kafka", "share-groups"],
        "editable": True,
        "schemaVersion": 39,
        "version": 1,
        "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "10s",
        "graphTooltip": 1,
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": list(_variables())},
        "panels": list(_panels()),
    }


def _variables() -> Iterator[dict[str, Any]]:
    yield {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "hide": 0,
        "refresh": 1,
        "regex": "",
    }
    for name, label, metric, matchers in (
        ("job", "Job", "up", ""),
        ("instance", "Instance", "up", '{job=~"$job"}'),
        ("group", "Share group", "sharecore_group_members", f"{{{_BROKER}}}"),
    ):
        query = f"label_values({metric}{matchers}, {name})"
        yield {
            "name": name,
            "label": label,
            "type": "query",
            "datasource": _SOURCE,
            "query": {"qryType": 1, "query": query, "refId": name},
            "current": {"selected": True, "text": "All", "value": "$__all"},
            "includeAll": True,
            "allValue": ".+",
            "multi": True,
            "refresh": 2,
            "sort": 1,
            "hide": 0,
            "regex": "",
        }


def _panels() -> Iterator[dict[str, Any]]:
    number = top = 0
    for title, panels in ROWS.items():
        number += 1
        place = {"x": 0, "y": top, "w": _WIDTH * _COLUMNS, "h": 1}
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "gridPos": place,
            "panels": [],
        }
        for index, panel in enumerate(panels):
            number += 1
            row, column = divmod(index, _COLUMNS)
            place = {"x": column * _WIDTH, "y": top + 1 + row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
            yield _graph(panel, number, place)
        top += 1 + -(-len(panels) // _COLUMNS) * _HEIGHT


def _graph(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "custom": {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 8, "showPoints": "never"},
            },
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {
                "datasource": _SOURCE,
                "editorMode": "code",
                "expr": expression,
                "legendFormat": legend,
                "range": True,
                "refId": chr(ord("A") + index),
            }
            for index, (expression, legend) in enumerate(panel.queries)
        ],
    }


def text() -> str:
    """Return the file's content."""
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


def rules() -> str:
    """Every query as a recording rule, which promtool can check."""
    queries = [query for panels in ROWS.values() for panel in panels for query, _ in panel.queries]
    recorded = [
        {"record": f"dashboard:query_{index}", "expr": query.replace("$__rate_interval", "1m")}
        for index, query in enumerate(queries)
    ]
    return json.dumps({"groups": [{"name": "dashboard", "rules": recorded}]}, indent=1) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--rules"]:
        sys.stdout.write(rules())
    elif sys.argv[1:] == ["--print"]:
        sys.stdout.write(text())
    else:
        TARGET.write_text(text(), encoding="utf-8")
