"""SASL SCRAM (RFC 5802, 7677), with users in the catalogue (KIP-554)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from sharecore.security.first_users import ITERATIONS_MIN, FirstUser
from sharecore.security.sasl import Refused
from sharecore.storage import Catalogue, Ticket

if TYPE_CHECKING:
    from scramp import ScramMechanism

SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""Kafka's numbers of the mechanisms."""
_PREFIX = b"scram/"


class Credential(NamedTuple):
    """What is kept of a password: enough to check one, too little to know it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of_password(cls, mechanism: str, password: str, iterations: int = ITERATIONS_MIN) -> Credential:
        """Made of a password, with a new salt."""
        from scramp import ScramMechanism

        salt, stored, server, _ = ScramMechanism(mechanism).make_auth_info(
            password, iteration_count=iterations
        )
        return cls(salt, stored, server, iterations)

    @classmethod
    def of_salted(cls, mechanism: str, salt: bytes, salted: bytes, iterations: int) -> Credential:
        """Made of a password that a client has salted, as AlterUserScramCredentials carries it."""
        digest = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        client_key = hmac.digest(salted, b"Client Key", digest)
        stored = hashlib.new(digest, client_key).digest()
        return cls(salt, stored, hmac.digest(salted, b"Server Key", digest), iterations)


class Credentials:
    """Every user's credentials, by mechanism; kept in the catalogue.

    Args:
        catalogue: where they lie.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._found: dict[tuple[str, str], Credential] = {}
        for key, _ in catalogue.scan(_PREFIX):
            self._told(key)
        catalogue.watch(_PREFIX, self._told)

    def get(self, user: str, mechanism: str) -> Credential | None:
        """A user's credential for a mechanism."""
        return self._found.get((user, mechanism))

    def users(self) -> dict[str, dict[str, int]]:
        """Every user's mechanisms, and the iterations of each."""
        users: dict[str, dict[str, int]] = {}
        for (user, mechanism), credential in sorted(self._found.items()):
            users.setdefault(user, {})[mechanism] = credential.iterations
        return users

    def change(
        self,
        puts: Iterable[tuple[str, str, Credential]] = (),
        deletes: Iterable[tuple[str, str]] = (),
    ) -> Ticket:
        """Sets and deletes credentials, all of them or none; they count once the ticket has ended well.

        Args:
            puts: user, mechanism and credential.
            deletes: user and mechanism.
        """
        puts, deletes = list(puts), list(deletes)
        ticket = self._catalogue.change(
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

    def _told(self, key: bytes) -> None:
        mechanism, _, user = key.removeprefix(_PREFIX).decode().partition("/")
        value = self._catalogue.get(key)
        if value is None:
            self._found.pop((user, mechanism), None)
        else:
            self._found[user, mechanism] = _decode(value)


class Scram:
    """The mechanism.

    Args:
        name: SCRAM-SHA-256 or SCRAM-SHA-512.
        credentials: the users.
    """

    def __init__(self, name: str, credentials: Credentials) -> None:
        # a broker that has no such listener starts without it
        from scramp import ScramMechanism

        self._mechanism = ScramMechanism(name)
        self._credentials = credentials

    def start(self) -> ScramExchange:
        """Begins with a client."""
        return ScramExchange(self._mechanism, self._credentials)


class ScramExchange:
    """Two messages: who it is, and the proof."""

    expires_ms: int | None = None

    def __init__(self, mechanism: ScramMechanism, credentials: Credentials) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._server = mechanism.make_server(self._look_up)
        self._begun = False
        self.user = ""
        self.complete = False

    def step(self, message: bytes) -> bytes:
        """Handles the client's next message and returns the answer; raises `Refused`."""
        from scramp import ScramException

        try:
            text = message.decode()
            if not self._begun:
                self._begun = True
                self._server.set_client_first(text)
                return str(self._server.get_server_first()).encode()
            self._server.set_client_final(text)
            answer = str(self._server.get_server_final()).encode()
        except (ScramException, ValueError) as error:
            reason = str(error) if isinstance(error, ScramException) else "the message cannot be read"
            raise Refused(reason, user=self.user) from None
        self.complete = True
        return answer

    def _look_up(self, name: str) -> Credential | None:
        self.user = name
        return self._credentials.get(name, self._mechanism.name)


def _key(user: str, mechanism: str) -> bytes:
    return _PREFIX + f"{mechanism}/{user}".encode()


def _encode(credential: Credential) -> bytes:
    parts = [base64.b64encode(part).decode() for part in credential[:3]]
    return json.dumps([*parts, credential.iterations]).encode()


def _decode(value: bytes) -> Credential:
    salt, stored, server, iterations = json.loads(value)
    decode = base64.b64decode
    return Credential(decode(salt), decode(stored), decode(server), iterations)


def first_credential(user: FirstUser) -> tuple[str, str, Credential]:
    """User, mechanism and what is kept of the password, of a user that is there from the start."""
    made = Credential.of_password(user.mechanism, user.password, user.iterations)
    return user.name, user.mechanism, made
