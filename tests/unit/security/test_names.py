"""From a certificate's subject to a principal's name."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from sharecore.errors import ConfigError
from sharecore.security.distinguished_name import subject_of
from sharecore.security.mapping_rules import MappingRules
from sharecore.security.principal import Principal


def certificate(*parts: tuple[x509.ObjectIdentifier, str]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in parts])
    now = datetime.now(timezone.utc)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    return builder.sign(key, SHA256()).public_bytes(Encoding.DER)


# the result of java.security's X500Principal.getName() for the same subjects
@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ([(NameOID.COMMON_NAME, "worker")], "CN=worker"),
        (
            [
                (NameOID.COUNTRY_NAME, "NL"),
                (NameOID.ORGANIZATION_NAME, "Example"),
                (NameOID.COMMON_NAME, "a"),
            ],
            "CN=a,O=Example,C=NL",
        ),
        ([(NameOID.COMMON_NAME, 'a,b+c"d\\e<f>g;h=i#j')], 'CN=a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h\\=i\\#j'),
        ([(NameOID.COMMON_NAME, "  #a ")], "CN=\\ \\ \\#a\\ "),
        ([(NameOID.COMMON_NAME, "#a")], "CN=\\#a"),
        (
            [(NameOID.EMAIL_ADDRESS, "a@b"), (NameOID.COMMON_NAME, "é")],
            "CN=é,1.2.840.113549.1.9.1=#1603614062",
        ),
        ([(NameOID.TITLE, "x"), (NameOID.STATE_OR_PROVINCE_NAME, "q")], "ST=q,2.5.4.12=#0c0178"),
        ([(NameOID.USER_ID, "u"), (NameOID.DOMAIN_COMPONENT, "d")], "DC=d,UID=u"),
    ],
)
def test_a_subject_as_java_writes_it(parts: list[tuple[x509.ObjectIdentifier, str]], name: str) -> None:
    assert subject_of(certificate(*parts)) == name


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("RULE:^CN=(.*?),O=b$/$1/L,DEFAULT", "CN=Alice,O=b", "alice"),
        ("RULE:^CN=(.*?),O=b$/$1/U, DEFAULT", "CN=Alice,O=c", "CN=Alice,O=c"),
        ("RULE:^CN=(.*?),O=(.*?)$/$1@$2/U", "CN=Alice,O=b", "ALICE@B"),
        ("RULE:CN=(.*)/$1/", "O=b", None),
        (r"RULE:^CN=(.*)\/(.*)$/$1\/$2-$3/,DEFAULT", "CN=a/b", "a/b-$3"),
    ],
)
def test_mapping_rules(rules: str, subject: str, name: str | None) -> None:
    assert MappingRules(rules).name(subject) == name


@pytest.mark.parametrize("rules", ["RULE:a", "RULE:(/b/", "CN", "DEFAULT DEFAULT", "RULE:a/b/X"])
def test_rules_that_cannot_be_read(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        MappingRules(rules)


def test_a_principal_is_written_as_acls_have_it() -> None:
    assert str(Principal.parse(" User:CN=a:b ")) == "User:CN=a:b"
    for text in ("alice", "User:", ":alice"):
        with pytest.raises(ValueError, match="not a principal"):
            Principal.parse(text)
