from __future__ import annotations

import pytest

from sharecore.client.java_names import from_java
from sharecore.errors import ConfigError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"client.id": "a"}, {"client.id": "a"}),
        (
            {
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": f'{PLAIN} required username="u" password="p\\"w;";',
            },
            {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": 'p"w;'},
        ),
        (
            {"sasl.jaas.config": "a.ScramLoginModule required\n  username='u'\n  password='p' ;"},
            {"sasl.username": "u", "sasl.password": "p"},
        ),
        (
            {"ssl.truststore.type": "pem", "ssl.truststore.location": "ca.pem", "ssl.key.password": "k"},
            {"ssl.ca.location": "ca.pem", "ssl.key.password": "k"},
        ),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "-----"}, {"ssl.ca.pem": "-----"}),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.location": "me.pem"},
            {"ssl.certificate.location": "me.pem"},
        ),
    ],
)
def test_what_a_jvm_was_told_is_understood(given: dict[str, str], read: dict[str, str]) -> None:
    assert from_java(given) == read


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ssl.truststore.location": "a.jks"}, "kafka.ssl.truststore.location is a JKS store.*keytool"),
        (
            {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "a"},
            "keystore.location is a PKCS12 store",
        ),
        ({"sasl.jaas.config": "com.sun.Krb5LoginModule required;"}, "PlainLoginModule and ScramLoginModule"),
        ({"sasl.jaas.config": f'{PLAIN} required username="u";'}, "needs username"),
    ],
)
def test_what_only_a_jvm_can_do_is_told(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_java(given, "kafka.")
