"""What answers carry where few keys have many records: `make bench-thinned`.

One share consumer of confluent-kafka takes a topic of ten keys, whose records lie in batches of 1,000, with
`share.ordering=key`. Whole batches would be sent once for each answer that has a record of them; what the
broker leaves out is counted by `sharecore_share_group_thinned_bytes_total`.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table
from tests.harness.broker import Broker, free_port
from tests.harness.clients import QUIET, configure_group, create_topic, settle, share_consumer

KEYS, BATCH, VALUE_BYTES = 10, 1000, 100
CODECS = ("none", "lz4", "zstd", "gzip")
_WORDS = [random.Random(word).randbytes(6).hex() for word in range(2000)]


class Figures(NamedTuple):
    """One group that took one topic.

    Attributes:
        sent: bytes of answers to ShareFetch.
        left_out: bytes of record batches that answers left out.
        wanted: bytes of keys and values.
    """

    rate: float
    cpu_s: float
    wanted: int
    sent: float
    left_out: float


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-thinned", description=__doc__)
    parser.add_argument("--records", type=int, default=20_000, help="records a topic (default: %(default)s)")
    parser.add_argument("--codecs", nargs="+", choices=CODECS, default=list(CODECS))
    parser.add_argument(
        "--runs", nargs="+", type=int, default=[1, 64], help="values of share.ordering.run.max"
    )
    parser.add_argument("--cache", default="67108864", help="sharecore.expanded.cache.bytes")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    metrics = f"127.0.0.1:{free_port()}"
    table = Table(
        title=f"{KEYS} keys, batches of {BATCH:,} records of {VALUE_BYTES} bytes", title_justify="left"
    )
    for name in ("codec", "run.max", "records/s", "broker CPU s", "sent / wanted", "whole batches / wanted"):
        table.add_column(name, justify="right")
    with tempfile.TemporaryDirectory() as home:
        settings = {"sharecore.metrics.listener": metrics, "sharecore.expanded.cache.bytes": chosen.cache}
        broker = Broker(Path(home), "sharecore", settings)
        broker.start()
        try:
            for codec in chosen.codecs:
                wanted = produced(broker, codec, chosen.records)
                for run in chosen.runs:
                    figures = taken(broker, metrics, codec, run, chosen.records, wanted)
                    whole = (figures.sent + figures.left_out) / wanted
                    cells = f"{figures.rate:,.0f}", f"{figures.cpu_s:.2f}", f"{figures.sent / wanted:.2f}"
                    table.add_row(codec, str(run), *cells, f"{whole:.1f}")
        finally:
            broker.kill()
    Console(width=120).print(table)


def produced(broker: Broker, codec: str, count: int) -> int:
    """Fill a topic; return the bytes of its keys and values."""
    create_topic(broker.bootstrap, codec)
    chance, wanted = random.Random(1), 0
    producer = Producer({
        "bootstrap.servers": broker.bootstrap, "linger.ms": 500, "batch.num.messages": BATCH,
        "compression.type": codec, **QUIET,
    })  # fmt: skip
    for number in range(count):
        key = b"key %d" % (number % KEYS)
        value = " ".join(chance.choices(_WORDS, k=8)).encode()[:VALUE_BYTES]
        wanted += len(key) + len(value)
        producer.produce(codec, value, key=key)
        if number % BATCH == BATCH - 1:
            producer.flush()
    producer.flush()
    return wanted


def taken(broker: Broker, metrics: str, codec: str, run: int, count: int, wanted: int) -> Figures:
    """Have a group take a topic."""
    group = f"{codec}-{run}"
    settings = {"share_ordering": "key", "share_ordering_run_max": run, "share_auto_offset_reset": "earliest"}
    configure_group(broker.bootstrap, group, **settings)
    before, cpu_s, begun = sample(metrics), broker.cpu_seconds(), time.monotonic()
    with share_consumer(broker.bootstrap, group, [codec]) as consumer:
        settle(consumer, count, timeout=600)
    took_s, after = time.monotonic() - begun, sample(metrics)
    sent, left_out = (late - early for late, early in zip(after, before, strict=True))
    return Figures(count / took_s, broker.cpu_seconds() - cpu_s, wanted, sent, left_out)


def sample(metrics: str) -> tuple[float, float]:
    """Return the bytes of answers to ShareFetch, and what answers left out."""
    with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=20) as page:
        lines = page.read().decode().splitlines()

    def total(name: str) -> float:
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    sent = total('kafka_server_broker_topic_metrics_bytes_out_total{request="SHARE_FETCH"')
    return sent, total("sharecore_share_group_thinned_bytes_total{")


if __name__ == "__main__":
    main()
