"""Messages with Rust structs match the schemas."""

from __future__ import annotations

from tests.unit.protocol import messages


def test_the_structs_are_those_of_the_schemas() -> None:
    assert messages.TARGET.read_text() == messages.write(), "python -m tests.unit.protocol.messages"
