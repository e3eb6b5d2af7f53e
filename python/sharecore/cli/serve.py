"""`sharecore serve`: settings from a file and the command line, then the broker."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.errors import ConfigError, ConfigUnavailable, KafkaError, os_error_line

if TYPE_CHECKING:
    from sharecore.broker.backend import Backend
    from sharecore.config import BrokerConfig

EXIT_USAGE = 2

Assignments = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer evaluates the annotation
    typer.Option(
        "--set", "-s", metavar="KEY=VALUE", help="A setting that overrides the file; may be repeated."
    ),
]


def serve(
    config: Annotated[
        Optional[Path],  # noqa: UP045 - typer evaluates the annotation
        typer.Option("--config", "-c", metavar="FILE", help="Kafka's server.properties."),
    ] = None,
    settings: Assignments = None,
    host: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Address to listen on and to advertise.  [default: localhost]"),
    ] = None,
    port: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.  [default: 9092]"),
    ] = None,
    data_dir: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="DIR", help="Data directory.  [default: ./data]"),
    ] = None,
    node_id: Annotated[int | None, typer.Option(min=0, help="Id of this broker.  [default: 1]")] = None,
    durability: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="fsync|os|bucket",
            help="fsync: confirmed writes survive a power failure. os: they survive a crash of the process "
            "only, but are faster. bucket: they survive the loss of the machine.  [default: fsync]",
        ),
    ] = None,
    add_scram: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="MECHANISM=[name=USER,password=SECRET]",
            help="A user created at the first start, in kafka-storage's syntax; may be repeated.",
        ),
    ] = None,
    metrics_listener: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="HOST:PORT",
            help="Address for /metrics, /healthz and /readyz, without access control.  [default: off]",
        ),
    ] = None,
    page_listener: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="HOST:PORT",
            help="Address for the web page about share groups; https://HOST:PORT with TLS.  [default: off]",
        ),
    ] = None,
    upstream: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="HOST:PORT,...",
            help="Run as a tier node in front of this Kafka cluster, which keeps records and share state.",
        ),
    ] = None,
    upstream_settings: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "-X", metavar="KEY=VALUE", help="A setting of the connection to that cluster; may be repeated."
        ),
    ] = None,
    advertise: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="[LISTENER://]HOST:PORT",
            help="Address that clients are given for a listener; name the listener if there are several. "
            "May be repeated.  [default: where it listens]",
        ),
    ] = None,
    ephemeral: Annotated[
        bool,
        typer.Option(
            "--ephemeral",
            help="For tests: a free port, a temporary data directory that is deleted at exit, no syncs, no "
            "rebalance delay, and a control endpoint that advances the clock of locks.",
        ),
    ] = False,
    print_address: Annotated[
        bool,
        typer.Option(
            "--print-address", help="Print the addresses as one line of JSON once the broker is ready."
        ),
    ] = False,
    stop_with_stdin: Annotated[
        bool,
        typer.Option(
            "--stop-with-stdin",
            help="Stop when standard input closes, for example because the parent process died.",
        ),
    ] = False,
    log_format: Annotated[
        str,
        typer.Option(
            metavar="text|json", help="json: one object per line, with group, topic, partition and member."
        ),
    ] = "text",
    log_level: Annotated[str, typer.Option(metavar="debug|info|warning|error")] = "info",
) -> None:
    """Run a broker on which stock Kafka clients use share groups unchanged.

    \b
    sharecore serve                                   on localhost:9092, data in ./data
    sharecore serve --port 0 --data-dir ./try        anywhere else
    sharecore serve -c server.properties -s num.partitions=4
    sharecore serve --upstream kafka-1:9092 --node-id 1 --advertise this-host:9092
    sharecore serve --ephemeral --print-address      for a test; sharecore.testing does it for pytest

    Settings have the names of Kafka's server.properties; `sharecore config example` prints them all.
    Environment variables (SHARECORE_LOG_DIRS for log.dirs) override the file, the command line overrides
    both. Ctrl-C or SIGTERM stops the broker cleanly; a second Ctrl-C stops it at once.
    """
    from sharecore.cli.logs import FORMATS, LEVELS, JsonLines, say_after_the_log, set_up_logging

    leaving = ExitStack()
    try:
        if log_level not in LEVELS:
            raise ConfigError(f"--log-level {log_level}: unknown; allowed: one of {', '.join(LEVELS)}")
        if log_format not in FORMATS:
            raise ConfigError(f"--log-format {log_format}: unknown; allowed: one of {', '.join(FORMATS)}")
        set_up_logging(log_level, JsonLines() if log_format == "json" else None, in_thread=True)
        properties = gather(
            config, settings or [], host, port, data_dir, node_id, durability, environment=os.environ
        )
        if ephemeral:
            keeps_data = data_dir is not None or any(each.startswith("log.dir") for each in settings or ())
            properties = leaving.enter_context(_ephemeral(properties, keeps_data))
        if metrics_listener is not None:
            properties["sharecore.metrics.listener"] = metrics_listener
        if page_listener is not None:
            properties["sharecore.page.listener"] = page_listener
        if advertise:
            properties["advertised.listeners"] = advertised(advertise, properties)
        properties |= behind(upstream, upstream_settings or [])
        broker_config = read_config(properties)
        from sharecore.broker.process.run import Announce, Manner, run
        from sharecore.security.first_users import parse_add_scram

        first_users = [parse_add_scram(each) for each in add_scram or ()]
        announce = Announce.JSON if print_address else Announce.LOG if log_format == "json" else Announce.TEXT
        manner = Manner(ephemeral, announce, stop_with_stdin)
        status = run(broker_config, first_users, backend_of(broker_config), manner)
    except (ConfigError, KafkaError, OSError) as error:
        line = os_error_line(error) if isinstance(error, OSError) else str(error)
        if log_format == "json":
            # log collectors parse JSON only
            logging.getLogger("sharecore").error("%s", line)
        else:
            say_after_the_log(f"sharecore: {line}")
        # systemd and the like restart the broker, except after EXIT_USAGE: a restart corrects no setting
        is_lasting = isinstance(error, ConfigError) and not isinstance(error, ConfigUnavailable)
        raise typer.Exit(EXIT_USAGE if is_lasting else 1) from None
    finally:
        leaving.close()
    sys.exit(status)


@contextmanager
def _ephemeral(properties: dict[str, str], keeps_data: bool) -> Iterator[dict[str, str]]:
    """Yield the properties of a broker for tests, with a directory that is deleted at the end.

    Args:
        keeps_data: the command line names a data directory; one of a file or of the environment, as images
            have it, is left alone.

    Raises:
        ConfigError: the data are to be kept, or to be kept elsewhere.
    """
    from sharecore.broker.process.ephemeral import SETTINGS, ephemeral_directory
    from sharecore.config.tier import UPSTREAM_PREFIX

    if keeps_data:
        raise ConfigError("--ephemeral keeps no data; leave out --data-dir (log.dirs) or --ephemeral")
    if any(name.startswith(UPSTREAM_PREFIX) for name in properties):
        raise ConfigError("--ephemeral cannot be a node in front of a cluster; leave out --upstream")
    with ephemeral_directory() as directory:
        own = {"log.dirs": str(directory / "data")}
        yield {**SETTINGS, **{name: properties[name] for name in properties if name != "log.dir"}, **own}


def advertised(addresses: list[str], properties: Mapping[str, str]) -> str:
    """Return the setting `advertised.listeners`: addresses of listeners; without a name, of the only one.

    Raises:
        ConfigError: an address has no name, and there are several listeners.
    """
    listeners = properties.get("listeners", "PLAINTEXT://").split(",")
    controllers = properties.get("controller.listener.names", "").upper().replace(" ", "").split(",")
    names = [
        name for each in listeners if (name := each.partition("://")[0].strip().upper()) not in controllers
    ]
    for address in addresses:
        if "://" not in address and len(names) > 1:
            allowed = " or ".join(f"{name}://{address}" for name in names)
            raise ConfigError(f"--advertise {address}: there are several listeners; allowed: {allowed}")
    return ",".join(each if "://" in each else f"{names[0]}://{each}" for each in addresses)


def behind(upstream: str | None, settings: list[str]) -> dict[str, str]:
    """Return the properties that name the cluster behind a node.

    Raises:
        ConfigError: a setting has no `=`.
    """
    from sharecore.config.tier import UPSTREAM_PREFIX

    properties = {} if upstream is None else {f"{UPSTREAM_PREFIX}bootstrap.servers": upstream}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"-X {setting}: no setting; allowed: KEY=VALUE")
        properties[f"{UPSTREAM_PREFIX}{name.strip()}"] = value.strip()
    return properties


def backend_of(config: BrokerConfig) -> Backend | None:
    """Return the backend of a tier node; None without an upstream cluster."""
    if not config.upstream_settings:
        return None
    from sharecore.tier.backend import TierBackend

    return TierBackend()


def gather(
    config: Path | None,
    settings: list[str],
    host: str | None = None,
    port: int | None = None,
    data_dir: Path | None = None,
    node_id: int | None = None,
    durability: str | None = None,
    *,
    environment: Mapping[str, str],
) -> dict[str, str]:
    """Merge properties of the file, the environment, the options and single settings, in this order.

    Raises:
        ConfigError: the file cannot be read, a setting has no `=`, or a variable or `--set` names no setting.
    """
    from sharecore.config import check_names, read_properties
    from sharecore.config.environment import settings_of

    properties = read_properties(config) if config is not None else {}
    properties |= settings_of(environment)
    if host is not None or port is not None:
        address = f"[{host}]" if host and ":" in host else host or "localhost"
        properties["listeners"] = f"PLAINTEXT://{address}:{9092 if port is None else port}"
        properties.pop("advertised.listeners", None)
    if data_dir is not None:
        properties["log.dirs"] = str(data_dir)
    if node_id is not None:
        properties["node.id"] = str(node_id)
    if durability is not None:
        properties["sharecore.durability"] = durability
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set {setting}: no setting; allowed: KEY=VALUE")
        check_names([name.strip()], "--set ")
        properties[name.strip()] = value.strip()
    return properties


def read_config(properties: dict[str, str]) -> BrokerConfig:
    """Return the typed configuration; log each unknown name, and each setting without effect.

    Raises:
        ConfigError: an invalid value, or a misspelled name.
    """
    from sharecore.config import BrokerConfig, check_spelling, remarks_on, unknown_names

    log = logging.getLogger("sharecore.config")
    check_spelling(properties)
    # logged before the values are read: a bad value may end the start
    for name in unknown_names(properties):
        log.warning("%s is not a setting of this broker or of Kafka's; it is ignored", name)
    config = BrokerConfig.from_properties(properties)
    for remark in remarks_on(properties):
        log.warning("%s", remark)
    return config
