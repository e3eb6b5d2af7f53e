"""Writes that the event loop commits in the turn that serves their client."""

from __future__ import annotations

import asyncio
import struct
from functools import partial
from pathlib import Path

from tests.harness.aio import settled
from tests.harness.batches import batch

from sharecore.broker.store.backend import _storage_options
from sharecore.config import BrokerConfig
from sharecore.network import Connection, Limits, Server
from sharecore.storage import Storage, StorageOptions, StoreLog

ROUNDS_MAX = 20_000
"""A busy machine needs some until commits are short."""


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class Appending:
    """Appends a record for each frame, and notes whether a thread committed it."""

    def __init__(self, log: StoreLog) -> None:
        self.log = log
        self.own = self.appended = 0

    def has(self, count: int) -> bool:
        return self.appended >= count

    def __call__(self, connection: Connection, frame: bytes) -> list[bytes]:
        # what the turn commits shows at its end, when no callback of the loop has run
        ends: list[bool] = []
        asyncio.get_running_loop().call_soon(ends.append, True)

        def ended(error: object) -> None:
            self.own += not ends
            self.appended += 1

        self.log.append(batch([frame]), now_ms=0).ticket.add_done_callback(ended)
        return [framed(frame)]


def served(directory: Path, clients_max: int, rounds: int, *, own_wanted: bool) -> Appending:
    """Serve one client until a turn has committed, or so many rounds."""

    async def run() -> Appending:
        storage = Storage(directory, StorageOptions(durability="os", own_commit_clients=clients_max))
        storage.attach(asyncio.get_running_loop())
        try:
            topic = await storage.topics.create("jobs", 1)
            log = topic.partitions[0]
            assert isinstance(log, StoreLog)
            handler = Appending(log)
            server = Server(handler, Limits())
            server.commit_with(storage.events)
            port = await server.bind("127.0.0.1", 0, "PLAINTEXT")
            server.listen()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for done in range(1, rounds + 1):
                writer.write(framed(b"one"))
                await reader.readexactly(7)
                await settled(partial(handler.has, done))
                if own_wanted and handler.own:
                    break
            writer.close()
            await server.close()
            return handler
        finally:
            storage.close()

    return asyncio.run(run())


def test_a_turn_commits_what_its_client_wrote(tmp_path: Path) -> None:
    handler = served(tmp_path, 1, ROUNDS_MAX, own_wanted=True)
    assert handler.own == 1


def test_the_setting_bounds_the_clients_of_a_turn(tmp_path: Path) -> None:
    config = BrokerConfig.from_properties({"sharecore.loop.commit.clients.max": "0"})
    clients_max = _storage_options(config).own_commit_clients
    handler = served(tmp_path, clients_max, 100, own_wanted=False)
    assert handler.appended == 100
    assert handler.own == 0
