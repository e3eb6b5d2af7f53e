"""The Prometheus text format, as read by prometheus-client."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from sharecore.metrics.durations import BUCKETS, EDGES, Durations
from sharecore.metrics.exposition import Exposition, Lines, labels_of
from sharecore.metrics.family import Family, Kind, counter, gauge, histogram, summary


def read(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_samples_come_back_as_they_were_given() -> None:
    sheet = Exposition()
    sheet.add(gauge("depth", "How deep.", "lake"), 4.5, "north")
    sheet.add(counter("fish", "Caught."), 7)
    sheet.summary(summary("swim_seconds", "Swims."), 2, 1.5)
    sheet.info(Family("build", Kind.INFO, "What it is."), {"version": "1.2"})
    assert read(sheet.text()) == {
        ("depth", (("lake", "north"),)): 4.5,
        ("fish_total", ()): 7.0,
        ("swim_seconds_count", ()): 2.0,
        ("swim_seconds_sum", ()): 1.5,
        ("build_info", (("version", "1.2"),)): 1.0,
    }


def test_buckets_hold_what_is_not_longer_and_all_before_it() -> None:
    durations = Durations()
    for us in (0, 1, 3, 900, 10**9):
        durations.add(us * 1000)
    sheet = Exposition()
    sheet.histogram(histogram("took", "Time."), EDGES, durations.buckets, durations.total_ns / 1e9)
    found = read(sheet.text())
    assert found["took_count", ()] == 5
    assert found["took_bucket", (("le", "9.5367431640625e-07"),)] == 1
    assert found["took_bucket", (("le", "1.9073486328125e-06"),)] == 2
    assert found["took_bucket", (("le", "3.814697265625e-06"),)] == 3
    assert found["took_bucket", (("le", "0.0009765625"),)] == 4
    assert found["took_bucket", (("le", "+Inf"),)] == 5
    assert found["took_sum", ()] == 1000.000904
    assert len(EDGES) == BUCKETS == len(durations.buckets)


def test_lines_are_the_same_format() -> None:
    lag, timeouts = gauge("lag", "Lag.", "group"), counter("timeouts", "Locks.", "group")
    lines = Lines()
    lines.of(gauge("unused", "Nothing."))
    for group in ('say "hi"', "back\\slash", "two\nlines"):
        lines.of(lag).append(f"{labels_of(('group',), (group,))}}} 3")
        lines.of(timeouts).append(f"{labels_of(('group',), (group,))}}} 4")
    found = read(lines.text())
    assert found == {
        (name, (("group", group),)): value
        for name, value in (("lag", 3), ("timeouts_total", 4))
        for group in ('say "hi"', "back\\slash", "two\nlines")
    }
