"""`sharecore top`, as it is called."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile, Timeout, run_with
from sharecore.cli.clients import BOOTSTRAP, Bootstrap, CommandFailed, failures_in_one_line


def top(
    bootstrap: Bootstrap = BOOTSTRAP,
    interval: Annotated[float, typer.Option(min=0.5, metavar="SECONDS", help="Refresh interval.")] = 2.0,
    metrics: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Metrics of a sharecore broker: records in flight, age of locks.",
        ),
    ] = "",
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Watch share groups in a terminal: members, lag, rates, redelivered records.

    \b
    sharecore top                                             the cluster on localhost:9092
    sharecore top -b broker:9092                              any Apache Kafka 4.2 or later
    sharecore top --metrics http://localhost:9464/metrics     with records in flight

    \b
    Enter  partitions and members of a group      Esc  back
    s      sort by the next column                r    reverse the order
    /      only names that contain something      q    quit

    SETTLED/S is how fast the start offset advances; CAME BACK counts records that were returned and wait for
    redelivery, read from __share_group_state. A dash: the cluster does not provide it.
    """
    with failures_in_one_line():
        if not sys.stdout.isatty():
            raise CommandFailed("top needs a terminal; `sharecore export-metrics --once` prints the figures")
        from sharecore.admin.scrape import scrape_held
        from sharecore.admin.watch import Watch
        from sharecore.cli.top.app import Top
        from sharecore.client.settings import read_connection_settings
        from sharecore.client.wire.transport import Transport

        cluster = Cluster(bootstrap, setting, command_config, timeout)

        async def work() -> None:
            chosen = cluster.client_settings()
            transport = Transport(read_connection_settings(chosen))
            watch = Watch(transport, partial(scrape_held, metrics) if metrics else None)
            try:
                # report a wrong address, URL or missing rights before taking over the screen
                await watch.look()
                await Top(watch, cluster.servers, interval).run_async()
            finally:
                await watch.close()

        run_with(cluster, work)
