"""Interfaces of SASL mechanisms."""

from __future__ import annotations

from typing import Protocol

ANOTHER_USER = "Authentication failed: Client requested an authorization id that is different from username"


class Refused(Exception):
    """Authentication failed.

    Args:
        reason: the reason for the log, without secrets.
        answer: the client's error message; a general one by default.
        user: the claimed user name, if any.
    """

    def __init__(self, reason: str, *, answer: str | None = None, user: str = "") -> None:
        super().__init__(reason)
        self.answer = answer
        self.user = user


class Exchange(Protocol):
    """Exchange of messages with one client."""

    user: str
    """The claimed user name; verified once `complete`."""
    complete: bool
    """Whether authentication has succeeded."""
    expires_ms: int | None
    """Expiry of the credential in ms since the epoch; None for never."""

    def step(self, message: bytes) -> bytes:
        """Handle the client's next message and return the answer; raise `Refused`."""


class Mechanism(Protocol):
    """A SASL mechanism of a listener."""

    def start(self) -> Exchange:
        """Start an exchange with a client."""
