"""A broker in a thread of this process, and a client that speaks any version of any API to it."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tests.harness.blocking import watched_thread

from sharecore.broker.broker import Broker
from sharecore.clock import Clock, SystemClock
from sharecore.config import BrokerConfig
from sharecore.network import loop_factory
from sharecore.protocol import ApiKey, codec

TIMEOUT_SECONDS = 20

Value = TypeVar("Value")


class Client:
    """One connection; requests are answered in order, so several may be sent before the first is read."""

    def __init__(self, peer: int | socket.socket, client_id: str = "tester") -> None:
        self._socket = (
            socket.create_connection(("127.0.0.1", peer), timeout=TIMEOUT_SECONDS)
            if isinstance(peer, int)
            else peer
        )
        self._stream = self._socket.makefile("rb")
        self._client_id = client_id
        self._sent = 0

    def send(self, api_key: ApiKey, version: int, **fields: Any) -> int:
        """Send a request; give its correlation id."""
        self._sent += 1
        self._socket.sendall(codec(api_key, version).write_request(self._sent, self._client_id, fields))
        return self._sent

    def receive(self, api_key: ApiKey, version: int) -> Any:
        """Read the next answer; raise EOFError when the broker closed the connection instead."""
        return codec(api_key, version).read_response(self._frame())[1]

    def ask(self, api_key: ApiKey, version: int, **fields: Any) -> Any:
        """Send a request and read its answer."""
        self.send(api_key, version, **fields)
        return self.receive(api_key, version)

    @property
    def local_port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def send_frame(self, frame: bytes) -> None:
        """Sends bytes as one frame."""
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive_frame(self) -> bytes:
        """Return the next frame's bytes; raise EOFError when the broker closed the connection instead."""
        return self._frame()

    def has_nothing(self) -> bool:
        """Whether the broker has sent nothing that was not received."""
        return not select.select([self._socket], [], [], 0)[0]

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def _frame(self) -> bytes:
        try:
            head = self._stream.read(4)
            if len(head) == 4:
                return self._stream.read(struct.unpack(">i", head)[0])
        except ConnectionResetError as error:
            raise EOFError("the broker closed the connection") from error
        raise EOFError("the broker closed the connection")


class MovedClock(SystemClock):
    """The time of the machine, and what a test has moved it ahead."""

    ahead_ms = 0
    _stopped_ms: int | None = None

    def stop(self) -> None:
        """Stop the time of the machine; only `ahead_ms` moves the clock from now on."""
        self._stopped_ms = super().now_ms()

    def reset(self) -> None:
        """Follow the time of the machine."""
        self.ahead_ms, self._stopped_ms = 0, None

    def now_ms(self) -> int:
        return (super().now_ms() if self._stopped_ms is None else self._stopped_ms) + self.ahead_ms


class RunningBroker:
    """A running broker whose answers are checked for misspelt names."""

    def __init__(
        self, data_dir: Path, settings: Mapping[str, str] | None = None, clock: Clock | None = None
    ) -> None:
        properties = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(data_dir),
            "offsets.topic.num.partitions": "2",
            "share.coordinator.state.topic.num.partitions": "2",
        }
        self.config = BrokerConfig.from_properties(properties | dict(settings or {}))
        self.port = 0
        self._clock = clock
        self._clients: list[Client] = []
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> RunningBroker:
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        if self._failure is None:
            self.loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(TIMEOUT_SECONDS)
        assert not self._thread.is_alive()

    def connect(self, client_id: str = "tester") -> Client:
        self._clients.append(Client(self.port, client_id))
        return self._clients[-1]

    def ask(self, api_key: ApiKey, version: int, **fields: Any) -> Any:
        """Asks over a connection of its own."""
        client = self.connect()
        try:
            return client.ask(api_key, version, **fields)
        finally:
            client.close()

    def until(self, condition: Callable[[Broker], bool]) -> None:
        """Wait until a condition holds, which is asked on the broker's own thread."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not self.look(condition):
            assert time.monotonic() < deadline, "the broker never came to it"
            time.sleep(0.002)

    def until_received(self, client: Client, count: int = 1) -> None:
        """Wait until so many requests of a client wait for their answers in the broker."""
        self.until(
            lambda broker: any(
                connection.peer_port == client.local_port and connection.in_flight == count
                for connection in broker.server.connections.values()
            )
        )

    def until_gone(self, client: Client) -> None:
        """Close a client, and wait until the broker knows."""
        port = client.local_port
        client.close()
        self.until(lambda broker: port not in [each.peer_port for each in broker.server.connections.values()])

    def look(self, look: Callable[[Broker], Value]) -> Value:
        """What a look at the broker finds, on its own thread."""

        async def on_loop() -> Value:
            return look(self.broker)

        return asyncio.run_coroutine_threadsafe(on_loop(), self.loop).result(TIMEOUT_SECONDS)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self.loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        try:
            self.broker = broker = Broker(self.config, clock=self._clock, check_names=True)
            await broker.start()
        except BaseException as failure:  # raised by the starting thread
            self._failure = failure
            self._started.set()
            return
        self.port = next(iter(broker.listeners.values())).port
        with watched_thread():
            self._started.set()
            await self._stopping.wait()
        await broker.stop()


def join_share_group(client: Client, group: str, member: str, topics: list[str]) -> Any:
    """Heartbeats as often as the answers ask for, up to the one that brings partitions."""
    epoch, names = 0, {"group_id": group, "member_id": member}
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        wanted = topics if epoch == 0 else None
        answer = client.ask(
            ApiKey.SHARE_GROUP_HEARTBEAT, 1, **names, member_epoch=epoch, subscribed_topic_names=wanted
        )
        assert answer.error_code == 0, answer
        if answer.assignment is not None and answer.assignment.topic_partitions:
            return answer
        epoch = answer.member_epoch
        time.sleep(answer.heartbeat_interval_ms / 1000)
    raise TimeoutError(f"{member} has got no partition of {topics}")
