"""The upstream cluster: connections, fresh metadata, and requests to the responsible brokers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from sharecore.client.errors import RETRIED, AuthenticationFailed, Disconnected
from sharecore.client.settings import ConnectionSettings
from sharecore.client.wire.brokers import Brokers
from sharecore.client.wire.cluster import Backoff
from sharecore.client.wire.connection import Connection
from sharecore.clock import Clock
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey, calls
from sharecore.protocol.calls import Call
from sharecore.upstream.apis import SPOKEN, VERSIONS
from sharecore.upstream.asking import first_answer
from sharecore.upstream.errors import OUT_OF_DATE, refusal
from sharecore.upstream.metadata import MISSING_MS, Metadata, Topic

logger = logging.getLogger(__name__)

Value = TypeVar("Value")
Response = TypeVar("Response")

GROUP, TRANSACTION = 0, 1
"""Key types of FindCoordinator."""
PATIENCE_S = 1.0
"""A broker silent for this long may be partitioned: another one is asked, or asked about it."""
PASSING = RETRIED | {
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
"""Errors that are transient, or specific to one broker."""


class _Way(NamedTuple):
    """A connection's name and address."""

    name: str
    host: str
    port: int


class _Connections(Brokers[ConnectionSettings]):
    """Connections to the brokers in the metadata."""

    def know(self, metadata: Metadata) -> None:
        self._nodes = {node.node_id: (node.host, node.port) for node in metadata.nodes.values()}

    async def dial(
        self, node: int, settings: ConnectionSettings, spoken: Mapping[ApiKey, tuple[int, int]]
    ) -> Connection:
        if node not in self._nodes:
            raise Disconnected(f"broker {node} is not known")
        return await Connection.open(*self._nodes[node], settings, self._context, spoken)

    def in_turn(self, turn: int, doubted: int) -> list[_Way]:
        """Return the brokers to query about the cluster, and the bootstrap addresses.

        Args:
            turn: selects the first broker.
            doubted: a broker to put last.
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
        """Return a connection; raise Disconnected."""
        return await self._connect(*way)

    def offers(self, api_key: ApiKey) -> bool:
        """Return whether every connected broker has the API in a supported version."""
        open_now = [each for each in self._connections.values() if not each.closed]
        return bool(open_now) and all(each.offers(api_key) for each in open_now)


class Upstream:
    """An existing Kafka cluster, version 2.4 or newer.

    Args:
        settings: settings of sharecore clients.
        clock: measures the age of metadata.

    Attributes:
        metadata: brokers and requested topics, refreshed when outdated or wrong.
        problem: the error of the last refresh; None if it succeeded.
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
        """Connect, and keep the metadata fresh from then on. A cluster that does not answer in time is
        retried for `default.api.timeout.ms`.

        Raises:
            KafkaError: no broker can be reached, or none accepts this user; the message has the remedy.
        """
        try:
            # report a wrong address at once
            await self._connections.any_connection()
            await self.retry(lambda: self._refresh([]))
        except AuthenticationFailed:
            raise
        except Disconnected as error:
            tried = ", ".join(f"{host}:{port}" for host, port in self.settings.bootstrap_servers)
            raise Disconnected(
                f"cannot reach the upstream cluster at {tried}: {error.message}; check the addresses, and "
                "that the brokers run and are reachable from here"
            ) from error
        self._task = asyncio.get_running_loop().create_task(self._keep(), name="sharecore upstream metadata")

    async def close(self) -> None:
        """Close all connections and stop refreshing."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._connections.close()

    # metadata

    async def topics(self, names: Iterable[str]) -> dict[str, Topic | KafkaError]:
        """Request topics now, and keep them fresh from now on, even if they do not exist yet.

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
            found[name] = refusal(code, "to describe topic", name, "Describe") if code else _known(topic)
        return found

    async def all_topics(self) -> list[Topic]:
        """Request all visible topics now, and keep them fresh from now on.

        Raises:
            KafkaError: nobody answers.
        """
        self._all = True

        async def ask() -> None:
            await self._refresh(None)

        await self.retry(ask)
        return list(self.metadata)

    def forget(self, names: Iterable[str]) -> None:
        """Stop keeping topics fresh, without notification."""
        names = set(names)
        self._kept -= names
        if not self._all:
            self.metadata.forget(names)

    def stale(self) -> None:
        """Schedule a refresh: the metadata is wrong."""
        self._stale.set()

    async def refreshed(self) -> None:
        """Refresh now, or soon after a recent refresh; wait until it has ended or failed."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._refreshes.append(done)
        self._awaited.set()
        self.stale()
        await done

    async def _keep(self) -> None:
        """Refresh outdated metadata."""
        backoff = self.backoff()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.settings.metadata_max_age_ms / 1000):
                    await self._stale.wait()
            self._stale.clear()
            # an isolated broker returns its last known metadata forever
            self._turn += 1
            # later callers wait for the next refresh: this one may return older metadata
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
                # an earlier answer confirms nothing
                await asyncio.sleep(self.settings.retry_backoff_ms / 1000)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(MISSING_MS / 1000):
                        await self._awaited.wait()
            elif self._stale.is_set():
                await asyncio.sleep(backoff.seconds())
            else:
                backoff.reset()
                # callers that find it stale at the same time share one refresh
                await asyncio.sleep(self.settings.retry_backoff_ms / 1000)

    async def _refresh(self, names: Iterable[str] | None) -> dict[str, int]:
        """Query any broker, for all topics if None; return error codes by name."""
        topics = None if names is None else [{"name": name} for name in sorted(names)]
        try:
            message = {"topics": topics, "allow_auto_topic_creation": False}
            response = await self._ask_any(calls.METADATA, message)
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

    async def _ask_any(
        self, call: Call[Response], message: Mapping[str, object], doubted: int = -1
    ) -> Response:
        """Return the first answer of any broker."""
        ways = self._connections.in_turn(self._turn, doubted)
        return await first_answer([partial(self._ask, way, call, message) for way in ways], PATIENCE_S)

    async def _ask(self, way: _Way, call: Call[Response], message: Mapping[str, object]) -> Response:
        connection = await self._connections.take(way)
        response = await connection.request(call, message)
        refused = getattr(response, "error_code", 0) if call.key is ApiKey.METADATA else 0
        if refused:
            # the broker refers its clients to others: another one knows the cluster (KIP-1102)
            connection.close("it asks its clients to leave")
            raise KafkaError(refused, f"{connection.address} refused to describe the cluster")
        return response

    def _note(self, problem: KafkaError | None) -> None:
        """Log when metadata becomes unavailable, and when it is available again."""
        if problem is None and self.problem is not None:
            logger.warning("the upstream cluster answers again")
        elif problem is not None and self.problem is None:
            logger.warning("cannot get upstream metadata, retrying: %s", problem)
        self.problem = problem

    # requests

    def has(self, api_key: ApiKey) -> bool:
        """Return whether all connected brokers have an API in a supported version."""
        return self._connections.offers(api_key)

    async def connect(self, node: int, purpose: str) -> Connection:
        """Return the connection to a broker for one purpose, opening it if needed.

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
        """Return a separate connection to a broker; the caller closes it.

        Args:
            client_id: its client id; None for the one in the settings.
            spoken: API versions used on it, besides those of the connection itself.

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
        """Return a connection to the leader of a partition of a kept topic.

        Raises:
            KafkaError: LEADER_NOT_AVAILABLE, or it cannot be reached; a refresh is scheduled.
        """
        node, _ = self.metadata.leader(topic, partition)
        if node < 0:
            self.stale()
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader upstream")
        return await self.connect(node, purpose)

    async def coordinator(self, kind: int, key: str, purpose: str) -> Connection:
        """Return a connection to the coordinator of a group or a transactional id.

        Raises:
            KafkaError: it cannot be found or reached.
        """
        return await self.connect(await self.find_coordinator(kind, key), purpose)

    async def find_coordinator(self, kind: int, key: str, doubted: int = -1) -> int:
        """Return the coordinator of a group or a transactional id.

        Args:
            doubted: a broker that may be isolated: the others are queried first.

        Raises:
            KafkaError: there is none now, no broker answers, or a permission is missing.
        """
        message = {"key_type": kind, "key": key, "coordinator_keys": [key]}
        response = await self._ask_any(calls.FIND_COORDINATOR, message, doubted)
        found = response.coordinators[0] if hasattr(response, "coordinators") else response
        if found.error_code:
            raise refusal(
                found.error_code, "to name the coordinator of", key, "Describe", found.error_message
            )
        return found.node_id

    async def request(
        self, node: int, call: Call[Response], message: Mapping[str, object], purpose: str = "ask"
    ) -> Response:
        """Return the answer of one broker.

        Raises:
            KafkaError: it cannot be reached, or has no supported version of the API.
        """
        connection = await self.connect(node, purpose)
        return await connection.request(call, message)

    async def leave_group(self, group_id: str, member_id: str, instance_id: str | None) -> None:
        """Remove a member from a classic group, if it is one; retry until the coordinator answers.

        Raises:
            KafkaError: the request is refused.
        """
        member = {"member_id": member_id, "group_instance_id": instance_id}
        message = {"group_id": group_id, "member_id": member_id, "members": [member]}

        async def ask() -> None:
            connection = await self.coordinator(GROUP, group_id, "ask")
            answer = await connection.request(calls.LEAVE_GROUP, message)
            if answer.error_code not in (ErrorCode.NONE, *OUT_OF_DATE):
                raise refusal(answer.error_code, "to let a member leave group", group_id, "Read")

        await self.retry(ask)

    async def retry(self, ask: Callable[[], Awaitable[Value]]) -> Value:
        """Retry until an answer, a permanent error, or the timeout (`default.api.timeout.ms`)."""
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
        """Return the back-off between attempts."""
        return Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms)


def _known(topic: Topic | None) -> Topic:
    assert topic is not None
    return topic
