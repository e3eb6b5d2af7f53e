"""Common parts of brokers in memory: real bytes, scripted responses, and a record of requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

from tests.unit.client.virtual import ClientLoop, Link

from sharecore.protocol import ApiKey, Codec, codec, read_header

Message = dict[str, Any]
Said = Message | bytes | float | None
"""A message; bytes in place of one; a delay in seconds before the usual response; or no response."""
Script = dict[ApiKey, deque[Said | Callable[[Any], Said]]]
"""The next responses by API: values, or functions of the request."""


def empty_script() -> Script:
    """Return a script with only the usual responses."""
    return {api: deque() for api in ApiKey}


class Asked(NamedTuple):
    """A request: time, broker and connection."""

    at: float
    node: int
    link: Link
    api: ApiKey
    version: int
    body: Any


class BrokerInMemory:
    """A broker at port 9092 + `node`; a subclass has a method `_api_name(body)` for each usual response.

    Args:
        versions: the APIs it supports.
        asked: where requests are recorded.
    """

    def __init__(
        self, node: int, versions: Mapping[ApiKey, tuple[int, int]], asked: list[Asked], says: Script
    ) -> None:
        self.loop = cast(ClientLoop, asyncio.get_running_loop())
        self.node = node
        self.asked = asked
        self.says = says
        self.links: set[Link] = set()
        self._versions = versions
        self.start()

    def start(self) -> None:
        """Accept connections."""
        self.loop.listeners["broker", 9092 + self.node] = self

    def stop(self) -> None:
        """Stop accepting connections, and drop open ones."""
        del self.loop.listeners["broker", 9092 + self.node]
        for link in list(self.links):
            link.cut()

    def connected(self, link: Link) -> None:
        self.links.add(link)

    def disconnected(self, link: Link) -> None:
        self.links.discard(link)

    def received(self, link: Link, data: bytes) -> None:
        link.buffered += data
        while len(link.buffered) >= 4:
            size = int.from_bytes(link.buffered[:4], "big")
            if len(link.buffered) < 4 + size:
                return
            frame, link.buffered = link.buffered[4 : 4 + size], link.buffered[4 + size :]
            self._request(link, frame)

    def usual(self, asked: Asked, wait: float, respond: Callable[[Message], None]) -> None:
        """Send the usual response after a delay."""
        answer: Message = getattr(self, f"_{asked.api.name.lower()}")(asked.body)
        self._later(wait, respond, answer)

    def _request(self, link: Link, frame: bytes) -> None:
        header = read_header(frame)
        api = ApiKey(header.api_key)
        messages = codec(api, header.api_version)
        body = messages.read_request(frame, header)
        asked = Asked(self.loop.time(), self.node, link, api, header.api_version, body)
        self.asked.append(asked)
        said = self.says[api].popleft() if self.says[api] else 0.0
        answer: Said = said(body) if callable(said) else said
        turn = _Turn()
        link.turns.append(turn)
        respond = partial(_respond, link, turn, messages, header.correlation_id)
        if isinstance(answer, float):
            self.usual(asked, answer, respond)
        elif answer is not None:
            self._later(0.0, respond, answer)

    def _later(self, wait: float, respond: Callable[[Any], None], answer: Message | bytes) -> None:
        if wait:
            self.loop.call_later(wait, respond, answer)
        else:
            # timers of the same moment are unordered
            self.loop.call_soon(respond, answer)

    def _api_versions(self, _: Any) -> Message:
        return {
            "api_keys": [
                {"api_key": api, "min_version": low, "max_version": high}
                for api, (low, high) in self._versions.items()
            ]
        }


class _Turn:
    """The position of a response on its connection; a broker responds in request order."""

    def __init__(self) -> None:
        self.answer: bytes | None = None


def _respond(link: Link, turn: _Turn, messages: Codec, correlation_id: int, answer: Message | bytes) -> None:
    if not isinstance(answer, bytes):
        answer = b"".join(messages.write_response(correlation_id, answer))
    turn.answer = answer
    while link.turns and link.turns[0].answer is not None:
        link.answer(link.turns.popleft().answer)
