"""How the page comes to a cluster: as one principal for everybody, or as each user who logs in."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.page.settings import PageConfig
from sharecore.protocol import ApiKey

PASSWORD_MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
_NAMES_A_USER = {"sasl.username", "sasl.jaas.config"}
_LOGINS_AT_ONCE = 16
_ADDRESSES_MAX = 10_000


class Credentials(NamedTuple):
    """What a user logs in with."""

    user: str
    password: str
    mechanism: str


class Access(Protocol):
    """A cluster that the page connects to."""

    @property
    def mechanisms(self) -> Sequence[str]:
        """What users may log in with; none where nobody logs in."""

    def connect(self, credentials: Credentials | None, peer_host: str) -> Transport:
        """Connections as a user, or as everybody.

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
        ConfigError: settings that cannot stand.
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
            # what else cannot stand is told now
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
    """A client's settings with which it is a user."""
    return {
        "sasl.mechanism": credentials.mechanism,
        "sasl.username": credentials.user,
        "sasl.password": credentials.password,
    }


class Refused(Exception):
    """A login that failed; the text is for the user."""


class Logins:
    """Tries credentials: each address one at a time, and after a refusal not at once again."""

    def __init__(self, access: Access, config: PageConfig) -> None:
        self._access = access
        self._pause_s = config.login_pause_s
        self._room = asyncio.Semaphore(_LOGINS_AT_ONCE)
        self._addresses: dict[str, asyncio.Lock] = {}

    async def try_credentials(self, credentials: Credentials, peer_host: str) -> Transport:
        """Connections as the user.

        Raises:
            Refused: the broker does not accept the credentials.
            KafkaError: it cannot be reached.
            ConfigError: credentials that no client could have.
        """
        if credentials.mechanism not in self._access.mechanisms:
            raise Refused(f"mechanism {credentials.mechanism} is not offered here")
        if len(self._addresses) > _ADDRESSES_MAX:
            self._addresses = {host: lock for host, lock in self._addresses.items() if lock.locked()}
        async with self._addresses.setdefault(peer_host, asyncio.Lock()):
            async with self._room:
                transport = self._access.connect(credentials, peer_host)
                try:
                    await transport.any(ApiKey.METADATA, {"topics": [], "allow_auto_topic_creation": False})
                except KafkaError as error:
                    await transport.close()
                    if error.code != ErrorCode.SASL_AUTHENTICATION_FAILED:
                        raise
                except BaseException:
                    await transport.close()
                    raise
                else:
                    return transport
            await asyncio.sleep(self._pause_s)
        raise Refused("user, password or mechanism is not right")
