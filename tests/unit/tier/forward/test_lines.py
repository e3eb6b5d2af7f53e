"""Large responses of the cluster count as the client's own while they arrive, and wait if it has no room."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.connection import Connection
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey, codec, read_header
from sharecore.tier.forward.lines import Line
from sharecore.tier.forward.shapes import field_of, list_of

RECORDS = bytes(4 << 20)
FETCH_VERSION = 12
SPOKEN = {ApiKey.API_VERSIONS: (0, 3), ApiKey.FETCH: (FETCH_VERSION, FETCH_VERSION)}


class Client:
    """A client's connection with this much room for responses."""

    def __init__(self, room: int) -> None:
        self.room, self.held, self.most = room, 0, 0
        self.waiting: list[Callable[[], object]] = []

    def answer_room(self) -> int:
        return max(self.room - self.held, 0)

    def when_answer_room(self, room: Callable[[], object]) -> None:
        self.waiting.append(room)

    def hold_answer_bytes(self, change: int) -> None:
        self.held += change
        self.most = max(self.most, self.held)
        if self.answer_room():
            waiting, self.waiting = self.waiting, []
            for wake in waiting:
                wake()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each Fetch with `RECORDS`."""
    try:
        while True:
            frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            header = read_header(frame)
            if header.api_key == ApiKey.API_VERSIONS:
                known = [
                    {"api_key": api, "min_version": low, "max_version": high}
                    for api, (low, high) in SPOKEN.items()
                ]
                message: dict[str, object] = {"error_code": ErrorCode.NONE, "api_keys": known}
            else:
                part = {"partition_index": 0, "high_watermark": 1, "records": RECORDS}
                message = {"responses": [{"topic": "a", "partitions": [part]}]}
            messages = codec(ApiKey(header.api_key), header.api_version)
            writer.writelines(messages.write_response(header.correlation_id, message))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def through(client: Client, fetches: int) -> None:
    """Fetch this often at once, and drop the responses one by one."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = read_connection_settings(bootstrap_servers=f"127.0.0.1:{port}")
    line = Line(lambda: Connection.open("127.0.0.1", port, settings, None, SPOKEN), client)
    try:
        answers = deque(line.send(ApiKey.FETCH, FETCH_VERSION, {"topics": []}) for _ in range(fetches))
        while answers:
            response = await answers.popleft()
            topic = next(iter(list_of(response, "responses")))
            part = next(iter(list_of(topic, "partitions")))
            assert field_of(part, "records", object) == RECORDS
            del response, topic, part
        await asyncio.sleep(0)  # the last one is collected in the next turn of the loop
    finally:
        line.close()
        server.close()


def test_an_answer_counts_until_it_is_gone() -> None:
    client = Client(room=1 << 30)
    asyncio.run(through(client, 3))
    assert client.most >= len(RECORDS)
    assert client.held == 0


def test_no_answer_is_read_while_the_client_has_no_room() -> None:
    client = Client(room=1)
    asyncio.run(through(client, 4))
    assert len(RECORDS) <= client.most < 2 * len(RECORDS)
    assert client.held == 0
