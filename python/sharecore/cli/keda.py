"""`sharecore keda`: KEDA external scaler for share groups."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated, Optional

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile, Timeout
from sharecore.cli.clients import (
    BOOTSTRAP,
    Bootstrap,
    CommandFailed,
    UsageFailed,
    ctrl_c_ends,
    failures_in_one_line,
)
from sharecore.cli.listening import listen_address, url
from sharecore.cli.logs import formatter_of, set_up_logging


def keda(
    bootstrap: Bootstrap = BOOTSTRAP,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address for KEDA; 0.0.0.0:9466 in a container.")
    ] = "localhost:9466",
    interval: Annotated[
        float,
        typer.Option(min=0.5, metavar="SECONDS", help="How often the lag is checked for external-push."),
    ] = 5.0,
    tls_certificate: Annotated[
        Optional[Path],  # noqa: UP045 - typer evaluates the annotation
        typer.Option("--tls-certificate", metavar="FILE", help="Certificate chain in PEM; turns TLS on."),
    ] = None,
    tls_key: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--tls-key", metavar="FILE", help="Private key in PEM, if not in the same file."),
    ] = None,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
    log_format: Annotated[str, typer.Option(metavar="text|json")] = "text",
) -> None:
    """Serve the lag of share groups to KEDA, to scale workers in Kubernetes.

    \b
    sharecore keda -b broker:9092 --listen 0.0.0.0:9466
    sharecore keda -b broker:9093 --command-config client.properties        with TLS and SASL

    Metadata of a trigger (type external or external-push): group (required), topics (comma-separated,
    default all), lagThreshold (records per worker, default 10), activationLagThreshold (default 0). Lag
    includes acquired records, but not those known to wait for a back-off or a delivery time; a paused group
    has none. A group that does not exist yet counts as one worker's records. Needs the right DESCRIBE on the
    groups, and DESCRIBE_CONFIGS to know what waits.
    """
    with failures_in_one_line():
        if tls_key is not None and tls_certificate is None:
            raise UsageFailed("--tls-key needs --tls-certificate")
        set_up_logging("info", formatter_of(log_format))
        host, port = listen_address(listen)
        cluster = Cluster(bootstrap, setting, command_config, timeout)
        certificate = _certificate(tls_certificate, tls_key)
        with ctrl_c_ends():
            asyncio.run(_serve(cluster, host, port, interval, certificate))


def _certificate(chain: Path | None, key: Path | None) -> tuple[bytes, bytes] | None:
    if chain is None:
        return None
    try:
        return chain.read_bytes(), (key or chain).read_bytes()
    except OSError as error:
        raise CommandFailed(str(error)) from None


async def _serve(
    cluster: Cluster, host: str | None, port: int, interval: float, certificate: tuple[bytes, bytes] | None
) -> None:
    from sharecore.admin import Admin
    from sharecore.errors import ConfigError
    from sharecore.keda.scaler import Scaler
    from sharecore.keda.server import ExternalScaler, start

    try:
        admin = Admin(cluster.client_settings())
    except (ConfigError, OSError) as error:
        raise CommandFailed(str(error)) from None
    async with admin:
        calls = ExternalScaler(Scaler(admin), interval)
        try:
            server, bound = await start(calls, f"{host or '[::]'}:{port}", certificate)
        except OSError as error:
            raise CommandFailed(str(error)) from None
        scheme = "http" if certificate is None else "https"
        typer.echo(f"KEDA's external scaler on {url(scheme, host, bound).partition('://')[2]}")
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        try:
            await ended.wait()
        finally:
            await server.stop(grace=2)
