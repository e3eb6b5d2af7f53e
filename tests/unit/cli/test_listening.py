"""Where commands serve their own pages."""

from __future__ import annotations

import pytest

from sharecore.cli.clients import CommandFailed
from sharecore.cli.listening import listen_address, url


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("localhost:9465", ("localhost", 9465), "http://localhost:9465"),
        (":0", (None, 0), "http://localhost:0"),
        ("[::1]:80", ("::1", 80), "http://[::1]:80"),
        ("10.0.0.1:80", ("10.0.0.1", 80), "http://10.0.0.1:80"),
    ],
)
def test_an_address_is_read_and_shown_as_browsers_take_it(
    text: str, address: tuple[str | None, int], shown: str
) -> None:
    assert listen_address(text) == address
    assert url("http", *address) == shown


@pytest.mark.parametrize("text", ["9465", "localhost", "::1:80", "localhost:65536", ""])
def test_what_is_no_address_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(CommandFailed, match=r"^--listen .*: not an address; allowed: HOST:PORT$"):
        listen_address(text)
