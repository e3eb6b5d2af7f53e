"""SCRAM message by message, if a client names an authorization identity."""

from __future__ import annotations

import base64
import hashlib
import hmac
from types import SimpleNamespace
from typing import Any

import pytest

from sharecore.security.sasl import Refused
from sharecore.security.scram import Credential, Scram, ScramExchange

MECHANISM, PASSWORD = "SCRAM-SHA-256", "secret"


def exchange(user: str) -> ScramExchange:
    """Return an exchange with a broker that knows one user."""
    credential = Credential.of_password(MECHANISM, PASSWORD)
    known: Any = SimpleNamespace(get=lambda name, mechanism: credential if name == user else None)
    return Scram(MECHANISM, known).start()


def final_message(head: str, bare: str, first: str, *, signed: str | None = None) -> bytes:
    """Return a client's second message, with the proof; `signed` is another header than in the first."""
    said = dict(part.split("=", 1) for part in first.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), base64.b64decode(said["s"]), int(said["i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    binding = base64.b64encode((head if signed is None else signed).encode()).decode()
    text = f"c={binding},r={said['r']}"
    signature = hmac.digest(hashlib.sha256(key).digest(), f"{bare},{first},{text}".encode(), "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return f"{text},p={base64.b64encode(proof).decode()}".encode()


@pytest.mark.parametrize(
    ("user", "head", "name"),
    [
        ("ann", "n,,", "ann"),
        ("ann", "n,a=ann,", "ann"),
        ("ann", "y,a=ann,", "ann"),
        ("a,n=n", "n,a=a=2Cn=3Dn,", "a=2Cn=3Dn"),
    ],
)
def test_a_client_may_say_that_it_acts_for_itself(user: str, head: str, name: str) -> None:
    talk, bare = exchange(user), f"n={name},r=nonce"
    first = talk.step(f"{head}{bare}".encode()).decode()
    talk.step(final_message(head, bare, first))
    assert (talk.complete, talk.user) == (True, user)


@pytest.mark.parametrize("head", ["n,a=bob,", "n,a=,", "n,a=ann=2C,"])
def test_a_client_acts_for_nobody_else(head: str) -> None:
    with pytest.raises(Refused):
        exchange("ann").step(f"{head}n=ann,r=nonce".encode())


@pytest.mark.parametrize(("head", "signed"), [("n,a=ann,", "n,,"), ("n,,", "n,a=ann,")])
def test_what_a_client_has_said_is_signed(head: str, signed: str) -> None:
    talk, bare = exchange("ann"), "n=ann,r=nonce"
    first = talk.step(f"{head}{bare}".encode()).decode()
    with pytest.raises(Refused):
        talk.step(final_message(head, bare, first, signed=signed))
    assert not talk.complete
