"""A worker's prerequisites: a broker, its topics, and its group's settings."""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sharecore.client.arguments import check_flag, check_text, check_whole
from sharecore.client.configs import ConfigEntry, ResourceKind, alter_configs, describe_configs
from sharecore.client.dead_letters import set_up_dead_letters
from sharecore.client.errors import RETRIED, AuthenticationFailed, Disconnected
from sharecore.client.groups import group_type
from sharecore.client.settings import (
    ConnectionSettings,
    connection_settings_among,
    read_connection_settings,
    read_settings,
)
from sharecore.client.topics import create_topic
from sharecore.client.wire.cluster import Backoff as Pauses
from sharecore.client.wire.refusals import refused_topic
from sharecore.client.wire.transport import Transport
from sharecore.client.workers.group_settings import (
    BACKOFF,
    LIMIT,
    NAMES,
    RENEWALS,
    RESET,
    WINDOW,
    backoff_changes,
    ignores_delivery_times,
    is_set,
    number_of,
    order_of,
    waits_after_release,
)
from sharecore.client.workers.lanes import Order
from sharecore.client.workers.log import WorkerLog
from sharecore.client.workers.retry import Backoff
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls

if TYPE_CHECKING:
    from sharecore.protocol.received import MetadataResponse, MetadataResponseTopic

_DENIED = frozenset({ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED})
_WINDOW_DEFAULT = 2000
_UNKNOWN_SETTING = "Unknown group config name"
"""A broker's error for an unknown setting."""
_TOPIC_SECONDS = 10.0
_TOPIC_PAUSE_SECONDS = 0.5
_NAMES_NEAR_MAX = 3
_PAUSE_MS, _PAUSE_MAX_MS = 1_000, 30_000
_SETTING_SECONDS, _SETTING_PAUSE_SECONDS = 5.0, 0.1


@dataclass(frozen=True, slots=True)
class Needs:
    """What a worker wants to be created or set, named as in `worker`."""

    create_topics: bool = False
    from_beginning: bool | None = None
    max_deliveries: int | None = None
    dead_letters: str | None = None
    backoff: Backoff | None = None
    """The group's back-off."""


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """The group's settings that concern a worker.

    Args:
        delivery_limit: None if the worker may not read it.
        window: records in flight that a share partition may have.
        waits: whether a released record is redelivered after the group's back-off.
        order: the group's order; None if it has none, or the worker may not read it.
        ignores_times: whether the group delivers records before the time in their header.
    """

    delivery_limit: int | None
    window: int
    waits: bool = False
    order: Order | None = None
    ignores_times: bool = False


async def prepare(
    config: Mapping[str, object],
    topics: Sequence[str],
    needs: Needs,
    log: WorkerLog,
    delayed: Callable[[str], None],
) -> GroupLimits:
    """Wait for a broker, and set up the worker's prerequisites.

    Args:
        delayed: called with the reason for each wait.

    Raises:
        KafkaError: a topic does not exist, a permission is missing, or a setting is refused.
    """
    group_id = read_settings(config).group_id
    settings = read_connection_settings(connection_settings_among(config))
    pauses = Pauses(_PAUSE_MS, _PAUSE_MAX_MS)
    while True:
        # asks once, so that a failure is logged at once
        quick, transport = Transport(replace(settings, default_api_timeout_ms=0)), Transport(settings)
        try:
            await quick.check()
            return await _Preparation(transport, group_id, topics, needs, log).run()
        except AuthenticationFailed:
            raise
        except KafkaError as error:
            if not isinstance(error, Disconnected) and error.code not in RETRIED:
                raise
            pause = pauses.seconds()
            delayed(f"no response from {_shown(settings)}: {error}")
            log(
                logging.ERROR,
                "no answer",
                brokers=_shown(settings),
                error=error,
                next_try_in_seconds=round(pause, 1),
            )
        finally:
            await quick.close()
            await transport.close()
        await asyncio.sleep(pause)


class _Preparation:
    def __init__(
        self, transport: Transport, group_id: str, topics: Sequence[str], needs: Needs, log: WorkerLog
    ) -> None:
        self._transport, self._group_id, self._topics = transport, group_id, topics
        self._needs, self._log = needs, log

    async def run(self) -> GroupLimits:
        await self._provide_topics()
        configs = await self._configs()
        self._check_renewals(configs)
        await self._set_start(configs)
        await self._set_limit(configs)
        await self._set_backoff(configs)
        if self._needs.dead_letters is not None:
            await self._set_dead_letters(self._needs.dead_letters)
        configs = await self._configs()
        if configs is None:
            self._log(
                logging.WARNING,
                "settings unknown",
                group=self._group_id,
                advice="grant DESCRIBE_CONFIGS on the group: the worker knows neither its delivery limit nor "
                "its order",
            )
        return GroupLimits(
            number_of(configs, LIMIT),
            number_of(configs, WINDOW) or _WINDOW_DEFAULT,
            waits_after_release(configs),
            order_of(configs),
            ignores_delivery_times(configs),
        )

    # topics

    async def _provide_topics(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + _TOPIC_SECONDS
        while missing := await self._missing():
            if self._needs.create_topics:
                for name in missing:
                    await self._create(name)
            elif loop.time() >= until:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, await self._complaint(missing))
            else:
                await asyncio.sleep(_TOPIC_PAUSE_SECONDS)

    async def _missing(self) -> list[str]:
        missing = []
        for topic in await self._metadata([{"name": name} for name in sorted(set(self._topics))]):
            name = topic.name or ""
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                missing.append(name)
            elif topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise KafkaError(topic.error_code, f"the right READ on topic {name} is missing")
            elif topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION:
                raise refused_topic(name, topic.error_code)
        return missing

    async def _metadata(self, topics: list[dict[str, str]] | None) -> Sequence[MetadataResponseTopic]:
        message = {"topics": topics, "allow_auto_topic_creation": False}
        answer: MetadataResponse = await self._transport.any(calls.METADATA, message)
        return answer.topics

    async def _create(self, name: str) -> None:
        try:
            await create_topic(self._transport, name)
        except KafkaError as error:
            if error.code in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
                right = f"the right CREATE on topic {name} or the cluster is missing, so it cannot be created"
                raise KafkaError(error.code, right) from None
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        else:
            self._log(logging.INFO, "topic created", topic=name)

    async def _complaint(self, missing: Sequence[str]) -> str:
        names = [topic.name for topic in await self._metadata(None) if topic.name]
        said = []
        for name in missing:
            near = difflib.get_close_matches(name, names, n=_NAMES_NEAR_MAX)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            said.append(f"topic {name} does not exist{hint}")
        return ". ".join(said) + ". Create it, or let the worker do it: create_topics=True"

    # the group

    async def _configs(self) -> dict[str, ConfigEntry] | None:
        """Return the group's settings; None if this client may not see them."""
        try:
            return await describe_configs(self._transport, ResourceKind.GROUP, self._group_id, NAMES)
        except KafkaError as error:
            if error.code in _DENIED or error.code is ErrorCode.UNSUPPORTED_VERSION:
                return None
            raise

    def _check_renewals(self, configs: dict[str, ConfigEntry] | None) -> None:
        entry = (configs or {}).get(RENEWALS)
        if entry is not None and entry.value == "false":
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"group {self._group_id} does not allow its members to renew locks, which workers need: "
                f"{self._command({RENEWALS: 'true'})}",
            )

    async def _set_start(self, configs: dict[str, ConfigEntry] | None) -> None:
        """Start share partitions at their first record: jobs may precede the first worker."""
        wanted = self._needs.from_beginning
        entry = (configs or {}).get(RESET)
        if wanted is False or (entry is not None and entry.value == "earliest"):
            return
        if wanted is None:
            if entry is not None and entry.own:
                return
            if await group_type(self._transport, self._group_id) is not None:
                return
        try:
            await self._set({RESET: "earliest"})
        except KafkaError as error:
            if error.code not in _DENIED:
                raise
            remedy = (
                f"{self._command({RESET: 'earliest'})}, or grant ALTER_CONFIGS on the group, "
                "or accept it: from_beginning=False"
            )
            if wanted is None and configs is None:
                self._log(
                    logging.WARNING,
                    "start unknown",
                    group=self._group_id,
                    advice="unless share.auto.offset.reset is set, a new group skips all existing records:"
                    f" {remedy}",
                )
                return
            raise KafkaError(
                error.code,
                f"group {self._group_id} is new and would skip all records already in its topics: {remedy}",
            ) from None

    async def _set_limit(self, configs: dict[str, ConfigEntry] | None) -> None:
        wanted = self._needs.max_deliveries
        if wanted is None or number_of(configs, LIMIT) == wanted:
            return
        try:
            await self._set({LIMIT: str(wanted)})
        except KafkaError as error:
            if error.code not in _DENIED:
                raise KafkaError(error.code, f"max_deliveries={wanted}: {error.message}") from None
            raise KafkaError(
                error.code,
                f"max_deliveries={wanted}: the right ALTER_CONFIGS on group {self._group_id} is missing; "
                f"grant it, or {self._command({LIMIT: str(wanted)})}",
            ) from None

    async def _set_backoff(self, configs: dict[str, ConfigEntry] | None) -> None:
        """Set the group's back-off from `retry`, if the cluster has such a setting."""
        backoff = self._needs.backoff
        if backoff is None:
            return
        changes = backoff_changes(configs, backoff)
        if not changes:
            return
        try:
            await self._set(changes)
        except KafkaError as error:
            if error.code in _DENIED:
                raise KafkaError(
                    error.code,
                    f"retry={backoff}: the right ALTER_CONFIGS on group {self._group_id} is missing; "
                    f"grant it, or {self._command(changes)}",
                ) from None
            if _UNKNOWN_SETTING not in str(error):
                raise KafkaError(error.code, f"retry={backoff}: {error.message}") from None
            self._log(
                logging.WARNING,
                "no group back-off",
                group=self._group_id,
                advice=f"this cluster has no {BACKOFF}: the worker retries in place, holding the record's "
                "lock",
            )

    async def _set(self, values: Mapping[str, str]) -> None:
        """Set the group's settings, and wait until the brokers show them."""
        await alter_configs(self._transport, ResourceKind.GROUP, self._group_id, values)
        for name, value in values.items():
            self._log(logging.INFO, "group set", group=self._group_id, setting=f"{name}={value}")
        loop = asyncio.get_running_loop()
        until = loop.time() + _SETTING_SECONDS
        while loop.time() < until:
            configs = await self._configs()
            if configs is None or all(is_set(configs, name, value) for name, value in values.items()):
                return
            await asyncio.sleep(_SETTING_PAUSE_SECONDS)

    async def _set_dead_letters(self, topic: str) -> None:
        setup = await set_up_dead_letters(self._transport, self._group_id, topic, create=True)
        for change in setup.changes:
            self._log(logging.INFO, "dead letters set up", change=change)
        for unchecked in setup.unchecked:
            self._log(logging.WARNING, "dead letters not checked", what=unchecked)

    def _command(self, values: Mapping[str, str]) -> str:
        options = " ".join(f"--set {name}={value}" for name, value in values.items())
        return f"run `sharecore groups config {self._group_id} {options}`"


def _shown(settings: ConnectionSettings) -> str:
    return ",".join(f"{host}:{port}" for host, port in settings.bootstrap_servers)


def check_needs(needs: Needs) -> None:
    """Raise ConfigError for needs that are invalid, or that no cluster can meet."""
    check_flag("create_topics", needs.create_topics)
    if needs.from_beginning is not None:
        check_flag("from_beginning", needs.from_beginning)
    if needs.max_deliveries is not None:
        check_whole("max_deliveries", needs.max_deliveries, 1)
    if needs.dead_letters is not None:
        check_text("dead_letters", needs.dead_letters)
