"""SASL SCRAM (RFC 5802, 7677), with users in the catalog (KIP-554).

Names, passwords and salts are used unchanged, as in Apache Kafka: neither it nor its clients apply SASLprep
(RFC 4013), and a salt may have any length.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable
from typing import NamedTuple

from sharecore.security.first_users import ITERATIONS_MIN, FirstUser
from sharecore.security.sasl import ANOTHER_USER, Refused
from sharecore.storage import Catalog, Ticket

SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""Mechanisms by Kafka's numbers."""
_PREFIX = b"scram/"
_SALT_BYTES = _NONCE_BYTES = 24


class Credential(NamedTuple):
    """Stored part of a password: it suffices to verify the password, but not to recover it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of_password(cls, mechanism: str, password: str, iterations: int = ITERATIONS_MIN) -> Credential:
        """Derive a credential from a password, with a new salt."""
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(_digest(mechanism), password.encode(), salt, iterations)
        return cls.of_salted(mechanism, salt, salted, iterations)

    @classmethod
    def of_salted(cls, mechanism: str, salt: bytes, salted: bytes, iterations: int) -> Credential:
        """Derive a credential from a password salted by the client, as in AlterUserScramCredentials."""
        digest = _digest(mechanism)
        client_key = hmac.digest(salted, b"Client Key", digest)
        stored = hashlib.new(digest, client_key).digest()
        return cls(salt, stored, hmac.digest(salted, b"Server Key", digest), iterations)


class Credentials:
    """Credentials of all users by mechanism, stored in the catalog.

    Args:
        catalog: stores the credentials.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._found: dict[tuple[str, str], Credential] = {}
        for key, _ in catalog.scan(_PREFIX):
            self._on_change(key)
        catalog.watch(_PREFIX, self._on_change)

    def get(self, user: str, mechanism: str) -> Credential | None:
        """Return a user's credential for a mechanism."""
        return self._found.get((user, mechanism))

    def users(self) -> dict[str, dict[str, int]]:
        """Return every user's mechanisms, with their iterations."""
        users: dict[str, dict[str, int]] = {}
        for (user, mechanism), credential in sorted(self._found.items()):
            users.setdefault(user, {})[mechanism] = credential.iterations
        return users

    def change(
        self,
        puts: Iterable[tuple[str, str, Credential]] = (),
        deletes: Iterable[tuple[str, str]] = (),
    ) -> Ticket:
        """Set and delete credentials, all or none; they take effect once the ticket has succeeded.

        Args:
            puts: user, mechanism and credential.
            deletes: user and mechanism.
        """
        puts, deletes = list(puts), list(deletes)
        ticket = self._catalog.change(
            [(_key(user, mechanism), _encode(credential)) for user, mechanism, credential in puts],
            [_key(user, mechanism) for user, mechanism in deletes],
        )

        def durable(ended: Ticket) -> None:
            if ended.error is None:
                self._found |= {(user, mechanism): credential for user, mechanism, credential in puts}
                for each in deletes:
                    self._found.pop(each, None)

        ticket.add_done_callback(durable)
        return ticket

    def _on_change(self, key: bytes) -> None:
        mechanism, _, user = key.removeprefix(_PREFIX).decode().partition("/")
        value = self._catalog.get(key)
        if value is None:
            self._found.pop((user, mechanism), None)
        else:
            self._found[user, mechanism] = decode_credential(value)


class Scram:
    """A SCRAM mechanism.

    Args:
        name: SCRAM-SHA-256 or SCRAM-SHA-512.
        credentials: the users.
    """

    def __init__(self, name: str, credentials: Credentials) -> None:
        self._name = name
        self._credentials = credentials

    def start(self) -> ScramExchange:
        """Start an exchange with a client."""
        return ScramExchange(self._name, self._credentials)


class _Proof(NamedTuple):
    """Expected values of the client's second message."""

    credential: Credential
    binding: str
    nonce: str
    messages: str
    """The client's first message without its header, and the answer."""


class ScramExchange:
    """Two messages: the user name, and the proof.

    The cost is linear in the message length, as any client can send one.
    """

    expires_ms: int | None = None

    def __init__(self, mechanism: str, credentials: Credentials) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._proof: _Proof | None = None
        self.user = ""
        self.complete = False

    def step(self, message: bytes) -> bytes:
        """Handle the client's next message and return the answer; raise `Refused`."""
        try:
            text = message.decode()
            answer = self._first(text) if self._proof is None else self._final(text, self._proof)
        except ValueError:  # includes UnicodeDecodeError and base64's errors
            raise Refused("the message is malformed", user=self.user) from None
        return answer.encode()

    def _first(self, text: str) -> str:
        flag, act_for, bare = text.split(",", 2)
        if flag not in ("n", "y"):
            raise Refused("channel binding is not supported")
        name, nonce = (_value(part, key) for part, key in zip(bare.split(",", 2), "nr", strict=False))
        self.user = _unescaped(name)
        other = bool(act_for) and _unescaped(_value(act_for, "a")) != self.user
        credential = self._credentials.get(self.user, self._mechanism)
        if credential is None:
            raise Refused("unknown user", user=self.user)
        if other:
            raise Refused(ANOTHER_USER, answer=ANOTHER_USER, user=self.user)
        nonce += secrets.token_urlsafe(_NONCE_BYTES)
        answer = f"r={nonce},s={_base64(credential.salt)},i={credential.iterations}"
        self._proof = _Proof(credential, _base64(f"{flag},{act_for},".encode()), nonce, f"{bare},{answer}")
        return answer

    def _final(self, text: str, expected: _Proof) -> str:
        proven, _, last = text.rpartition(",")
        binding, nonce, *_ = proven.split(",")
        proof = base64.b64decode(_value(last, "p"), validate=True)
        if _value(binding, "c") != expected.binding or _value(nonce, "r") != expected.nonce:
            raise Refused("the message belongs to another exchange", user=self.user)
        credential, digest = expected.credential, _digest(self._mechanism)
        messages = f"{expected.messages},{proven}".encode()
        signature = hmac.digest(credential.stored_key, messages, digest)
        client_key = bytes(a ^ b for a, b in zip(signature, proof, strict=True))
        if not hmac.compare_digest(hashlib.new(digest, client_key).digest(), credential.stored_key):
            raise Refused("the password is wrong", user=self.user)
        self.complete = True
        return f"v={_base64(hmac.digest(credential.server_key, messages, digest))}"


def _value(part: str, key: str) -> str:
    """Return the value of a message attribute; raise ValueError for another or an empty attribute."""
    found, _, value = part.partition("=")
    if found != key or not value:
        raise ValueError(f"{key}= is missing")
    return value


def _unescaped(name: str) -> str:
    """Return a user name without the escapes of messages."""
    if "=" in name.replace("=2C", "").replace("=3D", ""):
        raise ValueError("an equals sign that is not escaped")
    return name.replace("=2C", ",").replace("=3D", "=")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _digest(mechanism: str) -> str:
    """Return the hash function of a mechanism."""
    return mechanism.removeprefix("SCRAM-").replace("-", "").lower()


def _key(user: str, mechanism: str) -> bytes:
    return _PREFIX + f"{mechanism}/{user}".encode()


def _encode(credential: Credential) -> bytes:
    parts = [base64.b64encode(part).decode() for part in credential[:3]]
    return json.dumps([*parts, credential.iterations]).encode()


def decode_credential(value: bytes) -> Credential:
    """Decode a stored credential; raise ValueError or TypeError if it is invalid."""
    salt, stored, server, iterations = json.loads(value)
    salt, stored, server = (base64.b64decode(part, validate=True) for part in (salt, stored, server))
    return Credential(salt, stored, server, iterations)


def first_credential(user: FirstUser) -> tuple[str, str, Credential]:
    """Return user, mechanism and credential of an initial user."""
    made = Credential.of_password(user.mechanism, user.password, user.iterations)
    return user.name, user.mechanism, made
