"""What a broker of the simulated cluster does on a connection: one request after the other, as Kafka does."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any

from tests.harness.frames import Framer
from tests.simulation.tier.answers import ANSWERS
from tests.simulation.tier.cluster import Broker, Cluster

from sharecore.protocol import ApiKey, codec, read_header

_LATE_S = (1.0, 4.0, 6.0, 12.0)


class Talk(asyncio.Protocol):
    """One connection of a broker's.

    What was read is worked on even when the connection has ended meanwhile: whoever asked does not know.
    """

    def __init__(self, cluster: Cluster, broker: Broker) -> None:
        self._cluster, self._broker = cluster, broker
        self._framer = Framer()
        self._frames: deque[bytes] = deque()
        self._working = False
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._frames.extend(self._framer.feed(data))
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if self._cluster.chance.random() < 0.5:
            self._frames.clear()

    def _next(self) -> None:
        if not self._working and self._frames:
            self._working = True
            cluster = self._cluster
            took = cluster.chance.uniform(0, cluster.pace.service_s)
            if self._broker.node in cluster.pace.slow:
                took += cluster.chance.choice([0.0, 0.1, 1.0, 6.0])
            work = self._work
            if cluster.late_requests and cluster.chance.random() < cluster.late_requests:
                took += cluster.chance.choice(_LATE_S)
                work = self._work_late
            cluster.loop.call_later(took, work, self._frames.popleft())

    def _work_late(self, frame: bytes) -> None:
        cluster = self._cluster
        if cluster.forgetful and cluster.chance.random() < 0.5:
            for log in cluster.logs():
                if log.leader == self._broker.node:
                    log.forget_producers()
        self._work(frame)

    def _work(self, frame: bytes) -> None:
        header = read_header(frame)
        api = ApiKey(header.api_key)
        messages = codec(api, header.api_version)
        body = messages.read_request(frame, header)

        def reply(message: Mapping[str, Any]) -> None:
            data = b"".join(messages.write_response(header.correlation_id, dict(message)))
            self._cluster.loop.call_soon(self._answer, data, context=self._broker.context)

        ANSWERS[api](self._cluster, self._broker, header.api_version, body, reply)

    def _answer(self, data: bytes) -> None:
        chance = self._cluster.chance
        drawn = chance.random()
        if drawn < self._cluster.lost_answers:
            self._transport.abort()
            self._working = False
            self._next()
        elif drawn < self._cluster.lost_answers + self._cluster.late_answers:
            self._cluster.loop.call_later(chance.choice(_LATE_S), self._send, data)
        else:
            self._send(data)

    def _send(self, data: bytes) -> None:
        self._transport.write(data)
        self._working = False
        self._next()
