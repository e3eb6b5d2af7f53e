"""Who a client is."""

from __future__ import annotations

from typing import NamedTuple

USER = "User"


class Principal(NamedTuple):
    """A type and a name; `str` writes it as ACLs do, `User:alice`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Principal:
        """Read `User:alice`.

        Raises:
            ValueError: there is no type or no name.
        """
        kind, colon, name = text.strip().partition(":")
        if not kind or not colon or not name:
            raise ValueError(f"{text!r} is no principal; allowed: Type:name, as in User:alice")
        return cls(kind, name)


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""Who comes in by a listener that asks nobody for a name."""
