"""An administrator of a cluster, as commands take one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional, TypeVar

import typer
from typer.models import OptionInfo

from sharecore.cli.clients import (
    CONNECT_SECONDS_MAX,
    CommandFailed,
    UsageFailed,
    connect,
    failures_in_one_line,
    names_cluster,
)

if TYPE_CHECKING:
    from sharecore.admin import BlockingAdmin
    from sharecore.client.wire.transport import Transport

API_TIMEOUT_MS = 5000
_SINGLE_MS_MIN = 10
_SINGLE_TRIES = {"socket.connection.setup.timeout.ms": 10_000, "request.timeout.ms": 30_000}
TOKEN_SECONDS = 3600.0
"""After how long a client of confluent-kafka asks for the token again; the broker knows when it ends."""
Value = TypeVar("Value")
Administrator = TypeVar("Administrator")


def _settings_option(*names: str) -> OptionInfo:
    about = "A client setting, such as security.protocol=SASL_SSL; may be repeated."
    option: OptionInfo = typer.Option(*names, metavar="KEY=VALUE", help=about)
    return option


def _file_option(*names: str) -> OptionInfo:
    option: OptionInfo = typer.Option(*names, metavar="FILE", help="Client settings as KEY=VALUE lines.")
    return option


Settings = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer evaluates the annotation
    _settings_option("--set", "-s", "-X"),
]
SettingsFile = Annotated[Optional[Path], _file_option("--config", "-c", "--command-config")]  # noqa: UP045
# for commands that have their own options of these names
SettingsBesideSet = Annotated[Optional[list[str]], _settings_option("-s", "-X")]  # noqa: UP045
SettingsBesideOwn = Annotated[Optional[list[str]], _settings_option("-X")]  # noqa: UP045
FileBesideConfig = Annotated[Optional[Path], _file_option("-c", "--command-config")]  # noqa: UP045
FileBesideOwn = Annotated[Optional[Path], _file_option("--command-config")]  # noqa: UP045


def timeout_option(default_ms: int) -> OptionInfo:
    """`--timeout` of a command that otherwise waits this long."""
    about = f"How long to wait for brokers.  [default: {default_ms // 1000}]"
    option: OptionInfo = typer.Option("--timeout", min=0.1, max=86_400, metavar="SECONDS", help=about)
    return option


Timeout = Annotated[Optional[float], timeout_option(API_TIMEOUT_MS)]  # noqa: UP045


@dataclass(frozen=True)
class Cluster:
    """The cluster that a command is for, as its options say.

    Args:
        address: what --bootstrap-server or its default says; `servers` is what counts.
        settings: those of --set.
        file: that of --config.
        timeout: that of --timeout, in seconds.
    """

    address: str
    settings: list[str] | None = None
    file: Path | None = None
    timeout: float | None = None

    @cached_property
    def given(self) -> Mapping[str, str]:
        """What --set and the file say, and `bootstrap.servers`. The file is read once: it may be a pipe.

        Only the default of --bootstrap-server gives way to `bootstrap.servers` of --set and the file.

        Raises:
            UsageFailed: one of --set is not KEY=VALUE.
            ConfigError, OSError: the file cannot be read.
        """
        from sharecore.config import read_properties

        chosen = read_properties(self.file) if self.file is not None else {}
        chosen |= key_values(self.settings or [], "--set")
        if names_cluster():
            chosen["bootstrap.servers"] = self.address
        chosen.setdefault("bootstrap.servers", self.address)
        return chosen

    @property
    def servers(self) -> str:
        """Return the addresses of the chosen cluster; raise as `given` does."""
        return self.given["bootstrap.servers"]

    def check(self) -> None:
        """Check that a broker listens; raise CommandFailed if none does.

        Clients would try for a while: who mistyped the address wants to know at once.
        """
        from sharecore.errors import ConfigError

        try:
            servers = self.servers
        except (ConfigError, OSError) as error:
            raise CommandFailed(str(error)) from None
        seconds = CONNECT_SECONDS_MAX if self.timeout is None else min(self.timeout, CONNECT_SECONDS_MAX)
        prefix = "--bootstrap-server " if servers == self.address else "bootstrap.servers="
        connect(servers, seconds, prefix).close()

    def client_settings(self, timeout_ms: int = API_TIMEOUT_MS) -> dict[str, str]:
        """Return a client's settings: --timeout, then --set, then the file, then the default.

        Raises:
            UsageFailed: one of --set is not KEY=VALUE.
            ConfigError, OSError: the file cannot be read.
        """
        return {"default.api.timeout.ms": str(timeout_ms)} | with_timeout(self.given, self.timeout)


def with_timeout(settings: Mapping[str, str], timeout: float | None) -> dict[str, str]:
    """Return a client's settings with --timeout, which goes before them."""
    if timeout is None:
        return dict(settings)
    given_ms = max(_SINGLE_MS_MIN, round(timeout * 1000))
    # a single attempt takes no longer than all of them together
    single = {name: str(min(usual_ms, given_ms)) for name, usual_ms in _SINGLE_TRIES.items()}
    return single | dict(settings) | {"default.api.timeout.ms": str(given_ms)}


@contextmanager
def admin_at(cluster: Cluster) -> Iterator[BlockingAdmin]:
    """Yield an admin client of the cluster; a failure ends the program with a one-line error."""
    with failures_in_one_line():
        from sharecore.admin import BlockingAdmin
        from sharecore.errors import ConfigError, KafkaError

        try:
            chosen = cluster.client_settings()
            cluster.check()
            with BlockingAdmin(chosen) as admin:
                yield admin
        except (ConfigError, KafkaError, OSError) as error:
            raise CommandFailed(str(error)) from None


def admin_beside(
    context: typer.Context,
    bootstrap: str,
    setting: list[str] | None,
    file: Path | None,
    timeout: float | None,
) -> AbstractContextManager[BlockingAdmin]:
    """Return an administrator with a subcommand's options, which override those before its name."""
    given, before, whole = context.obj
    return admin_at(Cluster(bootstrap or given, (before or []) + (setting or []), file or whole, timeout))


def run_with(cluster: Cluster, act: Callable[[], Coroutine[object, None, Value]]) -> Value:
    """Return the result of an action on the cluster; raise CommandFailed with one line."""
    from sharecore.errors import ConfigError, KafkaError

    try:
        cluster.check()
        return asyncio.run(act())
    except (ConfigError, KafkaError, OSError) as error:
        raise CommandFailed(str(error)) from None


def topic_id_of(topic: str, cluster: Cluster) -> str:
    """Return the id of a topic in Kafka's notation; raise CommandFailed if there is no such topic."""
    from sharecore.errors import ErrorCode, KafkaError
    from sharecore.sharestate.keys import topic_id_text

    async def look(transport: Transport) -> str:
        try:
            return topic_id_text((await transport.topic(topic))[0])
        except KafkaError as error:
            if error.code not in (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ):
                raise
            raise CommandFailed(f"there is no topic {topic}, or none that this client may DESCRIBE") from None

    return over_transport(cluster, look)


def over_transport(cluster: Cluster, act: Callable[[Transport], Coroutine[object, None, Value]]) -> Value:
    """Return the result of an action over its own connections; raise CommandFailed with one line."""
    from sharecore.client.settings import connection_settings_among, read_connection_settings
    from sharecore.client.wire.transport import Transport

    async def run() -> Value:
        chosen = cluster.client_settings()
        transport = Transport(read_connection_settings(connection_settings_among(chosen)))
        try:
            return await act(transport)
        finally:
            await transport.close()

    return run_with(cluster, run)


def check_answers(cluster: Cluster) -> None:
    """Check that a cluster answers: confluent-kafka would retry for long and give no reason.

    Raises:
        CommandFailed: no broker, another protocol, a certificate or credentials that are not accepted.
    """
    over_transport(cluster, lambda transport: transport.check())


def administered(
    kind: Callable[[dict[str, str]], AbstractAsyncContextManager[Administrator]],
    cluster: Cluster,
    act: Callable[[Administrator], Coroutine[object, None, Value]],
) -> Value:
    """Return the result of an administrator's action; raise CommandFailed with one line.

    Args:
        kind: makes the administrator out of a client's settings.
    """

    async def run() -> Value:
        async with kind(cluster.client_settings()) as admin:
            return await act(admin)

    return run_with(cluster, run)


def confluent_settings(cluster: Cluster) -> dict[str, object]:
    """Return the same for a client of confluent-kafka; raise CommandFailed."""
    from sharecore.client.java_names import from_java
    from sharecore.errors import ConfigError

    try:
        chosen: dict[str, object] = {"log_level": "0", **from_java(cluster.given)}
    except (ConfigError, OSError) as error:
        raise CommandFailed(str(error)) from None
    if "ssl.certificate.location" in chosen:
        chosen.setdefault("ssl.key.location", chosen["ssl.certificate.location"])
    if "sasl.oauthbearer.token.endpoint.url" in chosen:
        chosen.setdefault("sasl.oauthbearer.method", "oidc")
    token = chosen.pop("sasl.oauthbearer.token", None)
    if token is not None:
        chosen["oauth_cb"] = lambda _: (token, time.time() + TOKEN_SECONDS)
    return chosen


def key_values(texts: list[str], option: str) -> dict[str, str]:
    """Return the values of a repeated option; raise UsageFailed if one is not KEY=VALUE."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageFailed(f"{option} {text}: not KEY=VALUE")
        pairs[name.strip()] = value
    return pairs
