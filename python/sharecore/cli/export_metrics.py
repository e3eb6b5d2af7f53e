"""`sharecore export-metrics`: share groups of any cluster for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile, Timeout, run_with
from sharecore.cli.clients import (
    BOOTSTRAP,
    Bootstrap,
    CommandFailed,
    ctrl_c_ends,
    failures_in_one_line,
)
from sharecore.cli.listening import listen_address, url
from sharecore.cli.logs import formatter_of, set_up_logging

if TYPE_CHECKING:
    from sharecore.admin.exporter import Exporter


def export_metrics(
    bootstrap: Bootstrap = BOOTSTRAP,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address for /metrics, /healthz and /readyz.")
    ] = "localhost:9465",
    interval: Annotated[
        float, typer.Option(min=0.5, metavar="SECONDS", help="Time from the start of one round to the next.")
    ] = 15.0,
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="Print one round to standard output, for example for a textfile collector."
        ),
    ] = False,
    poison_deliveries: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Records delivered N times or more are poison candidates; 0: do not count them.",
        ),
    ] = 3,
    oldest: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Partitions per round whose oldest unacknowledged record is looked up."
        ),
    ] = 100,
    series: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Maximum number of share partitions with their own series."),
    ] = 10_000,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
    log_format: Annotated[str, typer.Option(metavar="text|json")] = "text",
) -> None:
    """Export lag, state, oldest unacknowledged record and poison candidates of share groups to Prometheus.

    \b
    sharecore export-metrics -b broker:9092                        any Apache Kafka 4.2 or later, or sharecore
    sharecore export-metrics -b broker:9093 --command-config client.properties     with TLS and SASL
    sharecore export-metrics --once | grep lag                     one round, printed

    It needs DESCRIBE on the groups and their topics; READ on the topics for the oldest record, and READ on
    __share_group_state for poison candidates. With DESCRIBE_CONFIGS on the groups it also exports whether
    they are paused and why their records wait, if the brokers are sharecore's. Each round asks about up to
    10,000 share partitions, the most lagging topics first; other topics have no sums of waiting records.
    Without a right it logs a warning once and omits those metrics.
    While the cluster is unreachable, sharecore_exporter_up is 0 and no other metric is exported.
    """
    with failures_in_one_line():
        set_up_logging("info", formatter_of(log_format))
        from sharecore.admin.exporter import Exporter
        from sharecore.client.settings import read_connection_settings
        from sharecore.client.wire.transport import Transport

        host, port = listen_address(listen)

        cluster = Cluster(bootstrap, setting, command_config, timeout)

        async def work() -> None:
            chosen = cluster.client_settings()
            transport = Transport(read_connection_settings(chosen))
            exporter = Exporter(
                transport, series_max=series, oldest_max=oldest, poison_deliveries=poison_deliveries
            )
            try:
                if once:
                    await _one_round(exporter)
                else:
                    await _serve(exporter, host, port, interval)
            finally:
                await transport.close()

        with ctrl_c_ends():
            run_with(cluster, work)


async def _one_round(exporter: Exporter) -> None:
    await exporter.look()
    if not exporter.up:
        raise CommandFailed(exporter.trouble)
    typer.echo((await exporter.metrics()).body.decode(), nl=False)


async def _serve(exporter: Exporter, host: str | None, port: int, interval: float) -> None:
    from sharecore.admin.exporter import collect_seldom
    from sharecore.metrics.listener import HttpListener

    collect_seldom()
    pages = {"/metrics": exporter.metrics, "/healthz": exporter.alive, "/readyz": exporter.ready}
    listener = HttpListener(pages)
    bound = await listener.listen(host, port)
    typer.echo(f"metrics on {url('http', host, bound)}/metrics")
    try:
        await exporter.run(interval)
    finally:
        listener.close()
