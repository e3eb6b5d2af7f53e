"""Numbers of things, for humans."""

from __future__ import annotations

import pytest

from sharecore.plural import counted


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (1, "record", "1 record"),
        (0, "record", "0 records"),
        (2, "fetch", "2 fetches"),
        (3, "class", "3 classes"),
    ],
)
def test_a_number_has_its_noun(number: int, noun: str, said: str) -> None:
    assert counted(number, noun) == said
