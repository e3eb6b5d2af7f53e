"""Addresses of hosts, and name lookups."""

from __future__ import annotations

import asyncio
import socket

import pytest

from sharecore.waiting import HostAddresses


def test_addresses_are_known_at_once_in_their_usual_form() -> None:
    hosts = HostAddresses(lambda: None)
    written = ["10.0.0.1", "0:0:0:0:0:0:0:1", "FE80::0001"]
    assert hosts.of(written) == dict(zip(written, ["10.0.0.1", "::1", "fe80::1"], strict=True))


def test_names_are_looked_up_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look_up(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        asked.append(host)
        if host != "here":
            raise socket.gaierror("no such host")
        return [(0, 0, 0, "", ("10.0.0.2", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def test() -> None:
        found = asyncio.Event()
        hosts = HostAddresses(found.set)
        assert hosts.of(["here", "gone"]) == {}
        await found.wait()
        assert asked == ["gone", "here"]
        assert hosts.of(["here"]) == {"here": "10.0.0.2"}
        assert await hosts.find("here") == "10.0.0.2"
        assert [await hosts.find(host) for host in ("gone", "nul\0", "x" * 300)] == [None, None, None]
        assert asked[:3] == ["gone", "here", "gone"]
        hosts.of([])
        assert await hosts.find("here") == "10.0.0.2"
        assert asked[-1] == "here"

    asyncio.run(test())
