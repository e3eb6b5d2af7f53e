"""A client's TLS and SASL."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import ssl
from collections.abc import Awaitable, Callable

from sharecore.client.errors import AuthenticationFailed
from sharecore.client.settings import ConnectionSettings
from sharecore.client.wire.tokens import find_token
from sharecore.errors import ConfigError

ITERATIONS_MAX = 1_000_000
TLS_ALERT = b"\x15\x03"
"""How a TLS listener begins its response to a plaintext client."""
PROTOCOLS = "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, as the listener requires"
_NAMES_DIFFER = (62, 64)
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH of OpenSSL."""
Exchange = Callable[[bytes], Awaitable[bytes]]


def ssl_context(settings: ConnectionSettings) -> ssl.SSLContext | None:
    """Return the TLS context for the settings, None without TLS.

    Raises:
        ConfigError: a certificate or key that cannot be loaded.
    """
    if not settings.tls:
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ssl_ca_location, cadata=settings.ssl_ca_pem)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"ssl.ca.location={settings.ssl_ca_location!r} cannot be loaded: {error}"
        ) from error
    context.check_hostname = (
        settings.ssl_endpoint_identification_algorithm == "https"
        and settings.enable_ssl_certificate_verification
    )
    if not settings.enable_ssl_certificate_verification:
        context.verify_mode = ssl.CERT_NONE
    if settings.ssl_certificate_location is not None:
        try:
            context.load_cert_chain(
                settings.ssl_certificate_location, settings.ssl_key_location, settings.ssl_key_password
            )
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"ssl.certificate.location={settings.ssl_certificate_location!r} "
                f"with ssl.key.location={settings.ssl_key_location!r} cannot be loaded: {error}"
            ) from error
    return context


def distrust(error: ssl.SSLCertVerificationError) -> str:
    """Return why the broker's certificate is not trusted, and what to do."""
    if error.verify_code in _NAMES_DIFFER:
        return f"{error.verify_message}; connect with a name in its certificate"
    return (
        f"the broker's certificate is not trusted: {error.verify_message}; set ssl.ca.location to the file "
        "of the CA that signed it"
    )


def remedy(mechanism: str) -> str:
    """Return what to do after a mechanism's exchange was refused."""
    if mechanism == "OAUTHBEARER":
        return "check the token's issuer, audience and expiry"
    return f"check sasl.username and sasl.password, and that the user has {mechanism} credentials"


async def authenticate(settings: ConnectionSettings, exchange: Exchange) -> None:
    """Run the mechanism's exchange: PLAIN (RFC 4616), SCRAM (RFC 5802, 7677) or OAUTHBEARER (RFC 7628).

    Raises:
        AuthenticationFailed: the broker refused, or could not prove that it knows the password.
    """
    mechanism = settings.sasl_mechanism or ""
    if mechanism == "OAUTHBEARER":
        await _bear(await find_token(settings), exchange)
        return
    username, password = settings.sasl_username or "", settings.sasl_password or ""
    if mechanism == "PLAIN":
        await exchange(b"\0".join((b"", username.encode(), password.encode())))
        return
    await _scram(mechanism.removeprefix("SCRAM-").replace("-", "").lower(), username, password, exchange)


async def _bear(token: str, exchange: Exchange) -> None:
    refusal = await exchange(f"n,,\x01auth=Bearer {token}\x01\x01".encode())
    if refusal:
        # the broker sends details only after this acknowledgement
        await exchange(b"\x01")
        raise AuthenticationFailed(
            f"the broker refuses the token: {refusal[:200]!r}; {remedy('OAUTHBEARER')}"
        )


async def _scram(digest: str, username: str, password: str, exchange: Exchange) -> None:
    name = username.replace("=", "=3D").replace(",", "=2C")
    nonce = secrets.token_urlsafe(24)
    first = f"n={name},r={nonce}"
    server_first = (await exchange(f"n,,{first}".encode())).decode()
    challenge = _attributes(server_first)
    try:
        server_nonce, salt = challenge["r"], base64.b64decode(challenge["s"])
        iterations = int(challenge["i"])
    except (KeyError, ValueError) as error:
        raise AuthenticationFailed(f"invalid SCRAM challenge from the broker: {server_first!r}") from error
    if not server_nonce.startswith(nonce) or not 0 < iterations <= ITERATIONS_MAX:
        raise AuthenticationFailed("the broker's SCRAM challenge does not fit the request")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", digest)
    stored_key = hashlib.new(digest, client_key).digest()
    final = f"c=biws,r={server_nonce}"
    message = ",".join((first, server_first, final)).encode()
    signature = hmac.digest(stored_key, message, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    answer = await exchange(f"{final},p={base64.b64encode(proof).decode()}".encode())
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), message, digest)
    if not hmac.compare_digest(
        _attributes(answer.decode()).get("v", ""), base64.b64encode(expected).decode()
    ):
        raise AuthenticationFailed("the broker could not prove that it knows the password")


def _attributes(message: str) -> dict[str, str]:
    return {part[0]: part[2:] for part in message.split(",") if part[1:2] == "="}
