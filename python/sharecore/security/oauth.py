"""SASL OAUTHBEARER (RFC 7628): signed JSON Web Tokens (KIP-768)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError, ConfigUnavailable
from sharecore.security.files import read_file
from sharecore.security.sasl import Refused

# only asymmetric signatures; never `none`, never a shared secret
_ALGORITHMS = [
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
]
_FETCH_TIMEOUT_S = 10.0
_EXPIRES_S_MAX = 253402300799
"""End of the year 9999: the maximum expiry of a token."""
_NAME_MAX = 1024
_KEYS_BYTES_MAX = 1 << 20
_REFUSED = json.dumps({"status": "invalid_token"})


class TokenKeys:
    """Token signing keys, from a file or a URL.

    Args:
        config: the listener's settings for OAUTHBEARER.

    Raises:
        ConfigError: the URL is not set.
        ConfigUnavailable: the keys cannot be fetched, or are no key set.
    """

    def __init__(self, config: BrokerConfig) -> None:
        url = config.sasl_oauthbearer_jwks_endpoint_url
        if url is None or urlsplit(url).scheme not in ("file", "https", "http"):
            raise ConfigError(
                f"sasl.oauthbearer.jwks.endpoint.url={url or ''}: OAUTHBEARER needs the keys that "
                "sign tokens; allowed: a file:, https: or http: address of a JSON Web Key Set"
            )
        self.url = url
        self.refresh_ms = config.sasl_oauthbearer_jwks_endpoint_refresh_ms
        self._keys: dict[str | None, object] = {}
        try:
            self.fetch()
        except (OSError, ValueError) as error:
            # an identity provider under maintenance may answer with something else
            raise ConfigUnavailable(f"sasl.oauthbearer.jwks.endpoint.url={url}: {error}") from None

    def fetch(self) -> None:
        """Fetch the keys; blocks on the network, so it needs a separate thread.

        Raises:
            OSError: the URL cannot be read.
            ValueError: the answer is not a key set.
        """
        from urllib.request import url2pathname, urlopen

        from jwt import PyJWKSet
        from jwt.exceptions import PyJWTError

        address = urlsplit(self.url)
        if address.scheme == "file":
            content = read_file(url2pathname(address.path), _KEYS_BYTES_MAX)
        else:
            with urlopen(self.url, timeout=_FETCH_TIMEOUT_S) as answer:
                content = answer.read(_KEYS_BYTES_MAX)
        try:
            keys = PyJWKSet.from_dict(json.loads(content)).keys
        except (PyJWTError, ValueError, AttributeError, TypeError) as error:
            raise ValueError(f"not a JSON Web Key Set: {error}") from None
        self._keys = {key.key_id: key for key in keys if key.key_type != "oct"}

    def find(self, key_id: str | None) -> Any:
        """Return the key with an id; for a token without an id, the only key."""
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id)


class OAuth:
    """The OAUTHBEARER mechanism.

    Args:
        config: the listener's settings for OAUTHBEARER.
        keys: the token signing keys.
    """

    def __init__(self, config: BrokerConfig, keys: TokenKeys) -> None:
        self._config = config
        self._keys = keys

    def start(self) -> OAuthExchange:
        """Start an exchange with a client."""
        return OAuthExchange(self)

    def verify(self, token: str) -> tuple[str, int]:
        """Return the name in a valid token, and its expiry in ms since the epoch; raise Refused."""
        import jwt
        from jwt.exceptions import PyJWTError

        config = self._config
        audience = config.sasl_oauthbearer_expected_audience
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in _ALGORITHMS:
                raise Refused("the token's algorithm is not allowed")
            key = self._keys.find(header.get("kid"))
            if key is None:
                raise Refused("the token is signed with an unknown key")
            claims = jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                audience=list(audience) if audience else None,
                issuer=config.sasl_oauthbearer_expected_issuer,
                leeway=config.sasl_oauthbearer_clock_skew_seconds,
                options={"require": ["exp", "iat"], "verify_aud": bool(audience)},
            )
            # the library accepts numbers that are not valid times
            expires_ms = int(min(float(claims["exp"]), _EXPIRES_S_MAX) * 1000)
        except (PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            # the library's messages contain claim names, but no secrets
            raise Refused(f"the token is invalid: {type(error).__name__}") from None
        name = claims.get(config.sasl_oauthbearer_sub_claim_name)
        if not isinstance(name, str) or not name:
            raise Refused(f"the token has no {config.sasl_oauthbearer_sub_claim_name}")
        if len(name) > _NAME_MAX:
            raise Refused(f"the token's name is longer than {_NAME_MAX} characters")
        return name, expires_ms


class OAuthExchange:
    """One message with the token; after a refusal, another one that returns the reason."""

    def __init__(self, mechanism: OAuth) -> None:
        self._mechanism = mechanism
        self._refused: Refused | None = None
        self.user = ""
        self.complete = False
        self.expires_ms: int | None = None

    def step(self, message: bytes) -> bytes:
        """Handle the client's message; raise `Refused`."""
        if self._refused is not None:
            raise self._refused
        act_for, token = _parse(message)
        try:
            user, expires_ms = self._mechanism.verify(token)
            if act_for and act_for != user:
                raise Refused("the authorization id is not the token's", user=user)
        except Refused as refused:
            self._refused = Refused(str(refused), answer=_REFUSED, user=refused.user)
            return _REFUSED.encode()
        self.user, self.expires_ms, self.complete = user, expires_ms, True
        return b""


def _parse(message: bytes) -> tuple[str, str]:
    """Return the authorization id and the token."""
    try:
        header, *pairs = message.decode().split("\x01")
        flag, act_for, rest = header.split(",")
    except ValueError:  # includes UnicodeDecodeError
        raise Refused("the message is malformed") from None
    values = dict(pair.partition("=")[::2] for pair in pairs if pair)
    scheme, _, token = values.get("auth", "").partition(" ")
    if flag != "n" or rest or scheme.lower() != "bearer" or not token.strip():
        raise Refused("the message has no bearer token")
    return act_for.removeprefix("a="), token.strip()
