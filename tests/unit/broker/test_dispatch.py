from __future__ import annotations

import asyncio
import struct
import sys
import types
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from sharecore._core import Produce, ShareAcknowledge, ShareFetch
from sharecore.broker.broker import Broker
from sharecore.broker.features import Features
from sharecore.broker.handlers import SERVED
from sharecore.broker.requests.dispatch import Dispatcher
from sharecore.broker.served import Served
from sharecore.config import BrokerConfig
from sharecore.errors import ErrorCode, KafkaError
from sharecore.network import Limits, Server
from sharecore.protocol import ApiKey, codec
from sharecore.quotas import ClientQuotas, Throttles
from sharecore.rates import Window
from sharecore.storage import Catalog, Ticket

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Call = Callable[[bytes], Awaitable[bytes]]


class Nothing(Catalog):
    """A catalog without entries."""

    def change(self, puts: Iterable[tuple[bytes, bytes]] = (), deletes: Iterable[bytes] = ()) -> Ticket:
        raise AssertionError("nothing is written")


def serve(test: Callable[[Call], Awaitable[None]], handler: Any = None) -> None:
    """Run `test` with a function that sends a frame over a new connection and returns the response, b"" for
    none.
    """
    module = types.ModuleType("sharecore.broker.handlers.under_test")
    vars(module)["handle"] = handler
    sys.modules[module.__name__] = module
    served = {
        **SERVED,
        ApiKey.INIT_PRODUCER_ID: Served(0, 5, "under_test", "handle"),
        ApiKey.DELETE_TOPICS: Served(1, 6, "under_test", "handle"),
    }

    async def run() -> None:
        broker = Broker(BrokerConfig())
        broker.features = Features(Nothing(), 1)
        broker.throttles = Throttles(ClientQuotas(Nothing()), Window(), Window(), lambda: 0.0)
        broker.served = served
        dispatcher = Dispatcher(broker, check_names=True)
        server = Server(dispatcher.on_frame, Limits())
        port = await server.bind("127.0.0.1", 0, "PLAINTEXT")
        server.listen()

        async def call(frame: bytes) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(frame)
            try:
                size = int.from_bytes(await reader.readexactly(4), "big")
                return await reader.readexactly(size)
            except asyncio.IncompleteReadError:
                return b""
            finally:
                writer.close()

        await asyncio.wait_for(test(call), 20)
        await server.close()

    asyncio.run(run())


def request(api_key: ApiKey, version: int, **fields: Any) -> bytes:
    return codec(api_key, version).write_request(7, "tester", fields)


@pytest.mark.parametrize("version", range(6))
def test_api_versions(version: int) -> None:
    async def test(call: Call) -> None:
        software = {"client_software_name": "test", "client_software_version": "1.0"}
        frame = await call(request(ApiKey.API_VERSIONS, version, **software))
        correlation_id, response = codec(ApiKey.API_VERSIONS, version).read_response(frame)
        assert correlation_id == 7
        assert response.error_code == 0
        offered = {key: (low, high) for key, low, high in response.api_keys}
        assert offered.pop(ApiKey.PRODUCE) == (0, SERVED[ApiKey.PRODUCE].max_version)
        assert offered == {
            key: (served.min_version, served.max_version)
            for key, served in SERVED.items()
            if key != ApiKey.PRODUCE
        }
        if version >= 3:
            assert ("share.version", 2, 2) in response.finalized_features

    serve(test)


def test_a_version_of_api_versions_from_the_future_is_answered_in_version_0() -> None:
    async def test(call: Call) -> None:
        body = struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 11, 1) + b"c" + b"\xffwhatever"
        frame = await call(struct.pack(">i", len(body)) + body)
        correlation_id, response = codec(ApiKey.API_VERSIONS, 0).read_response(frame)
        assert (correlation_id, response.error_code) == (11, ErrorCode.UNSUPPORTED_VERSION)
        assert response.api_keys == [(ApiKey.API_VERSIONS, 0, SERVED[ApiKey.API_VERSIONS].max_version)]

    serve(test)


@pytest.mark.parametrize(
    ("body", "logged"),
    [
        (struct.pack(">hhih", 999, 0, 1, -1), "API key 999 is not served"),
        (struct.pack(">hhih", ApiKey.API_VERSIONS, -1, 1, -1), ""),
        (struct.pack(">hhih", ApiKey.INIT_PRODUCER_ID, 77, 1, -1), "version 77 of INIT_PRODUCER_ID"),
        (b"GET / HTTP/1.1\r\n\r\n", "malformed request"),
        (b"\x00", "holds no request header"),
        (b"", "holds no request header"),
        (struct.pack(">hhih", 18, 0, 1, 500), "client id"),
        (struct.pack(">hhih", 18, 0, 1, 2) + b"\xff\xff", "client id"),
        (struct.pack(">hhih", ApiKey.INIT_PRODUCER_ID, 0, 1, -1) + b"\x00", "malformed request"),
    ],
)
def test_what_is_no_request_is_answered_or_closed(
    body: bytes, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(call: Call) -> None:
        answered = await call(struct.pack(">i", len(body)) + body)
        assert bool(answered) == (not logged)
        assert await call(request(ApiKey.API_VERSIONS, 0))

    serve(test)
    assert [logged in record.getMessage() for record in caplog.records] == ([True] if logged else [])
    assert all(record.exc_info is None for record in caplog.records)


def test_answers_at_once_later_and_from_a_coroutine() -> None:
    async def later() -> dict[str, Any]:
        await asyncio.sleep(0.01)
        return {"producer_id": 2}

    def handler(context: Any, message: Any) -> Any:
        return {"producer_id": 1} if message.transaction_timeout_ms == 1 else later()

    async def test(call: Call) -> None:
        for expected in (1, 2):
            frame = await call(request(ApiKey.INIT_PRODUCER_ID, 0, transaction_timeout_ms=expected))
            assert codec(ApiKey.INIT_PRODUCER_ID, 0).read_response(frame)[1].producer_id == expected

    serve(test, handler)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KafkaError(ErrorCode.NOT_COORDINATOR), ErrorCode.NOT_COORDINATOR),
        (KeyError("x"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_handler_that_raises_is_answered(error: Exception, code: ErrorCode, asynchronous: bool) -> None:
    async def fail() -> dict[str, Any]:
        raise error

    def handler(context: Any, message: Any) -> Any:
        if asynchronous:
            return fail()
        raise error

    async def test(call: Call) -> None:
        frame = await call(request(ApiKey.INIT_PRODUCER_ID, 5))
        assert codec(ApiKey.INIT_PRODUCER_ID, 5).read_response(frame)[1].error_code == code
        assert await call(request(ApiKey.DELETE_TOPICS, 6)) == b""

    serve(test, handler)


def test_a_misspelt_name_is_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    async def test(call: Call) -> None:
        assert await call(request(ApiKey.INIT_PRODUCER_ID, 5)) == b""

    serve(test, lambda context, message: {"producer_identity": 3})
    assert "producer_identity" in caplog.text


def test_a_handler_that_reads_its_requests_itself_takes_no_others() -> None:
    dispatcher = Dispatcher(Broker(BrokerConfig()))
    nothing: Any = print
    fetch = ShareFetch(print, lambda *_: True, nothing, nothing, nothing)
    acknowledge = ShareAcknowledge(print, lambda *_: True)
    produce = Produce(lambda: 0, nothing, nothing, nothing, lambda *_: True)
    for api, version, handler in (
        (ApiKey.PRODUCE, 13, produce),
        (ApiKey.SHARE_FETCH, 2, fetch),
        (ApiKey.SHARE_ACKNOWLEDGE, 1, acknowledge),
    ):
        dispatcher.add(api, version, codec(api, version), handler)
        with pytest.raises(ValueError, match="the schema is not the one"):
            dispatcher.add(ApiKey.METADATA, 4, codec(ApiKey.METADATA, 4), handler)
