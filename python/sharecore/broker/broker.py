"""One broker: its components, startup and shutdown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from sharecore._core import Checks
from sharecore.broker.backend import Backend
from sharecore.broker.configs.groups import GroupConfigs
from sharecore.broker.configs.topics import TopicConfigs
from sharecore.broker.connections.authentication import Authentication
from sharecore.broker.connections.limits import check_hosts, connection_limits
from sharecore.broker.connections.mechanisms import Mechanisms
from sharecore.broker.connections.transport import Transport
from sharecore.broker.coordinators.dead_letters import dead_letter_service
from sharecore.broker.coordinators.groups import Coordinators
from sharecore.broker.coordinators.producer_ids import ProducerIds
from sharecore.broker.coordinators.share import ShareServices
from sharecore.broker.features import WITHOUT_SHARE_GROUPS, Features
from sharecore.broker.handlers import TELEMETRY
from sharecore.broker.handlers.configs.report import CLUSTER_WIDE
from sharecore.broker.on_demand import page_of, telemetry, watched
from sharecore.broker.requests.dispatch import Dispatcher
from sharecore.broker.requests.large import LargeRequests
from sharecore.broker.requests.services import Services
from sharecore.broker.store.backend import StoreBackend
from sharecore.clock import Clock, SystemClock
from sharecore.config import BrokerConfig, listeners_of, per_ip_overrides
from sharecore.deadletters import DeadLetterService
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.network import Answer, Connection, Disconnect, HeldSockets, Server
from sharecore.quotas import ClientQuotas, Throttles
from sharecore.rates import Window
from sharecore.security import audit
from sharecore.security.acls import Acls
from sharecore.security.authorizer import Authorizer, super_users_of
from sharecore.security.first_users import FirstUser
from sharecore.security.principal import ANONYMOUS
from sharecore.security.scram import Credentials, first_credential
from sharecore.storage import DamagedLog, ResourceType
from sharecore.waiting import FairThread, HostAddresses, MovableTime, Turns

if TYPE_CHECKING:
    from sharecore.broker.client_telemetry import ClientTelemetry
    from sharecore.broker.metrics.listener import BrokerMetrics
    from sharecore.broker.page import BrokerPage
    from sharecore.metrics.requests import OnFrame

log = logging.getLogger("sharecore.broker")


def _is_unreadable(error: BaseException) -> bool:
    return isinstance(error, KafkaError) and error.code is ErrorCode.KAFKA_STORAGE_ERROR


class Broker(Services):
    """Services shared by request handlers, and the server that calls them.

    Args:
        config: the initial configuration; `config` changes when a client alters it.
        clock: the time.
        users: initial SCRAM users.
        check_names: refuse answers with unknown field names (for tests).
        backend: None for its data directory.
        lock_time: clock and timers of acquisition locks, if a test moves them forward.
        is_lobby: another broker of this process takes over the server later.
        lobby: a broker of this process that stood by; its listeners and connections are taken over.

    Raises:
        ConfigError: invalid listeners, keys or certificates.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        users: Sequence[FirstUser] = (),
        check_names: bool = False,
        backend: Backend | None = None,
        lock_time: MovableTime | None = None,
        is_lobby: bool = False,
        lobby: Broker | None = None,
    ) -> None:
        self.static_config = config
        self.config = config
        self.clock = clock or SystemClock()
        self._lock_time = lock_time
        self.turns = Turns()
        self.hosts = HostAddresses(self._limit_connections)
        self.long_work = FairThread("work")
        self.large_requests = LargeRequests(self.static_config.sharecore_request_entries_max)
        self._first_users = users
        self.backend: Backend = StoreBackend() if backend is None else backend
        self.telemetry: ClientTelemetry | None = None
        self._telemetry = telemetry() if config.sharecore_telemetry_enable else None
        self._super_users = super_users_of(config)
        self.authorizer: Authorizer | None = None
        self.checks = Checks()
        self._lobby = lobby
        self._sends_away = False
        if lobby is None:
            self.listeners = {listener.name: listener for listener in listeners_of(config)}
            self.transport = Transport(config, self.listeners)
        else:
            self.listeners, self.transport = lobby.listeners, lobby.transport
        dispatch: OnFrame = Dispatcher(self, check_names=check_names).on_frame
        self.metrics: BrokerMetrics | None = None
        if config.sharecore_metrics_listener:
            self.metrics, dispatch = watched(self, dispatch)
        self.page: BrokerPage | None = page_of(self) if config.sharecore_page_listener else None
        self.page_port = 0
        if is_lobby:
            self._switch = _Switch(dispatch)
            dispatch = self._switch.on_frame
        self._dispatch = dispatch
        if lobby is None:
            limits = connection_limits(config, self.listeners, {})
            self.server = Server(
                dispatch,
                limits,
                self._opened,
                lambda host: self.quotas.connection_rate(host),
                self.clock.monotonic_ms,
            )
        else:
            self.server = lobby.server
        self._authentication = Authentication(
            lambda: self.config, lambda listener: self.mechanisms.of(listener), dispatch, self.clock
        )
        self.metrics_port = 0

    async def start(self) -> None:
        """Open the storage and listen.

        Raises:
            ConfigError: the storage belongs to another broker, or the persister cannot be loaded.
            OSError: an address is not available, or the storage is unreadable, unwritable or damaged.
        """
        await check_hosts(self.hosts, self.static_config)
        await self.backend.open(self)
        try:
            async with AsyncExitStack() as undo:  # undo a start that fails
                undo.push_async_callback(self.backend.close)
                await self._begin(undo)
                undo.pop_all()
        except BaseException as error:
            if isinstance(error, DamagedLog) or _is_unreadable(error):
                data_dir = self.config.data_dir
                raise OSError(
                    f"{error}; `sharecore store check {data_dir}` shows what is lost, "
                    f"`sharecore store salvage {data_dir} --to NEWDIR` keeps the rest"
                ) from error
            raise

    async def _begin(self, undo: AsyncExitStack) -> None:
        if self._lobby is not None:
            # probes are answered while the storage is opened, which may take minutes
            await self._lobby.close_observers()
        if self.metrics is not None:
            undo.callback(self.metrics.stop)
            self.metrics_port = await self.metrics.start()
        if self.page is not None:
            undo.push_async_callback(self.page.stop)
            self.page_port = self.page.bind()
        await self._start_services(undo)
        undo.callback(self.transport.stop)
        await self.transport.settled()
        undo.push_async_callback(self.server.close)
        await self._bind()
        await self.backend.join(self)
        self.server.commit_with(self.backend.commits)
        undo.callback(self.backend.end)
        undo.callback(self.mechanisms.stop)
        self._listen()
        await self.backend.begin(self)
        if self.metrics is not None:
            self.metrics.ready()
        if self.page is not None:
            self.page.start()

    def _publish_checks(self) -> None:
        """Publish the checks that requests need: authorizer, features, quotas, partition leaders."""
        self.checks.publish(
            rights=self.authorizer is not None,
            features=not self.features.has_share_groups,
            quotas=self.throttles.on,
            leaders=not self.cluster.leads_all,
            leases=not self.cluster.leases_always,
        )

    async def _start_services(self, undo: AsyncExitStack) -> None:
        backend = self.backend
        self.served = backend.served if self._telemetry is None else {**backend.served, **TELEMETRY}
        self.identity, self.catalog, self.cluster = backend.identity, backend.catalog, backend.cluster
        self.topics, self.configs = backend.topics, backend.configs
        if self._telemetry is not None:
            self.telemetry = self._telemetry(self.static_config, self.configs, self.clock.monotonic_ms)
        self.credentials = Credentials(self.catalog)
        self.acls = Acls(self.catalog)
        self.quotas = ClientQuotas(self.catalog)
        self.throttles = _throttles(self.quotas, self.config, self.clock)
        if self.config.sharecore_audit_log:
            audit.write_to(self.config.sharecore_audit_log, allowed=self.config.sharecore_audit_allowed)
        if self._super_users and not self.config.authorizer_class_name:
            log.warning(
                "super.users has no effect: without authorizer.class.name every client has all permissions"
            )
        if self.config.authorizer_class_name:
            self.authorizer = Authorizer(
                self.acls,
                self._super_users,
                open_without_acls=self.config.allow_everyone_if_no_acl_found,
                cache_bytes_max=self.config.sharecore_authorizer_cache_bytes_max,
            )
        if self._first_users:
            await self.credentials.change([first_credential(user) for user in self._first_users])
        self._read_dynamic_config()
        self.mechanisms = Mechanisms(self.config, self.listeners.values(), self.credentials)
        self.configs.on_change(self._settings_changed)
        self.topic_configs = TopicConfigs(self.topics, self.configs, lambda: self.config)
        self.group_configs = GroupConfigs(self.configs, lambda: self.config)
        self.producer_ids = ProducerIds(self.catalog)
        self.features = Features(
            self.catalog,
            self.identity.node_id,
            self.static_config.sharecore_features,
            {
                **backend.feature_limits,
                **({} if self.static_config.serves_share_groups else WITHOUT_SHARE_GROUPS),
            },
        )
        if not self.static_config.serves_share_groups:
            log.warning("share groups are refused: group.coordinator.rebalance.protocols has no `share`")
        self._publish_checks()
        self.features.on_change(self._publish_checks)
        self.quotas.on_change(self._publish_checks)
        await self.features.keep()
        loop = asyncio.get_running_loop()
        self.groups = Coordinators(
            lambda: self.config,
            self.topics,
            self.group_configs,
            self.producer_ids,
            backend,
            self.clock,
            loop,
            self.long_work,
        )
        self.share = ShareServices(
            lambda: self.config,
            self.topics,
            self.group_configs,
            self.groups.registry,
            self.groups.records,
            self._dead_letters(loop),
            backend,
            self.cluster,
            self.clock,
            loop,
            self._lock_time,
        )
        self.features.on_change(self.share.broker_reconfigured)
        undo.callback(self.groups.stop)
        self.groups.start()
        undo.callback(self.share.stop)
        self.share.start()

    def _dead_letters(self, loop: asyncio.AbstractEventLoop) -> DeadLetterService:
        return dead_letter_service(
            lambda: self.config,
            self.topics,
            self.configs,
            self.topic_configs,
            self.group_configs,
            self.features,
            self.cluster,
            self.clock,
            loop.call_later,
        )

    async def _bind(self) -> None:
        if self._lobby is not None:
            return
        for listener in self.listeners.values():
            port = await self.server.bind(
                listener.host or None,
                listener.port,
                listener.name,
                tls=self.transport.context_source(listener.name),
            )
            self.listeners[listener.name] = replace(
                listener, port=port, advertised_port=listener.advertised_port or port
            )

    def _listen(self) -> None:
        if self._lobby is None:
            self.server.listen(self.config.socket_listen_backlog_size)
            self.transport.start()
        else:
            self._take_over(self._lobby)
            self._lobby = None
        self.mechanisms.start()

    def _take_over(self, lobby: Broker) -> None:
        """Serve the clients of a broker that stood by: a client that lost both brokers at once would forget
        this one.
        """
        lobby.quotas = self.quotas
        self.server.on_frame, self.server.on_open = self._dispatch, self._opened
        lobby.retire(self._dispatch)
        lobby._authentication.become(self._authentication)
        for connection in self.server.connections.values():
            if connection.on_frame == lobby._dispatch:
                connection.on_frame = self._dispatch

    def retire(self, dispatch: OnFrame) -> None:
        """Leave the clients to another broker of this process, which has the server now."""
        self._switch.target = dispatch
        self.backend.end()
        self.mechanisms.stop()
        self.share.stop()
        self.groups.stop()

    async def close_observers(self) -> None:
        """Stop the metrics and the page, whose ports another broker of this process takes."""
        if self.page is not None:
            await self.page.stop()
        if self.metrics is not None:
            self.metrics.stop()

    def send_clients_away(self) -> None:
        """Close the connections of all clients, and new ones, until `welcome_clients`; the page stays.

        A request that is never confirmed must not be taken either: its client sends it again.
        """
        self._sends_away = True
        for connection in list(self.server.connections.values()):
            if not connection.is_adopted:
                connection.close()

    def welcome_clients(self) -> None:
        """Serve new connections again."""
        self._sends_away = False

    def _opened(self, connection: Connection) -> None:
        if self._sends_away and not connection.is_adopted:
            raise Disconnect("another broker of the home may lead")
        connection.principal = principal = self.transport.principal_of(connection)
        if principal != ANONYMOUS:
            connection.count_as(str(principal))
        if self.listeners[connection.listener].sasl:
            self._authentication.begin(connection)

    async def stop(self) -> None:
        """Stop accepting requests, answer pending ones, and close the storage.

        What fails on the way does not keep the rest from being stopped: a home is released as its storage
        closes, and another broker would wait for its silence otherwise.
        """
        held = HeldSockets()
        try:
            async with AsyncExitStack() as rest:
                # from last to first
                rest.push_async_callback(self.backend.close)
                rest.callback(self.groups.stop)
                rest.callback(self.share.stop)
                rest.push_async_callback(self._close_connections, held)
                rest.callback(self.backend.end)
                rest.callback(self.mechanisms.stop)
                rest.callback(self.transport.stop)
                if self.metrics is not None:
                    rest.callback(self.metrics.stop)
                await self._settle()
            if held:
                await self.backend.succeeded()
        finally:
            held.release()

    async def _settle(self) -> None:
        """Stop accepting requests, and answer pending ones."""
        if self.page is not None:
            await self.page.stop()
        await self.backend.drain()
        self.backend.end()
        self.server.stop_listening()
        # Pending writes are answered. Waiting share fetches are not: after an empty answer a client would
        # send the next one into the closing connection, and consider its acknowledgements lost.
        await self.share.finish()
        await self.backend.settle()
        await asyncio.sleep(0)

    async def _close_connections(self, held: HeldSockets) -> None:
        """Close the connections; `held` keeps their sockets for a successor, if there is one."""
        await self.server.close(held=held if self.backend.has_successor else None)

    def addresses(self) -> dict[str, object]:
        """Return the broker's addresses, for programs."""
        listeners = {
            name: f"{each.advertised_host}:{each.advertised_port}" for name, each in self.listeners.items()
        }
        return {
            "bootstrap_server": next(iter(listeners.values())),
            "listeners": listeners,
            "cluster_id": self.identity.cluster_id,
            "node_id": self.identity.node_id,
            "data_dir": str(self.config.data_dir),
            "metrics_port": self.metrics_port or None,
            "page_port": self.page_port or None,
        }

    def describe(self) -> str:
        """Return the startup message for people."""
        where = ", ".join(
            f"{each.advertised_host}:{each.advertised_port}" for each in self.listeners.values()
        )
        metrics = f", metrics on port {self.metrics_port}" if self.metrics_port else ""
        page = f", the page on port {self.page_port}" if self.page_port else ""
        does = "stands by at" if self.backend.standby() else "serves"
        return (
            f"sharecore {does} {where} (node {self.identity.node_id} of cluster {self.identity.cluster_id}), "
            f"{self.backend.describe()}{metrics}{page}"
        )

    def _settings_changed(self, kind: ResourceType, name: str) -> None:
        if kind == ResourceType.BROKER:
            self._read_dynamic_config()
            self.mechanisms.reconfigure(self.config)
            self.topic_configs.apply_all()
            self.group_configs.broker_changed()
            self.share.broker_reconfigured()

    def _read_dynamic_config(self) -> None:
        """Merge altered settings into the static configuration."""
        everyones = self.configs.get(ResourceType.BROKER, CLUSTER_WIDE)
        own = self.configs.get(ResourceType.BROKER, str(self.static_config.node_id))
        try:
            self.config = self.static_config.with_properties({**everyones, **own})
        except ConfigError as error:
            log.warning("ignoring altered settings: %s", error)
            self.config = self.static_config
        self._limit_connections()
        self.transport.reconfigure(self.config)

    def _limit_connections(self) -> None:
        """Apply the connection settings."""
        hosts = per_ip_overrides(self.config.max_connections_per_ip_overrides)
        self.server.limits = connection_limits(self.config, self.listeners, self.hosts.of(hosts))


class _Switch:
    """Passes requests to the broker of this process that serves."""

    def __init__(self, target: OnFrame) -> None:
        self.target = target

    def on_frame(self, connection: Connection, frame: bytes) -> Answer:
        return self.target(connection, frame)


def _throttles(quotas: ClientQuotas, config: BrokerConfig, clock: Clock) -> Throttles:
    return Throttles(
        quotas,
        Window(config.quota_window_num, config.quota_window_size_seconds * 1000),
        Window(config.controller_quota_window_num, config.controller_quota_window_size_seconds * 1000),
        clock.monotonic_ms,
    )
