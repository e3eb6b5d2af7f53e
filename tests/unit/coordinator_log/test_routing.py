"""The partition of a key: by Java's hash of text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sharecore.coordinator_log.routing import java_string_hash, partition_for

ANY_TEXT = st.text(st.characters(exclude_categories=()))
"""Includes unpaired surrogates, which clients cannot send, but Python allows."""


def defined(text: str) -> int:
    """As the documentation of Java's `String.hashCode` defines it."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[index : index + 2], "big")) % (1 << 32)
    return value - (1 << 32) if value >= 1 << 31 else value


@given(ANY_TEXT, ANY_TEXT)
def test_as_java_computes_it_at_once_or_in_parts(first: str, rest: str) -> None:
    assert java_string_hash(first + rest) == defined(first + rest)
    assert java_string_hash(rest, java_string_hash(first)) == defined(first + rest)


def test_the_lowest_hash_has_a_partition() -> None:
    assert java_string_hash("polygenelubricants") == -(1 << 31)
    assert partition_for("polygenelubricants", 50) == 0
