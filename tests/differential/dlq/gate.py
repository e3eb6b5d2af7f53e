"""Ways to keep a broker from writing letters for a while, each of those that its own kind may meet with."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from tests.harness.broker import Broker, free_port

from sharecore.protocol import ApiKey

_FILE_BYTES_MAX = 256 * 1024
"""Of a journal while the disk is full: enough for share state in a new one, not for a letter of more."""


class Gate:
    """Where Apache's brokers reach each other: while it is shut, it hangs up on who produces.

    A broker sends its letters to the leader of their partition, which is itself, as to any other.

    Attributes:
        port: what the brokers are told.
        behind: where the broker listens.
        refused: how many requests came while it was shut.
    """

    def __init__(self) -> None:
        self.port, self.behind = free_port(), free_port()
        self.refused = 0
        self._shut = False
        self._listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listening.close()

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Shuts it, and counts anew."""
        self._shut, self.refused = True, 0
        try:
            yield
        finally:
            self._shut = False

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, suppress(OSError), socket.create_connection(("127.0.0.1", self.behind)) as broker:
            threading.Thread(target=_answers, args=(broker, peer), daemon=True).start()
            with peer.makefile("rb") as stream:
                while frame := _frame(stream):
                    if self._shut and int.from_bytes(frame[4:6], "big") == ApiKey.PRODUCE:
                        self.refused += 1
                        break
                    broker.sendall(frame)
            for end in (peer, broker):
                end.shutdown(socket.SHUT_RDWR)


def _frame(stream: BinaryIO) -> bytes:
    """Return the next request, with its size; nothing at the end."""
    head = stream.read(4)
    return head + stream.read(int.from_bytes(head, "big")) if len(head) == 4 else b""


def _answers(broker: socket.socket, peer: socket.socket) -> None:
    with suppress(OSError):
        while data := broker.recv(1 << 16):
            peer.sendall(data)
        peer.shutdown(socket.SHUT_RDWR)


@contextmanager
def full_disk(broker: Broker) -> Iterator[None]:
    """Lets one of our brokers write small things alone."""
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (_FILE_BYTES_MAX, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        with suppress(ProcessLookupError):  # it has ended in the meantime
            resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, unlimited)


class Refused:
    """The attempts at one letter since it began to be refused.

    After the first come waits of 2, 4, 8 and 16 seconds, each a fifth longer or shorter by chance.

    Args:
        count: how many have failed.
    """

    _ENDS = (0, 2, 6, 14, 30)
    _SPREAD, _SLACK_S = 0.2, 0.8

    def __init__(self, count: Callable[[], int]) -> None:
        self.count = count
        self._began = time.monotonic()

    def attempt(self) -> int:
        """Which attempt may just have ended; 0 where none may."""
        seconds = time.monotonic() - self._began
        for number, end in enumerate(self._ENDS, 1):
            if end * (1 - self._SPREAD) <= seconds <= end * (1 + self._SPREAD) + self._SLACK_S:
                return number
        return 0
