"""Why a connection is closed."""

from __future__ import annotations


class Disconnect(Exception):
    """Raised by a request handler: this connection must be closed, for the reason given."""
