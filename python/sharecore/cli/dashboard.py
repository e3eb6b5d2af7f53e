"""`sharecore dashboard`: the page of any cluster."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile, Timeout, run_with
from sharecore.cli.clients import (
    BOOTSTRAP,
    Bootstrap,
    CommandFailed,
    UsageFailed,
    ctrl_c_ends,
    failures_in_one_line,
)
from sharecore.cli.listening import listen_address, url
from sharecore.cli.logs import set_up_logging

if TYPE_CHECKING:
    from sharecore.page.server import PageServer


def dashboard(
    bootstrap: Bootstrap = BOOTSTRAP,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the page is served; port 0 picks a free one.")
    ] = "localhost:9466",
    interval: Annotated[float, typer.Option(min=0.5, metavar="SECONDS", help="Refresh interval.")] = 3.0,
    allow_actions: Annotated[
        bool,
        typer.Option(
            "--allow-actions",
            help="Without logins, let everyone who can reach the page reset, delete and redrive.",
        ),
    ] = False,
    host: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(
            "--host", metavar="NAME", help="A name that browsers call the page by; may be repeated."
        ),
    ] = None,
    certificate: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", help="Certificate chain in PEM; turns TLS on."),
    ] = None,
    key: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", help="Private key of --certificate, if not in the same file."),
    ] = None,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Serve a web page about share groups: lag, members, records in flight, dead-letter records.

    \b
    sharecore dashboard -b broker:9092                        any Apache Kafka 4.2 or later, or sharecore
    sharecore dashboard -b broker:9093 --command-config client.properties     as the user in that file
    sharecore dashboard -b broker:9093 -X security.protocol=SASL_SSL          every user logs in

    Without logins, everyone who can reach the page sees what its user may see, read-only. Users who log in
    may see and do what the cluster's ACLs allow them.
    """
    with failures_in_one_line():
        set_up_logging("info", None)
        from sharecore.page.access import ClusterAccess
        from sharecore.page.app import Page
        from sharecore.page.server import PageServer
        from sharecore.page.server import listen as bind
        from sharecore.page.settings import PageConfig

        address, port = listen_address(listen)
        context = _context(certificate, key)

        cluster = Cluster(bootstrap, setting, command_config, timeout)

        async def work() -> None:
            access = ClusterAccess(cluster.client_settings())
            everyone = allow_actions and not access.mechanisms
            config = PageConfig(
                about=cluster.servers,
                actions="everyone" if everyone else "users",
                hosts=[*(host or ()), *([address] if address else ())],
                interval_s=interval,
            )
            page = Page(access, config)
            listening = bind(address, port)
            bound = listening.getsockname()[1]
            scheme = "http" if context is None else "https"
            typer.echo(f"the page of {cluster.servers} is on {url(scheme, address, bound)}/")
            await _serve(PageServer(page, listening, context))

        with ctrl_c_ends():
            run_with(cluster, work)


async def _serve(server: PageServer) -> None:
    try:
        await server.serve()
    finally:
        await server.stop()


def _context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        if key is not None:
            raise UsageFailed("--key has no effect without --certificate")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise CommandFailed(f"--certificate {certificate}: cannot be loaded: {error}") from None
    return context
