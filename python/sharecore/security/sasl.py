"""What every SASL mechanism is to the broker."""

from __future__ import annotations

from typing import Protocol

ANOTHER_USER = "Authentication failed: Client requested an authorization id that is different from username"


class Refused(Exception):
    """A client did not prove who it is.

    Args:
        reason: for the log; never a secret.
        answer: what the client is told; a general sentence when it is left out.
        user: whom it said it is, where it said so.
    """

    def __init__(self, reason: str, *, answer: str | None = None, user: str = "") -> None:
        super().__init__(reason)
        self.answer = answer
        self.user = user


class Exchange(Protocol):
    """One client's messages of one mechanism."""

    user: str
    """Whom the client says it is; who it is once `complete`."""
    complete: bool
    """Whether it has proved it."""
    expires_ms: int | None
    """When the proof loses its value, in milliseconds of the epoch; None for never."""

    def step(self, message: bytes) -> bytes:
        """Handle the client's next message and return the answer to it; raise `Refused`."""


class Mechanism(Protocol):
    """A mechanism that a listener offers."""

    def start(self) -> Exchange:
        """Begins with a client."""
