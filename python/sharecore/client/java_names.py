"""TLS and SASL settings in the form of Kafka's Java client, and of Spark's Kafka source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from sharecore.errors import ConfigError

_PEM = {
    "truststore": {
        "ssl.truststore.location": "ssl.ca.location",
        "ssl.truststore.certificates": "ssl.ca.pem",
    },
    "keystore": {"ssl.keystore.location": "ssl.certificate.location"},
}
Value = TypeVar("Value")
_MODULES = ("PlainLoginModule", "ScramLoginModule")
_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")


def from_java(given: Mapping[str, Value], prefix: str = "") -> dict[str, Value | str]:
    """Return settings with `sasl.jaas.config`, trust store and key store replaced by their contents.

    Args:
        prefix: prefix of the names as users write them, for errors.

    Raises:
        ConfigError: a store that only a JVM can read, an unknown login module, or no mapping at all.
    """
    if not isinstance(given, Mapping):
        example = "such as {'bootstrap.servers': 'localhost:9092'}"
        raise ConfigError(f"the settings are a {type(given).__name__}: pass a mapping, {example}")
    settings: dict[str, Value | str] = dict(given)
    jaas = settings.pop("sasl.jaas.config", None)
    if jaas is not None:
        settings |= _credentials(str(jaas), prefix)
    for store, names in _PEM.items():
        used = [name for name in names if name in settings]
        kind = str(settings.pop(f"ssl.{store}.type", "JKS")).upper()
        if used and kind != "PEM":
            raise ConfigError(
                f"{prefix}{used[0]} is a {kind} store, which only a JVM can read: convert it to PEM (with "
                f"keytool -exportcert -rfc, or openssl pkcs12) and set {prefix}ssl.{store}.type=PEM"
            )
        for name in used:
            settings[names[name]] = settings.pop(name)
    return settings


def _credentials(jaas: str, prefix: str) -> dict[str, str]:
    module, _, rest = jaas.strip().partition(" ")
    if not module.endswith(_MODULES):
        raise ConfigError(
            f"{prefix}sasl.jaas.config begins with {module!r}: supported are {' and '.join(_MODULES)}; or "
            f"remove it and set {prefix}sasl.mechanism, {prefix}sasl.username and {prefix}sasl.password"
        )
    options = {
        name: re.sub(r"\\(.)", r"\1", double or single) for name, double, single in _OPTION.findall(rest)
    }
    if not options.keys() >= {"username", "password"}:
        raise ConfigError(f'{prefix}sasl.jaas.config needs username="..." and password="..."')
    return {"sasl.username": options["username"], "sasl.password": options["password"]}
