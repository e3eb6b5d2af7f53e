"""TLS and SASL as Kafka's Java client, and so Spark's Kafka source, wants them set."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sharecore.errors import ConfigError

_PEM = {
    "truststore": {
        "ssl.truststore.location": "ssl.ca.location",
        "ssl.truststore.certificates": "ssl.ca.pem",
    },
    "keystore": {"ssl.keystore.location": "ssl.certificate.location"},
}
_MODULES = ("PlainLoginModule", "ScramLoginModule")
_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")


def from_java(given: Mapping[str, str]) -> dict[str, str]:
    """Settings with `sasl.jaas.config`, trust store and key store replaced by what they hold.

    Raises:
        ConfigError: a store that only a JVM can read, or a login module that is not known.
    """
    settings = dict(given)
    jaas = settings.pop("sasl.jaas.config", None)
    if jaas is not None:
        settings |= _credentials(jaas)
    for store, names in _PEM.items():
        used = [name for name in names if name in settings]
        kind = settings.pop(f"ssl.{store}.type", "JKS").upper()
        if used and kind != "PEM":
            raise ConfigError(
                f"kafka.{used[0]} is a {kind} store, which only a JVM reads: write it as PEM (with "
                f"keytool -exportcert -rfc, or openssl pkcs12) and set kafka.ssl.{store}.type=PEM"
            )
        for name in used:
            settings[names[name]] = settings.pop(name)
    return settings


def _credentials(jaas: str) -> dict[str, str]:
    module, _, rest = jaas.strip().partition(" ")
    if not module.endswith(_MODULES):
        raise ConfigError(
            f"kafka.sasl.jaas.config begins with {module!r}: {' and '.join(_MODULES)} are understood; "
            "without it, kafka.sasl.mechanism, kafka.sasl.username and kafka.sasl.password"
        )
    options = {
        name: re.sub(r"\\(.)", r"\1", double or single) for name, double, single in _OPTION.findall(rest)
    }
    if not options.keys() >= {"username", "password"}:
        raise ConfigError('kafka.sasl.jaas.config needs username="..." and password="..."')
    return {"sasl.username": options["username"], "sasl.password": options["password"]}
