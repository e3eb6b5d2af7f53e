"""The broker's page, in a separate thread and event loop, connected through socket pairs.

The page uses client APIs, as the logged-in user and with the browser's address, so that the listener's
authentication and the broker's ACLs apply. Only lease owners have no API: they are read from the leaders of
share partitions that the user may describe.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from socket import socket
from typing import TYPE_CHECKING, TypeVar

from sharecore.admin.watch import Held, Key
from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.transport import Transport
from sharecore.config import BrokerConfig, Listener
from sharecore.config.page import parse_page_listener
from sharecore.errors import ConfigError, KafkaError
from sharecore.page.access import PASSWORD_MECHANISMS, Credentials, sasl_settings
from sharecore.page.app import Page
from sharecore.page.server import PageServer, listen
from sharecore.page.settings import PageConfig, PageLimits
from sharecore.page.window import Window, of_leader
from sharecore.security.tls import server_context

if TYPE_CHECKING:
    from sharecore.broker.requests.services import Services

log = logging.getLogger("sharecore.page")

Value = TypeVar("Value")
_TURN_PARTITIONS = 250
_STOP_S = 10.0
_LISTENER = "page"
_TROUBLES_MAX = 20


class BrokerPage:
    """The page of a broker.

    Args:
        broker: the broker.

    Raises:
        ConfigError: invalid keys or certificates.
    """

    def __init__(self, broker: Services) -> None:
        self._broker = broker
        config = broker.static_config
        self._address = parse_page_listener(config.sharecore_page_listener)
        self._context = server_context(_own(config)) if self._address.tls else None
        self._thread: threading.Thread | None = None
        self._listening: socket | None = None
        self._stop: Callable[[], object] = lambda: None

    def bind(self) -> int:
        """Bind the address and return the port; raise OSError if it is not available."""
        self._listening = listen(self._address.host, self._address.port)
        port: int = self._listening.getsockname()[1]
        return port

    def start(self) -> None:
        """Start serving, after the broker does."""
        assert self._listening is not None
        loop = asyncio.get_running_loop()
        access = _Loopback(self._broker, loop)
        config = _page_config(self._broker)
        serving = self._serve(lambda: Page(access, config, _Leaders(self._broker, loop)), self._listening)
        self._thread = threading.Thread(target=_run, args=(serving,), name="page", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Stop serving."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stop()
            await asyncio.to_thread(thread.join, _STOP_S)
        elif self._listening is not None:
            self._listening.close()

    async def _serve(self, make: Callable[[], Page], listening: socket) -> None:
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(stopping.set)
        config = self._broker.static_config
        limits = PageLimits(
            config.sharecore_page_connections_max,
            config.sharecore_page_request_max_bytes,
            config.sharecore_page_request_timeout_ms,
        )
        server = PageServer(make(), listening, self._context, limits)
        serving = loop.create_task(server.serve())
        ended = loop.create_task(stopping.wait())
        await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
        await server.stop()
        await serving


def _run(serving: Coroutine[object, None, None]) -> None:
    try:
        asyncio.run(serving)
    except Exception:
        log.exception("the page has stopped")


def _own(config: BrokerConfig) -> BrokerConfig:
    """Return the page's TLS settings: client certificates are requested only if set for the page."""
    asked = "ssl.client.auth" in config.listener_properties.get(_LISTENER, {})
    own = config.for_listener(_LISTENER)
    return own if asked else replace(own, ssl_client_auth="none")


def _page_config(broker: Services) -> PageConfig:
    config = broker.static_config
    address = parse_page_listener(config.sharecore_page_listener)
    names = {each.advertised_host for each in broker.listeners.values()}
    names |= {each.host for each in broker.listeners.values() if each.host}
    return PageConfig(
        about=f"broker {broker.identity.node_id} of cluster {broker.identity.cluster_id}",
        troubles=lambda: [str(each) for each in broker.backend.damage()[:_TROUBLES_MAX]],
        standby=broker.backend.standby,
        actions=config.sharecore_page_actions,
        hosts=[*config.sharecore_page_hosts, *names, *([address.host] if address.host else [])],
        sessions_max=config.sharecore_page_sessions_max,
        idle_s=config.sharecore_page_session_idle_ms / 1000,
    )


class _There:
    """Run work of the broker's event loop from the page's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def call(self, work: Coroutine[object, None, Value]) -> Value:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


class _Loopback:
    """Connect to the broker as a client of the first listener with passwords or without authentication.

    Raises:
        ConfigError: every listener needs SASL, and none accepts passwords.
    """

    def __init__(self, broker: Services, loop: asyncio.AbstractEventLoop) -> None:
        self._broker = broker
        self._there = _There(loop)
        listeners = broker.listeners.values()
        usable = [each for each in listeners if self._offered(each)] + [
            each for each in listeners if not each.sasl
        ]
        if not usable:
            raise ConfigError(
                "sharecore.page.listener: users log in with passwords, and no listener takes any; "
                f"allowed: one of {', '.join(PASSWORD_MECHANISMS)} among sasl.enabled.mechanisms"
            )
        self._listener = usable[0]

    @property
    def mechanisms(self) -> Sequence[str]:
        return self._offered(self._listener)

    def _offered(self, listener: Listener) -> Sequence[str]:
        offered = self._broker.mechanisms.of(listener.name)
        return [name for name in PASSWORD_MECHANISMS if name in offered]

    def connect(self, credentials: Credentials | None, peer_host: str) -> Transport:
        settings = {
            # never called: every connection is dialed
            "bootstrap.servers": "localhost:9092",
            "client.id": "sharecore-page",
            "default.api.timeout.ms": "5000",
        }
        if credentials is not None:
            settings |= {"security.protocol": "SASL_PLAINTEXT", **sasl_settings(credentials)}

        async def dial(factory: Callable[[], asyncio.Protocol]) -> object:
            adopted = self._broker.server.adopt(self._listener.name, peer_host or "127.0.0.1")
            end = await self._there.call(adopted)
            loop = asyncio.get_running_loop()
            try:
                return await loop.create_connection(factory, sock=end)
            except BaseException:
                end.close()
                raise

        return Transport(read_connection_settings(settings), dial)


class _Leaders:
    """In-flight records of share-partition leaders."""

    def __init__(self, broker: Services, loop: asyncio.AbstractEventLoop) -> None:
        self._broker = broker
        self._there = _There(loop)

    async def held(self) -> Held:
        return await self._there.call(self._held())

    async def windows(self, group_id: str, topic: str, partitions: Sequence[int]) -> dict[int, Window]:
        return await self._there.call(self._windows(group_id, topic, partitions))

    async def _held(self) -> Held:
        in_flight: dict[Key, int] = {}
        oldest_s: dict[Key, float] = {}
        broker, seen = self._broker, 0
        now_ms = broker.clock.monotonic_ms()
        for (group_id, topic_id), leaders in list(broker.share.partitions.by_topic().items()):
            topic = broker.topics.by_id(topic_id)
            for index, leader in list(leaders.items()) if topic is not None else ():
                seen += 1
                if seen % _TURN_PARTITIONS == 0:
                    await asyncio.sleep(0)
                if leader.engine is None or topic is None:
                    continue
                try:
                    (_, _, count, _, deadline_ms, _), *_ = leader.engine.observe()
                except KafkaError:
                    continue  # the engine has failed, and is reloaded by the next use
                key = (group_id, topic.name, index)
                in_flight[key] = count
                if deadline_ms is not None:
                    began_ms = deadline_ms - leader.config.share_record_lock_duration_ms
                    oldest_s[key] = max(0, now_ms - began_ms) / 1000
        return in_flight, oldest_s

    async def _windows(self, group_id: str, topic: str, partitions: Sequence[int]) -> dict[int, Window]:
        found = {index: self._window(group_id, topic, index) for index in partitions}
        return {index: window for index, window in found.items() if window is not None}

    def _window(self, group_id: str, topic: str, partition: int) -> Window | None:
        found = self._broker.topics.get(topic)
        if found is None or partition >= len(found.partitions):
            return None
        leader = self._broker.share.partitions.peek(group_id, found.topic_id, partition)
        if leader is None or leader.engine is None:
            return None
        engine = leader.engine
        try:
            return of_leader(
                engine.start_offset,
                engine.end_offset,
                engine.inflight(),
                engine.leases(),
                self._broker.clock.monotonic_ms(),
                found.partitions[partition].high_watermark,
            )
        except KafkaError:
            return None
