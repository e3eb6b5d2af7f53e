"""The client's public names are imported on demand."""

from __future__ import annotations

import subprocess
import sys

import pytest

import sharecore.client


def test_every_public_name_is_there() -> None:
    assert set(sharecore.client.__all__) <= set(dir(sharecore.client))
    for name in sharecore.client.__all__:
        found = getattr(sharecore.client, name)
        assert found.__name__ == name


def test_a_name_that_is_not_there_is_an_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match=r"sharecore\.client.*'Consumer'"):
        sharecore.client.Consumer  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="Consumer"):
        exec("from sharecore.client import Consumer")


@pytest.mark.process
def test_who_needs_a_part_does_not_pay_for_the_rest() -> None:
    program = (
        "import sys, sharecore.admin\n"
        "print([name for name in ('confluent_kafka', 'sharecore.client.consumer', 'sharecore.client.workers')"
        " if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert shown.stdout == "[]\n"
