"""A node's forwarding to a cluster in memory: requests and responses are bytes on both sides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

from tests.unit.upstream.cluster import Cluster

from sharecore.broker.handlers import SERVED
from sharecore.broker.requests.context import RequestContext
from sharecore.config import BrokerConfig
from sharecore.coordinator.registry import GroupRegistry
from sharecore.network import Connection
from sharecore.protocol import ApiKey, codec, read_header
from sharecore.tier.forward import Forwarding, Own, ask_offers
from sharecore.tier.upstream.sources import Sources
from sharecore.tier.upstream.topics import UpstreamTopics
from sharecore.upstream import Administration
from sharecore.upstream.apis import VERSIONS
from sharecore.waiting import Steps, Turns

STATE, SHOWN, COORDINATED = "__state", "__share_group_state", "__consumer_offsets"
SETTINGS = "__state.settings"
PLAIN = "a-topic-of-the-tier"
"""A topic whose name does not look internal."""
ALL = {**VERSIONS, **{api: (served.min_version, served.max_version) for api, served in SERVED.items()}}
"""The versions of a cluster with everything that a node knows."""


class Client:
    """A client's connection, as far as forwarding uses it."""

    def __init__(self, number: int) -> None:
        self.id = number
        self.listener, self.principal, self.peer_host = "PLAINTEXT", SimpleNamespace(name="me"), "here"
        self._hooks: list[Callable[[], object]] = []
        self.held = 0

    def on_close(self, hook: Callable[[], object]) -> None:
        self._hooks.append(hook)

    def answer_room(self) -> int:
        """Return room for responses of any size."""
        return 1 << 31

    def when_answer_room(self, room: Callable[[], object]) -> None:
        """Do nothing: there is always room."""

    def hold_answer_bytes(self, change: int) -> None:
        """Count nothing."""

    def hold(self) -> None:
        """Hold later requests during a large one."""
        self.held += 1

    def go_on(self) -> None:
        """Resume them."""
        self.held -= 1

    def go(self) -> None:
        """Disconnect."""
        for hook in self._hooks:
            hook()


class Allowing:
    """An authorizer that allows everything except some operations on named resources."""

    def __init__(self, *denied: tuple[int, str]) -> None:
        self._denied = denied

    def allows(self, principal: Any, host: str, operation: int, kind: int, name: str, **_: Any) -> bool:
        return (operation, name) not in self._denied

    def allows_each(
        self, principal: Any, host: str, operation: int, kind: int, names: Iterable[str], **_: Any
    ) -> Steps[set[str]]:
        yield
        return {name for name in names if (operation, name) not in self._denied}

    def allows_some(self, *_: Any) -> bool:
        return True

    def operations(self, *_: Any) -> int:
        return 8


class Through:
    """The forwarding under test. Call `begin` first.

    Attributes:
        broker: the node as handlers see it.
    """

    def __init__(self, cluster: Cluster, authorizer: Any = None) -> None:
        self.cluster = cluster
        self.upstream = cluster.upstream()
        self._authorizer = authorizer
        self._clients = 0

    async def begin(self) -> Through:
        await self.upstream.start()
        await self.upstream.all_topics()
        own = Own(
            {"sharecore-__state"},
            lambda name: name.startswith("sharecore-__state-"),
            {SHOWN: STATE},
            {COORDINATED},
            {STATE, SETTINGS, PLAIN},
        )
        self.forwarding = Forwarding(self.upstream, own, await ask_offers(self.upstream))
        configs: Any = SimpleNamespace()
        sources = cast(Sources, SimpleNamespace(budget=None))
        topics = UpstreamTopics(
            self.upstream.metadata,
            sources,
            Administration(self.upstream),
            configs,
            {STATE: (SHOWN, COORDINATED)},
        )
        self.broker = SimpleNamespace(
            topics=topics,
            configs=configs,
            config=BrokerConfig(fetch_max_bytes=1 << 20),
            authorizer=self._authorizer,
            throttles=SimpleNamespace(room=lambda *_: 1 << 31),
            groups=SimpleNamespace(registry=GroupRegistry()),
            cluster=SimpleNamespace(nodes=lambda _: [SimpleNamespace(node_id=1)]),
            identity=SimpleNamespace(node_id=1),
            turns=Turns(),
        )
        return self

    async def end(self) -> None:
        self.forwarding.close()
        await self.upstream.close()

    def client(self) -> Client:
        self._clients += 1
        return Client(self._clients)

    def ask(self, client: Client, api: ApiKey, version: int, **message: Any) -> asyncio.Task[Any]:
        """Send a request; return a task with the response as the client reads it."""
        messages = codec(api, version)
        frame = messages.write_request(7, "an app", message)[4:]
        request = messages.read_request(frame, read_header(frame))
        context = RequestContext(cast(Any, self.broker), cast(Connection, client), api, version, 7, "an app")
        handler = self.forwarding.served[api].handler
        assert handler is not None
        result = cast(Any, handler)(context, request)
        assert isinstance(result, Awaitable)
        return asyncio.ensure_future(self._answer(messages, result))

    async def _answer(self, messages: Any, result: Awaitable[Any]) -> Any:
        message = await result
        if message is None:
            return None
        assert messages.misspelt(message) == []
        frame = b"".join(messages.write_response(7, message))[4:]
        return messages.read_response(frame)[1]

    def bodies(self, api: ApiKey) -> list[tuple[int, Any]]:
        """Return the received requests of an API, with the broker of each."""
        return [(each.node, each.body) for each in self.cluster.asked if each.api is api]


__all__ = ["ALL", "Allowing", "Client", "Through"]
