"""What encryption and rights cost: TLS beside plaintext beside Apache Kafka, handshakes, a check among 10,000
entries: `make bench-security`.
"""

from __future__ import annotations

import argparse
import os
import platform
import ssl
import tempfile
from pathlib import Path

from benches.apache import as_kafka_starts_it
from benches.security.brokers import Secured
from benches.security.checks import Check, check_cost
from benches.security.steps import flooded_latency_ms, handshakes, latency_ms, throughput
from rich import box
from rich.console import Console
from rich.table import Table

KINDS = {"sharecore": "sharecore", "Apache Kafka 4.3.1": "apache"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=500_000, help="records of 100 bytes a step")
    parser.add_argument("--handshakes", type=int, default=500)
    parser.add_argument("--entries", type=int, default=10_000, help="access control entries")
    parser.add_argument("--only", choices=("brokers", "checks"), help="one of the two tables")
    chosen = parser.parse_args()
    as_kafka_starts_it()
    console = Console(width=110)
    console.print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs, {ssl.OPENSSL_VERSION}"
    )
    if chosen.only != "checks":
        console.print(_brokers(chosen.records, chosen.handshakes))
    if chosen.only != "brokers":
        with tempfile.TemporaryDirectory(prefix="bench-security-") as home:
            console.print(_checks(check_cost(Path(home), chosen.entries)))


def _brokers(records: int, count: int) -> Table:
    rows: dict[str, list[str]] = {}
    for kind in KINDS.values():
        with (
            tempfile.TemporaryDirectory(prefix="bench-security-") as home,
            Secured(Path(home), kind) as broker,
        ):
            for listener in ("PLAINTEXT", "SSL"):
                client = broker.client(listener)
                throughput(client, f"warm-{listener}", records // 10)
                produced, consumed = throughput(client, f"bench-{listener}", records)
                for step, figure in (
                    ("records produced a second", f"{produced:,.0f}"),
                    ("records consumed a second", f"{consumed:,.0f}"),
                    ("produce latency, median, ms", f"{latency_ms(client, f'late-{listener}'):.2f}"),
                ):
                    rows.setdefault(f"{step}, {listener}", []).append(figure)
            late = flooded_latency_ms(broker, broker.client("PLAINTEXT"), "late")
            rows.setdefault("the same beside a flood with a quota", []).append(f"{late:.2f}")
            rows.setdefault("TLS handshakes a second", []).append(f"{handshakes(broker, count):,.0f}")
    table = Table("step", *KINDS, box=box.MARKDOWN)
    for step, figures in rows.items():
        table.add_row(step, *figures)
    return table


def _checks(cost: Check) -> Table:
    table = Table("cost of rights, by CPU time", "", box=box.MARKDOWN)
    table.add_row("entries", f"{cost.entries:,}")
    table.add_row("a Produce request in the broker", f"{cost.request_us:.1f} us")
    table.add_row("a check that was made before", f"{cost.known_us:.3f} us, {cost.known_share:.2%} of it")
    table.add_row("a check that is new", f"{cost.new_us:.2f} us, {cost.new_share:.2%} of it")
    return table


if __name__ == "__main__":
    main()
