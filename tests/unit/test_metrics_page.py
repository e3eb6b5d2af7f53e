"""The metrics page, the code and Apache Kafka 4.3.1's JMX metrics agree."""

from __future__ import annotations

from pathlib import Path

from tests.docs.metrics import PAGE, render

from sharecore.metrics.families import FAMILIES

FACTS = Path(__file__).parents[1] / "docs/kafka-4.3.1-mbeans.txt"
KIP_932 = "kafka.server:type=share-group-metrics"
KIP_932_OTHERS = {"kafka.server:type=share-coordinator-metrics:num-partitions"}
"""Names in the KIP that differ in Apache Kafka."""


def test_the_page_is_what_the_code_declares() -> None:
    assert PAGE.read_text() == render(), "run `make metrics-page`"


def test_what_is_said_to_be_kafkas_is() -> None:
    facts = set(FACTS.read_text().split("\n"))
    named = {name for family in FAMILIES for name in family.kafka}
    # only in 4.4.0 (KIP-1191)
    later = {name for name in named if ",name=DeadLetterQueue" in name}
    unknown = {name for name in named - facts - KIP_932_OTHERS - later if not name.startswith(KIP_932)}
    assert unknown == set()


def test_names_are_prometheus_names() -> None:
    names = [family.sample_name for family in FAMILIES]
    assert len(set(names)) == len(names)
    for family in FAMILIES:
        assert family.name.replace("_", "").isalnum()
        assert family.name.startswith(("kafka_", "sharecore_"))
        assert not family.name.endswith("_total"), "the type adds it"


def test_every_metric_of_share_groups_in_the_kip_is_there() -> None:
    group, share = (
        "kafka.server:type=group-coordinator-metrics",
        "kafka.server:type=share-coordinator-metrics",
    )
    wanted = {
        f"{group},protocol=*:group-count",
        f"{group},state=*:share-group-count",
        f"{group}:share-group-rebalance-rate",
        f"{group}:share-group-rebalance-count",
        f"{group},state=*:num-partitions",
        *(
            f"{KIP_932}:{name}"
            for name in (
                "share-acknowledgement-rate",
                "share-acknowledgement-count",
                "partition-load-time-avg",
                "partition-load-time-max",
            )
        ),
        f"{KIP_932},ack-type=*:record-acknowledgement-rate",
        f"{KIP_932},ack-type=*:record-acknowledgement-count",
        *(
            f"{share}:{name}"
            for name in (
                "partition-load-time-avg",
                "partition-load-time-max",
                "thread-idle-ratio-avg",
                "write-rate",
                "write-total",
                "write-latency-avg",
                "write-latency-max",
                "num-partitions",
            )
        ),
    }
    assert wanted - {name for family in FAMILIES for name in family.kafka} == set()
