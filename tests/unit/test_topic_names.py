"""Which names topics may have."""

from __future__ import annotations

import pytest

from sharecore.topic_names import NAME_LENGTH_MAX, is_legal_name


@pytest.mark.parametrize("name", ["jobs", "a.b_c-D9", "...", "x" * NAME_LENGTH_MAX])
def test_a_valid_name(name: str) -> None:
    assert is_legal_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "no topic", "jobs\n", "é", "x" * (NAME_LENGTH_MAX + 1)])
def test_an_invalid_name(name: str) -> None:
    assert not is_legal_name(name)
