"""The Prometheus protobuf messages, as read by Google's library."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet
from prometheus_client.gc_collector import GCCollector
from prometheus_client.registry import CollectorRegistry

from sharecore.metrics import protobuf
from sharecore.metrics.durations import BUCKETS, EDGES, Durations
from sharecore.metrics.exposition import Exposition, Lines, labels_of
from sharecore.metrics.family import Family, Kind, counter, gauge, histogram, summary

DECLARED = """
MetricFamily: name 1 string, help 2 string, type 3 int32, metric 4 *Metric
Metric: label 1 *LabelPair, gauge 2 Value, counter 3 Value, summary 4 Summary, untyped 5 Value, histogram 7 Histogram
LabelPair: name 1 string, value 2 string
Value: value 1 double
Summary: sample_count 1 uint64, sample_sum 2 double
Histogram: sample_count 1 uint64, sample_sum 2 double, bucket 3 *Bucket, schema 5 sint32, zero_threshold 6 double, zero_count 7 uint64, positive_span 12 *BucketSpan, positive_delta 13 *sint64
Bucket: cumulative_count 1 uint64, upper_bound 2 double
BucketSpan: offset 1 sint32, length 2 uint32
"""  # noqa: E501
"""The used part of io.prometheus.client: field, number, type; * if repeated."""
COUNTER, GAUGE, SUMMARY, HISTOGRAM = 0, 1, 2, 4


def declared() -> Any:
    """Return the class of MetricFamily."""
    file = FileDescriptorProto(name="metrics.proto", package="p", syntax="proto3")
    for line in DECLARED.strip().splitlines():
        name, _, fields = line.partition(": ")
        message = file.message_type.add(name=name)
        for field in fields.split(", "):
            called, number, kind = field.split()
            label = (
                FieldDescriptorProto.LABEL_REPEATED if kind[0] == "*" else FieldDescriptorProto.LABEL_OPTIONAL
            )
            added = message.field.add(name=called, number=int(number), label=label)
            kind = kind.removeprefix("*")
            if kind[0].isupper():
                added.type, added.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".p.{kind}"
            else:
                added.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("p.MetricFamily"))


FAMILY = declared()


def read(sheet: Exposition, lines: Lines | None = None) -> dict[str, Any]:
    """Return the decoded families, by name."""
    found, at = {}, 0
    written = protobuf.Writer().messages(sheet.registry().collect(), lines or Lines())
    while at < len(written):
        length = shift = 0
        while True:
            byte = written[at]
            length |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        family = FAMILY.FromString(written[at : at + length])
        assert not len(UnknownFieldSet(family))
        found[family.name] = family
        at += length
    return found


def labels(metric: Any) -> dict[str, str]:
    return {label.name: label.value for label in metric.label}


def test_samples_come_back_as_they_were_given() -> None:
    sheet = Exposition()
    sheet.add(gauge("depth", "How deep.", "lake"), -4.5, "north")
    sheet.add(gauge("depth", "How deep.", "lake"), 1e300, 's"\\\nü')
    sheet.add(counter("fish", "Caught."), 7)
    sheet.summary(summary("swim_seconds", "Swims.", "who"), 2**40, 1.5, "we")
    sheet.info(Family("build", Kind.INFO, "What it is."), {"version": "1.2"})
    found = read(sheet)
    assert found.keys() == {"depth", "fish_total", "swim_seconds", "build_info"}
    depth = found["depth"]
    assert (depth.help, depth.type) == ("How deep.", GAUGE)
    told = [(labels(each), each.gauge.value) for each in depth.metric]
    assert told == [({"lake": "north"}, -4.5), ({"lake": 's"\\\nü'}, 1e300)]
    assert (found["fish_total"].type, found["fish_total"].metric[0].counter.value) == (COUNTER, 7)
    (swims,) = found["swim_seconds"].metric
    assert (found["swim_seconds"].type, labels(swims)) == (SUMMARY, {"who": "we"})
    assert (swims.summary.sample_count, swims.summary.sample_sum) == (2**40, 1.5)
    (build,) = found["build_info"].metric
    assert (labels(build), build.gauge.value) == ({"version": "1.2"}, 1)


def test_lines_come_back_too() -> None:
    lag, timeouts = gauge("lag", "Lag.", "group"), counter("timeouts", "Locks.", "group")
    groups = ['say "hi"', "back\\slash", "two\nlines", "a} 5", 'x="y",']
    lines = Lines()
    lines.of(gauge("unused", "Nothing."))
    for number, group in enumerate(groups):
        lines.of(lag).append(f"{labels_of(('group',), (group,))}}} {number}.5")
        lines.of(timeouts).append(f'{labels_of(("group",), (group,))},delivery="2"}} {number}')
    found = read(Exposition(), lines)
    assert found.keys() == {"lag", "timeouts_total"}
    told = [(labels(each), each.gauge.value) for each in found["lag"].metric]
    assert told == [({"group": group}, number + 0.5) for number, group in enumerate(groups)]
    assert [labels(each) for each in found["timeouts_total"].metric] == [
        {"group": group, "delivery": "2"} for group in groups
    ]


def native(metric: Any) -> dict[float, int]:
    """Count by upper bound, of non-empty buckets."""
    told, (span,) = metric.histogram, metric.histogram.positive_span
    assert (told.schema, span.length) == (0, len(told.positive_delta))
    count, found = 0, {told.zero_threshold: told.zero_count}
    for at, delta in enumerate(told.positive_delta):
        count += delta
        found[2.0 ** (span.offset + at)] = count
    return {edge: count for edge, count in found.items() if count}


def test_durations_are_native_histograms_and_classic_ones() -> None:
    sheet, family = Exposition(), histogram("took", "Time.", "request")
    for name, took_ns in (("A", (0, 900, 1000, 3_000_000, 3_100_000, 15 * 10**9, 40 * 10**9)), ("B", ())):
        durations = Durations()
        for ns in took_ns:
            durations.add(ns)
        sheet.histogram(family, EDGES, durations.buckets, durations.total_ns / 1e9, name)
    found = read(sheet)["took"]
    assert found.type == HISTOGRAM
    some, none = found.metric
    assert (labels(some), some.histogram.sample_count) == ({"request": "A"}, 7)
    assert some.histogram.sample_sum == 55.0061019
    # values above all bounds are reported as at most twice the highest
    assert native(some) == {2.0**-20: 2, 2.0**-19: 1, 2.0**-8: 2, 16: 1, 32: 1}
    assert [bucket.upper_bound for bucket in some.histogram.bucket] == [float(edge) for edge in EDGES]
    assert [bucket.cumulative_count for bucket in some.histogram.bucket[-3:]] == [5, 6, 7]
    assert (labels(none), none.histogram.sample_count, native(none)) == ({"request": "B"}, 0, {})
    assert none.histogram.zero_threshold > 0, "else nothing says that it is a native one"


def test_other_edges_are_classic_histograms_alone() -> None:
    sheet = Exposition()
    sheet.histogram(histogram("took", "Time."), ("0.1", "+Inf"), (3, 1), 5.0)
    told = read(sheet)["took"].metric[0].histogram
    assert [bucket.cumulative_count for bucket in told.bucket] == [3, 4]
    assert not told.positive_span
    assert len(EDGES) == BUCKETS


def test_what_the_library_collects_by_itself() -> None:
    written = protobuf.Writer().messages(GCCollector(registry=CollectorRegistry()).collect(), Lines())
    assert b"python_gc_collections_total" in written
