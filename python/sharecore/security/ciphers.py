"""Translation of cipher-suite names from Kafka's settings to OpenSSL."""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence

from sharecore.errors import ConfigError

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
