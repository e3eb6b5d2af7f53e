"""Request to close a connection."""

from __future__ import annotations


class Disconnect(Exception):
    """Raised by a request handler to close the connection with a reason."""
