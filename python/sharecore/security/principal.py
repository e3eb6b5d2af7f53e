"""Identity of a client."""

from __future__ import annotations

from typing import NamedTuple

USER = "User"


class Principal(NamedTuple):
    """A type and a name; `str` formats it as in ACLs: `User:alice`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Principal:
        """Parse `User:alice`.

        Raises:
            ValueError: type or name is missing.
        """
        kind, colon, name = text.strip().partition(":")
        if not kind or not colon or not name:
            raise ValueError(f"{text!r} is not a principal; allowed: Type:name, such as User:alice")
        return cls(kind, name)


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""Principal of clients on a listener without authentication."""
