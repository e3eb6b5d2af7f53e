"""The TLS context of a listener, which follows its settings and files."""

from __future__ import annotations

import logging
import os
import re
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import partial
from typing import NamedTuple

from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError
from sharecore.security.files import READ_SECONDS_MAX
from sharecore.security.keystore import KeyPair, read_keystore, read_truststore, store_files
from sharecore.waiting import Blocked, BlockingWork

_OF_1_3 = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
_OF_1_2 = re.compile(
    r"TLS_(?P<exchange>[A-Z]+)_(?P<proof>[A-Z]+)_WITH_(?P<cipher>[A-Z0-9_]+)_(?P<digest>SHA\d*)"
)


def restrict(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """Restrict a context to these suites; without names, to all safe ones.

    TLS 1.3 suites cannot be chosen individually: name all three, or none to disable TLS 1.3.

    Raises:
        ConfigError: a suite is unknown, or none is left.
    """
    if not names:
        return
    newer, older = _OF_1_3.intersection(names), [name for name in names if name not in _OF_1_3]
    if newer and newer != _OF_1_3:
        raise ConfigError(
            f"ssl.cipher.suites={','.join(names)}: the suites of TLS 1.3 cannot be chosen one by one here; "
            f"allowed: all of {', '.join(sorted(_OF_1_3))}, or none of them"
        )
    if older:
        try:
            context.set_ciphers(":".join(_openssl(name) for name in older))
        except (ssl.SSLError, ValueError):
            raise ConfigError(
                f"ssl.cipher.suites={','.join(names)}: one is unknown; allowed: names such as "
                "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 and TLS_AES_256_GCM_SHA384"
            ) from None
    if not newer:
        context.maximum_version = min(context.maximum_version, ssl.TLSVersion.TLSv1_2)
    if not older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if context.minimum_version > context.maximum_version:
        raise ConfigError(
            f"ssl.cipher.suites={','.join(names)}: none of them is of a version in ssl.enabled.protocols"
        )


def _openssl(name: str) -> str:
    """Return OpenSSL's name of a TLS 1.2 suite; raise ValueError if it is unknown."""
    parts = _OF_1_2.fullmatch(name)
    if parts is None:
        raise ValueError(name)
    cipher = re.sub(r"AES_(\d+)", r"AES\1", parts["cipher"]).replace("_", "-")
    suite = f"{parts['exchange']}-{parts['proof']}-{cipher}"
    return suite if cipher.startswith("CHACHA20") else f"{suite}-{parts['digest']}"


log = logging.getLogger("sharecore.security")

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
Stamps = tuple[object, ...]
"""Change detection of files."""
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def server_context(config: BrokerConfig) -> ssl.SSLContext:
    """Return the TLS context of a listener.

    Args:
        config: the listener's settings (`BrokerConfig.for_listener`).

    Raises:
        ConfigError: keys or certificates cannot be loaded.
    """
    pair = read_keystore(config)
    if pair is None:
        raise ConfigError(
            "ssl.keystore.location: not set, and a listener with SSL needs a key and certificates; "
            "`sharecore certs` makes some for development"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    versions = sorted(_VERSIONS[each] for each in config.ssl_enabled_protocols)
    if not versions:
        raise ConfigError("ssl.enabled.protocols: empty; allowed: TLSv1.2, TLSv1.3")
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    restrict(context, config.ssl_cipher_suites)
    _load_pair(context, pair)
    context.verify_mode = _CLIENT_AUTH[config.ssl_client_auth]
    if context.verify_mode != ssl.CERT_NONE:
        _load_trusted(context, config)
    return context


def _load_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    with _as_file(f"{pair.key_pem}\n{pair.chain_pem}\n") as path:
        try:
            # an empty password instead of None: OpenSSL would prompt on the terminal
            context.load_cert_chain(path, password=pair.password or "")
        except (ssl.SSLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise ConfigError(
                f"ssl.keystore.*: cannot load the key and its certificates: {reason}; "
                "is ssl.key.password right, and does the key belong to the first certificate?"
            ) from None


def _load_trusted(context: ssl.SSLContext, config: BrokerConfig) -> None:
    trusted = read_truststore(config)
    if trusted is None:
        raise ConfigError(
            f"ssl.client.auth={config.ssl_client_auth}: no authority is trusted; "
            "set ssl.truststore.location to the authorities of the clients"
        )
    try:
        context.load_verify_locations(cadata=trusted)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"ssl.truststore.*: cannot load the certificates: {error}") from None


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """Yield a path with `text` for OpenSSL, in memory if possible."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        number = os.memfd_create("keys")
        path = f"/proc/self/fd/{number}"
    else:
        number, path = tempfile.mkstemp()
    try:
        os.write(number, text.encode())
        yield path
    finally:
        os.close(number)
        if not path.startswith("/proc/"):
            os.unlink(path)


class Loaded(NamedTuple):
    """Contents of a listener's files, with change detection."""

    context: ssl.SSLContext
    stamps: Stamps


def load(config: BrokerConfig, unless: Stamps | None = None) -> Loaded | None:
    """Read a listener's files; blocks on the disk, so it needs a separate thread.

    Args:
        config: the settings as the listener has them.
        unless: return None if the files still match these.

    Raises:
        LoadError: keys or certificates cannot be loaded.
    """
    stamps = _stamps(config)
    if unless is not None and stamps == unless:
        return None
    try:
        return Loaded(server_context(config), stamps)
    except ConfigError as error:
        raise LoadError(str(error), stamps) from None


class LoadError(ConfigError):
    """Keys or certificates cannot be loaded.

    Args:
        stamps: change detection of the files.
    """

    def __init__(self, text: str, stamps: Stamps) -> None:
        super().__init__(text)
        self.stamps = stamps


class TlsListener:
    """Keys, certificates and trust of one listener; established connections keep theirs.

    Args:
        name: the listener.
        config: the settings as the listener has them.

    Raises:
        ConfigError: see `server_context`.
    """

    def __init__(self, name: str, config: BrokerConfig) -> None:
        self.name = name
        self._config = config
        loaded = load(config)
        assert loaded is not None
        self._context, self._stamps = loaded

    def context(self) -> ssl.SSLContext:
        """Return the context of the next handshake."""
        return self._context

    async def reload(
        self, files: BlockingWork, config: BrokerConfig | None = None, *, changed_only: bool = False
    ) -> None:
        """Reload the files; on failure, log it and keep the current ones.

        Args:
            files: reads the files.
            config: new settings of the listener; if none for TLS differs, only changed files are reloaded.
            changed_only: whether to reload only changed files.
        """
        wanted = config or self._config
        is_same = config is not None and _tls_settings(config) == _tls_settings(self._config)
        unless = self._stamps if changed_only or is_same else None
        try:
            loaded = await files.run(partial(load, wanted, unless), READ_SECONDS_MAX)
        except (ConfigError, Blocked) as error:
            log.error("listener %s keeps its certificates: %s", self.name, error)
            # retry only after the files have changed
            if wanted is self._config and isinstance(error, LoadError):
                self._stamps = error.stamps
            return
        if loaded is not None:
            self._context, self._stamps = loaded
            self._config = wanted
            log.info("listener %s has reloaded its certificates", self.name)


def _tls_settings(config: BrokerConfig) -> list[object]:
    return [getattr(config, field.name) for field in fields(config) if field.name.startswith("ssl_")]


def _stamps(config: BrokerConfig) -> Stamps:
    found: list[object] = []
    for path in store_files(config):
        status = None
        with suppress(OSError):
            status = path.stat()
        found.append((path, status and (status.st_mtime_ns, status.st_size, status.st_ino)))
    return tuple(found)
