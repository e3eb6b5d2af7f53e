"""A value that must not show."""

from __future__ import annotations


class Secret:
    """A password or a key; only `value` gives it away, no text that is made of it does.

    Args:
        value: what is secret.
    """

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __str__(self) -> str:
        return "[hidden]"

    def __repr__(self) -> str:
        return "Secret([hidden])"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)
