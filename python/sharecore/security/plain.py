"""SASL PLAIN (RFC 4616), with users from the configuration."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from typing import NamedTuple

from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError
from sharecore.security.sasl import ANOTHER_USER, Refused

_MODULE = "PlainLoginModule"
_USER = "user_"


class Plain:
    """The PLAIN mechanism.

    Args:
        passwords: passwords by user name.
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    @classmethod
    def of(cls, config: BrokerConfig) -> Plain:
        """Return the mechanism of a listener.

        Args:
            config: the listener's settings for PLAIN.

        Raises:
            ConfigError: the login is invalid.
        """
        if config.sasl_jaas_config is None:
            raise ConfigError(
                "listener.name.NAME.plain.sasl.jaas.config: not set, and PLAIN has no users without; "
                f'allowed: org.apache.kafka.common.security.plain.{_MODULE} required user_alice="...";'
            )
        try:
            login = parse_jaas(config.sasl_jaas_config.value)
        except ValueError as error:
            raise ConfigError(f"plain.sasl.jaas.config: {error}") from None
        if not login.module.endswith(f".{_MODULE}") and login.module != _MODULE:
            raise ConfigError(f"plain.sasl.jaas.config: {login.module} is unknown; allowed: {_MODULE}")
        users = {
            name.removeprefix(_USER): password
            for name, password in login.options.items()
            if name.startswith(_USER)
        }
        return cls(users)

    def start(self) -> PlainExchange:
        """Start an exchange with a client."""
        return PlainExchange(self._passwords)


class PlainExchange:
    """One message: authorization id, user name and password."""

    expires_ms: int | None = None

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.user = ""
        self.complete = False

    def step(self, message: bytes) -> bytes:
        """Handle the client's message; raise `Refused`."""
        try:
            parts = message.decode().split("\0")
        except UnicodeDecodeError:
            raise Refused("the message is not UTF-8") from None
        if len(parts) != 3:
            text = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            raise Refused(text, answer=text)
        act_for, user, password = parts
        for value, name in ((user, "username"), (password, "password")):
            if not value:
                text = f"Authentication failed: {name} not specified"
                raise Refused(text, answer=text, user=user)
        expected = self._passwords.get(user)
        # takes the same time for an unknown user
        matches = hmac.compare_digest((expected or "").encode(), password.encode())
        if expected is None or not matches:
            text = "Authentication failed: Invalid username or password"
            raise Refused(text, answer=text, user=user)
        if act_for and act_for != user:
            raise Refused(ANOTHER_USER, answer=ANOTHER_USER, user=user)
        self.user, self.complete = user, True
        return b""


_TOKEN = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[=;]|[^\s=;"']+)""")
_FLAGS = ("required", "requisite", "sufficient", "optional")


class Login(NamedTuple):
    """One entry: the module's class and options."""

    module: str
    options: dict[str, str]


def parse_jaas(text: str) -> Login:
    """Parse `org.example.PlainLoginModule required user_alice="secret";`.

    Raises:
        ValueError: it is invalid; the message does not contain its content.
    """
    words = _words(text)
    if len(words) < 3 or words[-1] != ";" or words[1].lower() not in _FLAGS:
        raise ValueError('no login; allowed: Module required key="value" ... ;')
    options, at = {}, 2
    while at < len(words) - 1:
        if words[at + 1] != "=" or at + 2 >= len(words) - 1:
            raise ValueError('an option without a value; allowed: key="value"')
        options[_bare(words[at])] = _bare(words[at + 2])
        at += 3
    return Login(words[0], options)


def _words(text: str) -> list[str]:
    words, at, text = [], 0, text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError("a quotation mark that is not closed")
        words.append(match[1])
        at = match.end()
    return words


def _bare(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1]) if word[0] in "\"'" else word
