"""SCRAM exchanges (RFC 5802), right and wrong: what each broker answers to both messages of a client."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any, NamedTuple

from tests.differential.access.brokers import CLOSED, INSIDE, Guarded
from tests.harness.wire import Peer

from sharecore.protocol import ApiKey

PASSWORD, SALT, ITERATIONS = b"of-scram", b"salt of a user", 4096
NAME = "scram-user"
ODD, ODD_NAME = "scram, user=1", "scram=2C user=3D1"
"""Another user, and as it stands in messages."""


class Exchange(NamedTuple):
    """What a client sends.

    Args:
        header: of the first message, `gs2-header` in the RFC.
        bare: the rest of the first message.
        binding: the header that the second message repeats; None: the same.
        nonce: what is appended to the broker's nonce.
        password: which the proof is made with.
        extra: between the nonce and the proof.
    """

    header: str = "n,,"
    bare: str = f"n={NAME},r=abc"
    binding: str | None = None
    nonce: str = ""
    password: bytes = PASSWORD
    extra: str = ""


EXCHANGES = {
    "right": Exchange(),
    "without channel binding that it has": Exchange("y,,"),
    "itself to act for": Exchange(f"n,a={NAME},"),
    "an odd name": Exchange(bare=f"n={ODD_NAME},r=abc"),
    "an odd name to act for": Exchange(f"n,a={ODD_NAME},", bare=f"n={ODD_NAME},r=abc"),
    "another to act for": Exchange("n,a=super,"),
    "another to act for an unknown user": Exchange("n,a=super,", bare="n=nemo,r=abc"),
    "nobody to act for": Exchange("n,a=,"),
    "channel binding": Exchange("p=tls-unique,,"),
    "no header": Exchange(""),
    "another header in the second message": Exchange(binding="y,,"),
    "itself to act for in the second message alone": Exchange(binding=f"n,a={NAME},"),
    "another nonce": Exchange(nonce="x"),
    "a wrong password": Exchange(password=b"wrong"),
    "an unknown user": Exchange(bare="n=nemo,r=abc"),
    "no user": Exchange(bare="n=,r=abc"),
    "no nonce": Exchange(bare=f"n={NAME},r="),
    "a name that is not escaped": Exchange(bare="n=a=b,r=abc"),
    "a mandatory extension": Exchange(bare=f"m=x,n={NAME},r=abc"),
    "an extension": Exchange(bare=f"n={NAME},r=abc,x=y"),
    "an extension in the second message": Exchange(extra=",x=y"),
}
DIFFERENT = {
    "without channel binding that it has",
    "an odd name to act for",
    "another header in the second message",
    "itself to act for in the second message alone",
    "a mandatory extension",
    "an extension in the second message",
}
"""Where the RFC is followed and Apache Kafka does not (docs/decisions/differences-from-apache.md)."""


def add_users(broker: Guarded) -> None:
    """Give the users their password."""
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD, SALT, ITERATIONS)
    put = {"mechanism": 1, "iterations": ITERATIONS, "salt": SALT, "salted_password": salted}
    message = {"deletions": [], "upsertions": [{"name": name, **put} for name in (NAME, ODD)]}
    answer = broker.ask(INSIDE, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, message)
    assert [each.error_code for each in answer.results] == [0, 0], answer


def answers(broker: Guarded, exchange: Exchange) -> list[Any]:
    """Code, words and which fields each answer has, up to the one that refuses."""
    with Peer(broker.port, 20) as peer:

        def ask(token: str) -> Any:
            fields = {"auth_bytes": token.encode()}
            return broker.exchange(peer, ApiKey.SASL_AUTHENTICATE, 2, fields)

        broker.exchange(peer, ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "SCRAM-SHA-256"})
        first = ask(exchange.header + exchange.bare)
        if first is None or first.error_code:
            return [_plain(first)]
        return [_plain(first), _plain(ask(_final(exchange, first.auth_bytes.decode())))]


def _final(exchange: Exchange, told: str) -> str:
    nonce = told.split(",")[0].removeprefix("r=")
    header = exchange.header if exchange.binding is None else exchange.binding
    binding = base64.b64encode(header.encode()).decode()
    without_proof = f"c={binding},r={nonce}{exchange.nonce}{exchange.extra}"
    salted = hashlib.pbkdf2_hmac("sha256", exchange.password, SALT, ITERATIONS)
    key = hmac.digest(salted, b"Client Key", "sha256")
    messages = f"{exchange.bare},{told},{without_proof}".encode()
    signature = hmac.digest(hashlib.sha256(key).digest(), messages, "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
    return f"{without_proof},p={proof}"


def _plain(answer: Any) -> Any:
    if answer is None:
        return CLOSED
    fields = [part.split("=")[0] for part in answer.auth_bytes.decode().split(",")]
    return answer.error_code, answer.error_message or "", fields
