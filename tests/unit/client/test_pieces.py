"""Responses arrive in pieces of any size, whole, and in request order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.connection import Connection
from sharecore.client.wire.refusals import refused_topic
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey, codec

ANSWERS = 5


class Wire(asyncio.Transport):
    """A transport that accepts everything, and never ends."""

    def write(self, data: object) -> None:
        """Discard the bytes."""

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 60, 70, 200, 100_000])
def test_answers_in_pieces(size: int) -> None:
    messages = codec(ApiKey.FIND_COORDINATOR, 3)
    heard: list[str] = []

    def answered(number: int) -> Callable[[Any], None]:
        return lambda answer: heard.append(f"{number} {answer.host}")

    async def main() -> None:
        connection = Connection("a broker", read_connection_settings(bootstrap_servers="a:1"))
        connection.connection_made(Wire())
        sent = []
        for number in range(ANSWERS):
            connection._send(
                messages, {"key": "k", "key_type": 0}, lambda frame: messages.read_response(frame)[1],
                answered(number),
            )  # fmt: skip
            host = "h" * (number * 50 + number)
            answer = {"error_code": 0, "error_message": None, "node_id": 1, "host": host, "port": number}
            sent += messages.write_response(number + 1, answer)
        stream = b"".join(sent)
        for at in range(0, len(stream), size):
            connection.data_received(stream[at : at + size])
        connection.close()

    asyncio.run(main())
    assert heard == [f"{number} {'h' * (number * 50 + number)}" for number in range(ANSWERS)]


def test_an_invalid_topic_name_is_an_error_that_says_what_is_allowed() -> None:
    error = refused_topic("dlq.\u00fc", ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert error.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert (
        error.message
        == "'dlq.\u00fc' is not a topic name; allowed: 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-'"
    )
