"""The pages' listener, with hostile clients."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from sharecore.metrics.listener import HttpLimits, HttpListener, Page


async def said(*requests: bytes) -> list[bytes]:
    """Return the responses of a listener with two pages to raw requests, one connection each."""

    async def page() -> Page:
        return Page(200, b"hello\n")

    async def broken() -> Page:
        raise RuntimeError("no page today")

    async def other() -> Page:
        return Page(200, b"\x05other", "application/other; version=1")

    listener = HttpListener({"/page": page, "/broken": broken}, {("/page", "application/other"): other})
    port = await listener.listen("127.0.0.1", 0)
    answers = []
    for request in requests:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        if not request.endswith(b"\r\n\r\n"):
            writer.write_eof()
        answers.append(await reader.read())
        writer.close()
    listener.close()
    return answers


def test_an_address_that_is_taken_is_named_in_one_line() -> None:
    async def twice() -> None:
        first, second = HttpListener({}), HttpListener({})
        port = await first.listen("127.0.0.1", 0)
        text = (
            f"cannot listen on 127.0.0.1:{port}: another process uses this port; stop it, or choose another"
        )
        with pytest.raises(OSError, match=text):
            await second.listen("127.0.0.1", port)
        first.close()

    asyncio.run(twice())


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /page HTTP/1.1", b"200 OK"),
        (b"GET /page?x=y HTTP/1.0", b"200 OK"),
        (b"GET /other HTTP/1.1", b"404 Not Found"),
        (b"POST /page HTTP/1.1", b"405 Method Not Allowed"),
        (b"GET /broken HTTP/1.1", b"500 Internal Server Error"),
        (b"hello", b"400 Bad Request"),
    ],
)
def test_status(request_line: bytes, status: bytes) -> None:
    (answer,) = asyncio.run(said(request_line + b"\r\nHost: here\r\n\r\n"))
    assert answer.split(b"\r\n")[0] == b"HTTP/1.1 " + status


def test_head_has_no_body() -> None:
    (answer,) = asyncio.run(said(b"HEAD /page HTTP/1.1\r\n\r\n"))
    assert answer.endswith(b"Content-Length: 6\r\nConnection: close\r\n\r\n")


def test_what_is_no_request_ends_the_connection_and_nothing_else() -> None:
    half, huge, good = asyncio.run(said(b"GET /pa", b"G" * 20_000, b"GET /page HTTP/1.1\r\n\r\n"))
    assert (half, huge) == (b"", b"")
    assert good.endswith(b"\r\n\r\nhello\n")


def test_a_page_is_made_otherwise_for_who_accepts_that() -> None:
    accept = b"GET /page HTTP/1.1\r\nACCEPT: application/Other;version=1;q=0.6,text/plain\r\n\r\n"
    neither = b"GET /page HTTP/1.1\r\nAccept: text/plain\r\nX-Accept: application/other\r\n\r\n"
    other, plain = asyncio.run(said(accept, neither))
    assert b"\r\nContent-Type: application/other; version=1\r\n" in other
    assert other.endswith(b"\r\n\r\n\x05other")
    assert plain.endswith(b"\r\n\r\nhello\n")


def test_connections_have_bounds() -> None:
    async def run() -> None:
        async def page() -> Page:
            return Page(200, b"hello\n")

        limits = HttpLimits(connections_max=4, head_bytes_max=1024, request_ms_max=300)
        listener = HttpListener({"/page": page}, limits=limits)
        port = await listener.listen("127.0.0.1", 0)
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /page HTTP/1.1\r\n\r\n")
        assert (await reader.read()).endswith(b"hello\n"), "idle ones make room"
        for reader, _ in idle:
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 10) == b""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /page HTTP/1.1\r\nX: " + b"y" * 2000 + b"\r\n\r\n")
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        listener.close()

    asyncio.run(run())
