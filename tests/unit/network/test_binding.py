"""Addresses of a listener."""

from __future__ import annotations

import errno
import socket
from typing import Any

import pytest

from sharecore.network.binding import bind_all
from sharecore.page.server import listen


def found(*hosts: str, port: int = 0) -> list[tuple[Any, ...]]:
    """Return the addresses as `getaddrinfo` does."""
    kind = socket.SOCK_STREAM
    return [
        each for host in hosts for each in socket.getaddrinfo(host, port, type=kind, flags=socket.AI_PASSIVE)
    ]


class Machine:
    """Sockets of a machine that lacks some addresses, and where ports of others are taken."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lacks: dict[str, int] = {}
        self.taken: dict[str, int] = {}
        """How many times a port of the address is taken."""
        self.open: list[socket.socket] = []
        machine = self

        class Socket(socket.socket):
            def bind(self, address: Any) -> None:
                host = address[0]
                if host in machine.lacks:
                    raise OSError(machine.lacks[host], "lacks it")
                if machine.taken.get(host, 0):
                    machine.taken[host] -= 1
                    raise OSError(errno.EADDRINUSE, "taken")
                super().bind(address)
                machine.open.append(self)

        monkeypatch.setattr("sharecore.network.binding.socket.socket", Socket)

    def left_open(self) -> int:
        """Return the number of sockets that are not closed; close them."""
        left = [each for each in self.open if each.fileno() >= 0]
        for each in left:
            each.close()
        return len(left)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_every_address_gets_the_port_that_the_system_chose(machine: Machine) -> None:
    bound = bind_all(found("127.0.0.1", "127.0.0.2", "127.0.0.3"))
    chosen = {each.getsockname()[1] for each in bound}
    assert len(bound) == 3
    assert len(chosen) == 1
    assert chosen != {0}
    assert machine.left_open() == 3


def test_another_port_is_chosen_if_one_is_taken_at_another_address(machine: Machine) -> None:
    machine.taken = {"127.0.0.2": 3}
    bound = bind_all(found("127.0.0.1", "127.0.0.2"))
    assert len({each.getsockname()[1] for each in bound}) == 1
    assert machine.left_open() == 2


def test_a_port_that_is_taken_is_an_error(machine: Machine) -> None:
    machine.taken = {"127.0.0.2": 1}
    with pytest.raises(OSError, match="taken") as caught:
        bind_all(found("127.0.0.1", "127.0.0.2", port=18_443))
    assert caught.value.errno == errno.EADDRINUSE
    machine.taken = {"127.0.0.2": 1 << 30}
    with pytest.raises(OSError, match="taken"):
        bind_all(found("127.0.0.1", "127.0.0.2"))
    assert machine.left_open() == 0


@pytest.mark.parametrize("number", [errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])
@pytest.mark.parametrize("lacking", ["127.0.0.1", "127.0.0.2"])
def test_an_address_that_the_machine_lacks_is_left_out(machine: Machine, lacking: str, number: int) -> None:
    machine.lacks = {lacking: number}
    bound = bind_all(found("127.0.0.1", "127.0.0.2"))
    (there,) = {"127.0.0.1", "127.0.0.2"} - {lacking}
    assert [each.getsockname()[0] for each in bound] == [there]
    assert machine.left_open() == 1


def test_a_machine_without_any_of_the_addresses_is_an_error(machine: Machine) -> None:
    machine.lacks = {"127.0.0.1": errno.EADDRNOTAVAIL, "127.0.0.2": errno.EADDRNOTAVAIL}
    with pytest.raises(OSError, match="lacks it"):
        bind_all(found("127.0.0.1", "127.0.0.2"))
    assert machine.left_open() == 0


def test_a_page_needs_only_the_first_address_that_the_machine_has(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = found("127.0.0.1", "127.0.0.2", "127.0.0.3")
    monkeypatch.setattr("sharecore.page.server.socket.getaddrinfo", lambda *_, **__: three)
    machine.lacks = {"127.0.0.1": errno.EADDRNOTAVAIL}
    machine.taken = {"127.0.0.3": 1 << 30}
    assert listen("here", 0).getsockname()[0] == "127.0.0.2"
    assert machine.left_open() == 1
    machine.taken = {"127.0.0.2": 1 << 30}
    with pytest.raises(OSError, match="another process uses this port"):
        listen("here", 0)
    machine.lacks = dict.fromkeys(("127.0.0.1", "127.0.0.2", "127.0.0.3"), errno.EADDRNOTAVAIL)
    with pytest.raises(OSError, match="no such address"):
        listen("here", 0)
    assert machine.left_open() == 0
