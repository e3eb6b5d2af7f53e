"""Keystores and truststores of Kafka's settings, as PEM."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sharecore.config import BrokerConfig
from sharecore.config.secret import Secret
from sharecore.errors import ConfigError, ConfigUnavailable
from sharecore.security.files import read_file

_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_DER_SEQUENCE = b"\x30"
_EDGE = re.compile(r"-----(BEGIN|END) ([A-Z0-9 ]{1,64})-----")


@dataclass(frozen=True, slots=True, repr=False)
class KeyPair:
    """A private key and its certificates.

    Args:
        key_pem: the key, encrypted where `password` is set.
        chain_pem: the broker's certificate, then those of its issuers.
        password: the key's password.
    """

    key_pem: str
    chain_pem: str
    password: str | None


def read_keystore(config: BrokerConfig) -> KeyPair | None:
    """Return the key and certificates of a listener (`ssl.keystore.*`); None if not set.

    Raises:
        ConfigError: it cannot be read.
    """
    key, chain = config.ssl_keystore_key, config.ssl_keystore_certificate_chain
    password = _value(config.ssl_key_password)
    if key is not None or chain is not None:
        if key is None or chain is None:
            raise ConfigError("ssl.keystore.key and ssl.keystore.certificate.chain: set both or none")
        return KeyPair(_lines(key.value), _lines(chain.value), password)
    location = config.ssl_keystore_location
    if location is None:
        return None
    store = _value(config.ssl_keystore_password)
    data = _read("ssl.keystore.location", location, config.ssl_keystore_type)
    if isinstance(data, str):
        keys = [data[part] for kind, part in _blocks(data) if kind.endswith("PRIVATE KEY")]
        if len(keys) != 1:
            raise ConfigError(
                f"ssl.keystore.location={location}: {len(keys)} private keys in it; allowed: a PEM file "
                "with one key and its certificates"
            )
        return KeyPair(keys[0], _certificates("ssl.keystore.location", location, data), password)
    return _from_pkcs12(location, data, store, password)


def read_truststore(config: BrokerConfig) -> str | None:
    """Return the trusted certificates as PEM (`ssl.truststore.*`); None if not set.

    Raises:
        ConfigError: it cannot be read.
    """
    if config.ssl_truststore_certificates is not None:
        return _lines(config.ssl_truststore_certificates.value)
    location = config.ssl_truststore_location
    if location is None:
        return None
    data = _read("ssl.truststore.location", location, config.ssl_truststore_type)
    if isinstance(data, str):
        return _certificates("ssl.truststore.location", location, data)
    return _trusted_of_pkcs12(location, data, _value(config.ssl_truststore_password))


def store_files(config: BrokerConfig) -> list[Path]:
    """Return the files named by the settings."""
    return [Path(each) for each in (config.ssl_keystore_location, config.ssl_truststore_location) if each]


def _value(secret: Secret | None) -> str | None:
    return secret.value if secret is not None else None


def _lines(pem: str) -> str:
    """Return PEM with line breaks, also if a property holds it on one line."""

    def unfold(kind: str, block: str) -> str:
        head, tail = f"-----BEGIN {kind}-----", f"-----END {kind}-----"
        body = "\n".join(block[len(head) : -len(tail)].split())
        return f"{head}\n{body}\n{tail}"

    return "\n".join(unfold(kind, pem[part]) for kind, part in _blocks(pem)) or pem


def _blocks(text: str) -> Iterator[tuple[str, slice]]:
    """Yield kind and position of each PEM block of a text, in a single pass."""
    begun: re.Match[str] | None = None
    for edge in _EDGE.finditer(text):
        if edge[1] == "BEGIN":
            begun = edge
        elif begun is not None and edge[2] == begun[2]:
            yield edge[2], slice(begun.start(), edge.end())
            begun = None


def _read(name: str, location: str, kind: str) -> bytes | str:
    """Return a store's content: text for PEM, bytes for PKCS12."""
    try:
        data = read_file(location)
    except OSError as error:
        raise ConfigUnavailable(f"{name}={location}: cannot be read: {error.strerror or error}") from None
    if data.startswith(_JKS_MAGIC):
        pkcs12 = str(Path(location).with_suffix(".p12"))
        raise ConfigError(
            f"{name}={location}: a JKS store, which only Java can read; convert it with: "
            f"keytool -importkeystore -srckeystore {location} -destkeystore {pkcs12} -deststoretype PKCS12"
        )
    # if Kafka's type is JKS, the default, Java reads PKCS12 as well
    if kind != "PEM" and data.startswith(_DER_SEQUENCE):
        return data
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        text = ""
    if "-----BEGIN " not in text:
        raise ConfigError(f"{name}={location}: no {kind} store; allowed: a file in PKCS12 or PEM")
    if kind != "PEM":
        setting = name.replace("location", "type")
        raise ConfigError(f"{name}={location}: a PEM file, but {setting}={kind}; set {setting}=PEM")
    return text


def _certificates(name: str, location: str, text: str) -> str:
    found = [text[part] for kind, part in _blocks(text) if kind == "CERTIFICATE"]
    if not found:
        raise ConfigError(f"{name}={location}: no certificate in it")
    return "\n".join(found)


def _from_pkcs12(location: str, data: bytes, store: str | None, key_password: str | None) -> KeyPair:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        pkcs12,
    )

    error: Exception | None = None
    for password in dict.fromkeys((store, key_password)):
        try:
            found = pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
        except ValueError as refused:
            error = error or refused
            continue
        if found.key is None or found.cert is None:
            raise ConfigError(f"ssl.keystore.location={location}: no key with a certificate in it")
        # never written to disk without a password
        passing = secrets.token_urlsafe(24)
        key = found.key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(passing.encode())
        )
        chain = [found.cert, *found.additional_certs]
        pem = b"".join(each.certificate.public_bytes(Encoding.PEM) for each in chain)
        return KeyPair(key.decode(), pem.decode(), passing)
    raise ConfigError(f"ssl.keystore.location={location}: cannot be opened: {error}")


def _trusted_of_pkcs12(location: str, data: bytes, password: str | None) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    try:
        found = pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError as error:
        raise ConfigError(f"ssl.truststore.location={location}: cannot be opened: {error}") from None
    certificates = [*([found.cert] if found.cert else []), *found.additional_certs]
    if not certificates:
        raise ConfigError(f"ssl.truststore.location={location}: no certificate in it")
    return b"".join(each.certificate.public_bytes(Encoding.PEM) for each in certificates).decode()
