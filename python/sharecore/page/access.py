"""Connections of the page to the cluster: one principal for everybody, or each user's own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.page.settings import PageConfig
from sharecore.protocol import calls

PASSWORD_MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
_NAMES_A_USER = {"sasl.username", "sasl.jaas.config"}
_LOGINS_AT_ONCE = 16
_USERS_AT_ONCE = 8
_WAITING_MAX = 8
"""Logins of one address: users that are tried at a time, and logins that wait for their turn."""


class Credentials(NamedTuple):
    """What a user logs in with."""

    user: str
    password: str
    mechanism: str


class Access(Protocol):
    """A cluster that the page connects to."""

    @property
    def mechanisms(self) -> Sequence[str]:
        """Return the mechanisms of the login; none without a login."""

    def connect(self, credentials: Credentials | None, peer_host: str) -> Transport:
        """Return connections as a user, or as everybody.

        Args:
            peer_host: address of the browser.

        Raises:
            ConfigError: credentials that no client could have.
        """


class ClusterAccess:
    """Any cluster, by its address.

    With `sasl.username` among the settings everybody is that user; with SASL and without it each logs in.

    Args:
        settings: of an administrator's client.

    Raises:
        ConfigError: invalid settings.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = dict(settings)
        self.mechanisms: Sequence[str] = ()
        named = settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "")).upper()
        sasl = settings.get("security.protocol", "").upper().startswith("SASL")
        if sasl and named in ("", *PASSWORD_MECHANISMS) and not _NAMES_A_USER & settings.keys():
            for name in ("sasl.mechanism", "sasl.mechanisms"):
                self._settings.pop(name, None)
            self.mechanisms = (named,) if named else PASSWORD_MECHANISMS
            # report other invalid settings now
            read_connection_settings(self._with(Credentials("user", "password", self.mechanisms[0])))
        else:
            read_connection_settings(self._settings)

    def connect(self, credentials: Credentials | None, peer_host: str) -> Transport:
        """See `Access`."""
        settings = self._settings if credentials is None else self._with(credentials)
        return Transport(read_connection_settings(settings))

    def _with(self, credentials: Credentials) -> dict[str, str]:
        return self._settings | sasl_settings(credentials)


def sasl_settings(credentials: Credentials) -> dict[str, str]:
    """Return a client's settings with which it is a user."""
    return {
        "sasl.mechanism": credentials.mechanism,
        "sasl.username": credentials.user,
        "sasl.password": credentials.password,
    }


class Refused(Exception):
    """A login that failed; the text is for the user."""


class Busy(Exception):
    """An address tries more logins than are tried for it; the text is for the user."""


class _Address:
    """Logins from one address.

    Attributes:
        trying: users whose credentials are being tried, or were refused just now.
        waiting: users that wait for their turn, the newest last.
    """

    def __init__(self) -> None:
        self.trying: set[str] = set()
        self.waiting: list[tuple[str, asyncio.Future[None]]] = []

    def may_try(self, user: str) -> bool:
        return user not in self.trying and len(self.trying) < _USERS_AT_ONCE

    def next(self) -> None:
        """Let the newest go on that may: it is the least likely to be one of many that were sent together."""
        for place in range(len(self.waiting) - 1, -1, -1):
            user, turn = self.waiting[place]
            if turn.done():
                del self.waiting[place]
            elif self.may_try(user):
                del self.waiting[place]
                self.trying.add(user)
                turn.set_result(None)


class Logins:
    """Tries credentials: of a user one at a time from an address, and after a refusal not at once again.

    Few wait. Where more come, the one that has waited longest is refused; so wrong logins, however
    many, do not keep a right one out.
    """

    def __init__(self, access: Access, config: PageConfig) -> None:
        self._access = access
        self._pause_s = config.login_pause_s
        self._room = asyncio.Semaphore(_LOGINS_AT_ONCE)
        self._addresses: dict[str, _Address] = {}

    async def try_credentials(self, credentials: Credentials, peer_host: str) -> Transport:
        """Return connections as the user.

        Raises:
            Refused: the broker does not accept the credentials.
            Busy: too many logins come from the address.
            KafkaError: it cannot be reached.
            ConfigError: credentials that no client could have.
        """
        if credentials.mechanism not in self._access.mechanisms:
            raise Refused(f"mechanism {credentials.mechanism:.40} is not offered here")
        user = credentials.user
        address = self._addresses.setdefault(peer_host, _Address())
        if address.may_try(user):
            address.trying.add(user)
        else:
            await self._turn(address, user)
        pause_s = 0.0
        try:
            async with self._room:
                transport = await self._connect(credentials, peer_host)
            if transport is not None:
                return transport
            pause_s = self._pause_s
        finally:
            asyncio.get_running_loop().call_later(pause_s, self._tried, peer_host, address, user)
        await asyncio.sleep(pause_s)
        raise Refused("user, password or mechanism is not right")

    async def _turn(self, address: _Address, user: str) -> None:
        """Wait until the user's credentials may be tried."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        address.waiting.append((user, turn))
        if len(address.waiting) > _WAITING_MAX:
            _, oldest = address.waiting.pop(0)
            if not oldest.done():
                oldest.set_exception(Busy("too many logins come from here; try again in a moment"))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                address.trying.discard(user)
                address.next()
            raise

    async def _connect(self, credentials: Credentials, peer_host: str) -> Transport | None:
        """Connect as the user; None if the broker refuses the credentials."""
        transport = self._access.connect(credentials, peer_host)
        try:
            await transport.any(calls.METADATA, {"topics": [], "allow_auto_topic_creation": False})
        except KafkaError as error:
            await transport.close()
            if error.code != ErrorCode.SASL_AUTHENTICATION_FAILED:
                raise
            return None
        except BaseException:
            await transport.close()
            raise
        return transport

    def _tried(self, peer_host: str, address: _Address, user: str) -> None:
        address.trying.discard(user)
        address.next()
        if not address.trying and not address.waiting:
            self._addresses.pop(peer_host, None)
