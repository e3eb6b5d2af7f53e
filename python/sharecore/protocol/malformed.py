"""What a reader raises on bytes that are not the message they claim to be."""

from __future__ import annotations


class MalformedMessage(Exception):
    """The bytes do not hold the message; the connection that sent them cannot be trusted to be in step."""
