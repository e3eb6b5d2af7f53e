"""The existing cluster: connections, metadata that is kept fresh, requests to whoever can answer them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from sharecore.client.errors import RETRIED, AuthenticationFailed, Disconnected
from sharecore.client.settings import ConnectionSettings
from sharecore.client.wire.brokers import Brokers
from sharecore.client.wire.cluster import Backoff
from sharecore.client.wire.connection import Connection
from sharecore.clock import Clock
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.upstream.apis import SPOKEN, VERSIONS
from sharecore.upstream.asking import first_answer
from sharecore.upstream.errors import refusal
from sharecore.upstream.metadata import MISSING_MS, Metadata, Topic

logger = logging.getLogger(__name__)

Value = TypeVar("Value")

GROUP, TRANSACTION = 0, 1
"""What a coordinator coordinates: FindCoordinator's kinds of key."""
PATIENCE_S = 1.0
"""Who has not answered by then may have lost sight of the others: another one is asked, or asked about it."""
PASSING = RETRIED | {
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
"""Errors that pass with time, or on another broker."""


class _Way(NamedTuple):
    """A connection by the name under which it is kept, and where it leads."""

    name: str
    host: str
    port: int


class _Connections(Brokers[ConnectionSettings]):
    """Connections to the brokers that the metadata names."""

    def know(self, metadata: Metadata) -> None:
        self._nodes = {node.node_id: (node.host, node.port) for node in metadata.nodes.values()}

    async def dial(
        self, node: int, settings: ConnectionSettings, spoken: Mapping[ApiKey, tuple[int, int]]
    ) -> Connection:
        if node not in self._nodes:
            raise Disconnected(f"broker {node} is not known")
        return await Connection.open(*self._nodes[node], settings, self._context, spoken)

    def in_turn(self, turn: int, doubted: int) -> list[_Way]:
        """Return the ways to ask about the cluster: its brokers, and the addresses that were given at first.

        Args:
            turn: another broker is the first where it is another number.
            doubted: a broker that comes behind the others.
        """
        nodes = sorted(self._nodes)
        first = turn % len(nodes) if nodes else 0
        nodes = sorted([*nodes[first:], *nodes[:first]], key=lambda node: node == doubted)
        known = set(self._nodes.values())
        given = [address for address in self.settings.bootstrap_servers if address not in known]
        return [
            *(_Way(f"any {node}", *self._nodes[node]) for node in nodes),
            *(_Way(f"any {host}:{port}", host, port) for host, port in given),
        ]

    async def take(self, way: _Way) -> Connection:
        """Return the connection there; raise Disconnected."""
        return await self._connect(*way)

    def offers(self, api_key: ApiKey) -> bool:
        """Whether every broker that is connected has the API, in a version that is known here."""
        open_now = [each for each in self._connections.values() if not each.closed]
        return bool(open_now) and all(each.offers(api_key) for each in open_now)


class Upstream:
    """An existing Kafka cluster, 2.4 and newer.

    Args:
        settings: those that every client of sharecore takes.
        clock: the times of metadata count on it.

    Attributes:
        metadata: brokers and the topics that somebody asked for, refreshed when they are old or wrong.
        problem: why the last refresh failed; None where it did not.
    """

    def __init__(self, settings: ConnectionSettings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self.metadata = Metadata()
        self.problem: KafkaError | None = None
        self._connections = _Connections(settings, SPOKEN)
        self._kept: set[str] = set()
        self._all = False
        self._stale = asyncio.Event()
        self._refreshes: list[asyncio.Future[None]] = []
        self._awaited = asyncio.Event()
        self._turn = 0
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect, and keep the metadata fresh from then on. A cluster that is there and do not answer in
        time is asked again, until there is no time left (`default.api.timeout.ms`).

        Raises:
            KafkaError: no broker can be reached, or none lets this user in; the text says what to do.
        """
        try:
            # a wrong address is told at once
            await self._connections.any_connection()
            await self.retry(lambda: self._refresh([]))
        except AuthenticationFailed:
            raise
        except Disconnected as error:
            tried = ", ".join(f"{host}:{port}" for host, port in self.settings.bootstrap_servers)
            raise Disconnected(
                f"upstream cannot be reached at {tried}: {error.message}; check the addresses, and that the "
                "brokers run and may be reached from here"
            ) from error
        self._task = asyncio.get_running_loop().create_task(self._keep(), name="sharecore upstream metadata")

    async def close(self) -> None:
        """End the refreshing and all connections."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._connections.close()

    # metadata

    async def topics(self, names: Iterable[str]) -> dict[str, Topic | KafkaError]:
        """Asks for topics now, and keeps them fresh from now on, also those that are not there yet.

        Raises:
            KafkaError: nobody answers.
        """
        wanted = set(names)
        if not wanted:
            return {}
        self._kept |= wanted

        async def ask() -> dict[str, int]:
            return await self._refresh(wanted)

        refused = await self.retry(ask)
        found: dict[str, Topic | KafkaError] = {}
        for name in wanted:
            topic = self.metadata.get(name)
            code = refused.get(name, 0 if topic is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            found[name] = refusal(code, "to tell of topic", name, "Describe") if code else _known(topic)
        return found

    async def all_topics(self) -> list[Topic]:
        """Asks for every topic that this user may describe, and keeps all of them fresh from now on.

        Raises:
            KafkaError: nobody answers.
        """
        self._all = True

        async def ask() -> None:
            await self._refresh(None)

        await self.retry(ask)
        return list(self.metadata)

    def forget(self, names: Iterable[str]) -> None:
        """Do not keep these topics fresh any longer; nobody is told."""
        names = set(names)
        self._kept -= names
        if not self._all:
            self.metadata.forget(names)

    def stale(self) -> None:
        """What is known is wrong: has it refreshed soon."""
        self._stale.set()

    async def refreshed(self) -> None:
        """Has it refreshed now, or soon where that was just done; waits until it is, well or not."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._refreshes.append(done)
        self._awaited.set()
        self.stale()
        await done

    async def _keep(self) -> None:
        """Refresh what is out of date, or old."""
        backoff = self.backoff()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.settings.metadata_max_age_ms / 1000):
                    await self._stale.wait()
            self._stale.clear()
            # a broker that has lost sight of the others tells for ever what it knew
            self._turn += 1
            # who comes while it is under way waits for the next: what this one tells may be older
            waiting, self._refreshes = self._refreshes, []
            self._awaited.clear()
            try:
                await self._refresh(None if self._all else self._kept)
            except KafkaError:
                self._stale.set()
            for done in waiting:
                if not done.done():
                    done.set_result(None)
            if self.metadata.doubtful:
                # an answer that comes sooner confirms nothing
                await asyncio.sleep(self.settings.retry_backoff_ms / 1000)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(MISSING_MS / 1000):
                        await self._awaited.wait()
            elif self._stale.is_set():
                await asyncio.sleep(backoff.seconds())
            else:
                backoff.reset()
                # those who find it stale in the same moment are served by one refresh
                await asyncio.sleep(self.settings.retry_backoff_ms / 1000)

    async def _refresh(self, names: Iterable[str] | None) -> dict[str, int]:
        """Asks any broker, None for all topics; returns error codes by name."""
        topics = None if names is None else [{"name": name} for name in sorted(names)]
        try:
            message = {"topics": topics, "allow_auto_topic_creation": False}
            response = await self._ask_any(ApiKey.METADATA, message)
        except KafkaError as error:
            self._note(error)
            raise
        self._note(None)
        refused = self.metadata.take(response, self.clock.monotonic_ms(), whole=topics is None)
        self._connections.know(self.metadata)
        if topics is None and (missing := self.metadata.missing):
            await self._refresh(missing)
        if self.metadata.doubtful:
            self.stale()
        return refused

    async def _ask_any(self, api_key: ApiKey, message: dict[str, Any], doubted: int = -1) -> Any:
        """Return the answer of a broker: of the first that answers, where one is silent."""
        ways = self._connections.in_turn(self._turn, doubted)
        return await first_answer([partial(self._ask, way, api_key, message) for way in ways], PATIENCE_S)

    async def _ask(self, way: _Way, api_key: ApiKey, message: dict[str, Any]) -> Any:
        connection = await self._connections.take(way)
        response = await connection.request(api_key, message)
        refused = getattr(response, "error_code", 0) if api_key is ApiKey.METADATA else 0
        if refused:
            # the broker has been told to leave the cluster: another one knows it (KIP-1102)
            connection.close("it sends its clients away")
            raise KafkaError(refused, f"{connection.address} refused to tell of the cluster")
        return response

    def _note(self, problem: KafkaError | None) -> None:
        """Says when upstream cannot be asked any more, and when it can again; not each time."""
        if problem is None and self.problem is not None:
            logger.warning("upstream answers again")
        elif problem is not None and self.problem is None:
            logger.warning("upstream cannot be asked for its metadata: %s; trying again", problem)
        self.problem = problem

    # requests

    def has(self, api_key: ApiKey) -> bool:
        """Whether all brokers that are connected have an API, in a version that is spoken here."""
        return self._connections.offers(api_key)

    async def connect(self, node: int, purpose: str) -> Connection:
        """Return the connection to a broker for one purpose, made where there is none.

        Raises:
            Disconnected: the broker is unknown or cannot be reached.
        """
        try:
            return await self._connections.connect(node, purpose)
        except Disconnected:
            self.stale()
            raise

    async def dial(
        self, node: int, client_id: str | None, spoken: Mapping[ApiKey, tuple[int, int]]
    ) -> Connection:
        """Return a connection to a broker that nobody else uses; who asked for it closes it.

        Args:
            client_id: as which the broker knows it; None for the client id of the settings.
            spoken: versions of the APIs that are used on it, besides those that a connection itself needs.

        Raises:
            Disconnected: the broker is unknown or cannot be reached.
        """
        settings = self.settings if client_id is None else replace(self.settings, client_id=client_id)
        try:
            return await self._connections.dial(node, settings, {**VERSIONS, **spoken})
        except Disconnected:
            self.stale()
            raise

    async def leader(self, topic: str, partition: int, purpose: str) -> Connection:
        """Return a connection to the leader of a partition of a topic that is kept.

        Raises:
            KafkaError: LEADER_NOT_AVAILABLE, or it cannot be reached now; it is looked for.
        """
        node, _ = self.metadata.leader(topic, partition)
        if node < 0:
            self.stale()
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader upstream")
        return await self.connect(node, purpose)

    async def coordinator(self, kind: int, key: str, purpose: str) -> Connection:
        """Return a connection to the coordinator of a group or a transactional id.

        Raises:
            KafkaError: it cannot be found or reached now.
        """
        return await self.connect(await self.find_coordinator(kind, key), purpose)

    async def find_coordinator(self, kind: int, key: str, doubted: int = -1) -> int:
        """Return the broker that coordinates a group or a transactional id.

        Args:
            doubted: the broker that may have lost sight of the others: they are asked first.

        Raises:
            KafkaError: there is none now, nobody answers, or the right to ask is missing.
        """
        message = {"key_type": kind, "key": key, "coordinator_keys": [key]}
        response = await self._ask_any(ApiKey.FIND_COORDINATOR, message, doubted)
        found = response.coordinators[0] if hasattr(response, "coordinators") else response
        if found.error_code:
            raise refusal(
                found.error_code, "to name the coordinator of", key, "Describe", found.error_message
            )
        node: int = found.node_id
        return node

    async def request(self, node: int, api_key: ApiKey, message: dict[str, Any], purpose: str = "ask") -> Any:
        """Return the answer of one broker.

        Raises:
            KafkaError: it cannot be reached, or has no version of the API that is known here.
        """
        connection = await self.connect(node, purpose)
        return await connection.request(api_key, message)

    async def retry(self, ask: Callable[[], Awaitable[Value]]) -> Value:
        """Asks until there is an answer, an error that stays, or no time left (`default.api.timeout.ms`)."""
        until_ms = self.clock.monotonic_ms() + self.settings.default_api_timeout_ms
        backoff = self.backoff()
        while True:
            try:
                return await ask()
            except KafkaError as error:  # noqa: PERF203
                pause = backoff.seconds()
                again = isinstance(error, Disconnected) or error.code in PASSING
                if not again or self.clock.monotonic_ms() + pause * 1000 > until_ms:
                    raise
                if error.code not in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR):
                    self.stale()
                await asyncio.sleep(pause)

    def backoff(self) -> Backoff:
        """The waits between attempts."""
        return Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms)


def _known(topic: Topic | None) -> Topic:
    assert topic is not None
    return topic
