from __future__ import annotations

import asyncio
import ssl
import subprocess
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError
from sharecore.security.certificates import Authority
from sharecore.security.tls import TlsListener, server_context
from sharecore.waiting import BlockingWork


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    return Authority(tmp_path, days=2).issue("localhost", file="broker", hosts=["localhost", "127.0.0.1"])


def config(**settings: object) -> BrokerConfig:
    return BrokerConfig.from_properties({name.replace("_", "."): str(settings[name]) for name in settings})


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """Connect both ends in memory; return the client's, or raise the error of either."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    # in TLS 1.3 the server refuses a certificate after the handshake
    for end in reversed(ends):
        with suppress(ssl.SSLWantReadError):
            end.read(1)
    return ends[0]


def trusting(ca: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(ca))


def serial(peer: ssl.SSLObject) -> str:
    certificate = peer.getpeercert()
    assert certificate is not None
    return str(certificate["serialNumber"])


def test_a_pem_file_with_key_and_certificate(pem: Path, tmp_path: Path) -> None:
    context = server_context(config(ssl_keystore_type="PEM", ssl_keystore_location=pem))
    assert shake_hands(context, trusting(tmp_path / "ca.pem")).version() == "TLSv1.3"


def test_pem_in_the_settings_on_one_line(pem: Path, tmp_path: Path) -> None:
    text = pem.read_text().replace("\n", " ")
    key, _, chain = text.partition("-----BEGIN CERTIFICATE")
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE" + chain,
    }
    context = server_context(BrokerConfig.from_properties(settings))
    shake_hands(context, trusting(tmp_path / "ca.pem"))


def test_pkcs12_also_where_the_type_is_left_at_jks(pem: Path, tmp_path: Path) -> None:
    store = tmp_path / "broker.p12"
    subprocess.run(
        ["openssl", "pkcs12", "-export", "-in", pem, "-out", store, "-passout", "pass:changeit"], check=True
    )
    for kind in ("JKS", "PKCS12"):
        wanted = config(ssl_keystore_type=kind, ssl_keystore_location=store, ssl_keystore_password="changeit")
        shake_hands(server_context(wanted), trusting(tmp_path / "ca.pem"))
    with pytest.raises(ConfigError, match="cannot be opened") as caught:
        server_context(config(ssl_keystore_location=store, ssl_keystore_password="not-it"))
    assert "not-it" not in str(caught.value)


def test_jks_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    store = tmp_path / "broker.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    with pytest.raises(ConfigError, match=r"keytool -importkeystore -srckeystore .*broker\.jks -dest.*p12"):
        server_context(config(ssl_keystore_location=store))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "sharecore certs"),
        ({"ssl_keystore_location": "/nowhere"}, "No such file"),
        ({"ssl_keystore_location": "{ca}", "ssl_keystore_type": "PEM"}, "0 private keys"),
        ({"ssl_keystore_location": "{pem}"}, "set ssl.keystore.type=PEM"),
        ({"ssl_keystore_key": "x"}, "set both or none"),
        (
            {"ssl_keystore_location": "{pem}", "ssl_keystore_type": "PEM", "ssl_client_auth": "required"},
            "no authority is trusted",
        ),
    ],
)
def test_what_cannot_be_used_is_said(settings: dict[str, str], said: str, pem: Path, tmp_path: Path) -> None:
    settings = {name: text.format(pem=pem, ca=tmp_path / "ca.pem") for name, text in settings.items()}
    with pytest.raises(ConfigError, match=said):
        server_context(config(**settings))


def test_versions_of_tls(pem: Path, tmp_path: Path) -> None:
    context = server_context(
        config(ssl_keystore_type="PEM", ssl_keystore_location=pem, ssl_enabled_protocols="TLSv1.2")
    )
    client = trusting(tmp_path / "ca.pem")
    assert shake_hands(context, client).version() == "TLSv1.2"
    client.minimum_version = ssl.TLSVersion.TLSv1_3
    with pytest.raises(ssl.SSLError):
        shake_hands(context, client)


def test_a_client_must_show_a_certificate_of_a_trusted_authority(pem: Path, tmp_path: Path) -> None:
    context = server_context(
        config(
            ssl_keystore_type="PEM",
            ssl_keystore_location=pem,
            ssl_client_auth="required",
            ssl_truststore_type="PEM",
            ssl_truststore_location=tmp_path / "ca.pem",
        )
    )
    client = trusting(tmp_path / "ca.pem")
    with pytest.raises(ssl.SSLError):
        shake_hands(context, client)
    client.load_cert_chain(Authority(tmp_path / "other", days=2).issue("eve", file="eve"))
    with pytest.raises(ssl.SSLError):
        shake_hands(context, client)
    client.load_cert_chain(Authority(tmp_path, days=2).issue("alice", file="alice"))
    shake_hands(context, client)
    long_ago = datetime.now(timezone.utc) - timedelta(days=30)
    client.load_cert_chain(Authority(tmp_path, days=2, now=long_ago).issue("alice", file="alice"))
    with pytest.raises(ssl.SSLError):
        shake_hands(context, client)


def test_a_truststore_has_a_password(pem: Path, tmp_path: Path) -> None:
    store = tmp_path / "trust.p12"
    authorities = tmp_path / "ca.pem"
    command = f"openssl pkcs12 -export -nokeys -in {authorities} -out {store} -passout pass:changeit"
    subprocess.run(command.split(), check=True)
    wanted = {
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": pem,
        "ssl_client_auth": "required",
        "ssl_truststore_type": "PKCS12",
        "ssl_truststore_location": store,
    }
    client = trusting(tmp_path / "ca.pem")
    client.load_cert_chain(Authority(tmp_path, days=2).issue("alice", file="alice"))
    shake_hands(server_context(config(**wanted, ssl_truststore_password="changeit")), client)
    with pytest.raises(ConfigError, match="cannot be opened") as caught:
        server_context(config(**wanted, ssl_truststore_password="not-it"))
    assert "not-it" not in str(caught.value)


def test_a_key_has_a_password_and_authorities_stand_in_the_settings(pem: Path, tmp_path: Path) -> None:
    """ssl.key.password, ssl.truststore.certificates"""
    locked = tmp_path / "locked.pem"
    subprocess.run(f"openssl pkcs8 -topk8 -in {pem} -passout pass:changeit -out {locked}".split(), check=True)
    certificate = pem.read_text()
    locked.write_text(locked.read_text() + certificate[certificate.index("-----BEGIN CERTIFICATE") :])
    wanted = {
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": locked,
        "ssl_client_auth": "required",
        "ssl_truststore_type": "PEM",
        "ssl_truststore_certificates": (tmp_path / "ca.pem").read_text(),
    }
    client = trusting(tmp_path / "ca.pem")
    client.load_cert_chain(Authority(tmp_path, days=2).issue("alice", file="alice"))
    shake_hands(server_context(config(**wanted, ssl_key_password="changeit")), client)
    with pytest.raises(ConfigError) as caught:
        server_context(config(**wanted, ssl_key_password="not-it"))
    assert "not-it" not in str(caught.value)


def test_a_changed_file_counts_for_the_next_handshake(pem: Path, tmp_path: Path) -> None:
    listener = TlsListener("SSL", config(ssl_keystore_type="PEM", ssl_keystore_location=pem))
    client = trusting(tmp_path / "ca.pem")
    before = serial(shake_hands(listener.context(), client))
    files = BlockingWork("test")
    asyncio.run(listener.reload(files, changed_only=True))
    assert serial(shake_hands(listener.context(), client)) == before
    Authority(tmp_path, days=2).issue("localhost", file="broker", hosts=["localhost"])
    asyncio.run(listener.reload(files, changed_only=True))
    after = serial(shake_hands(listener.context(), client))
    assert after != before
    pem.write_text("half a file")
    asyncio.run(listener.reload(files))
    assert serial(shake_hands(listener.context(), client)) == after


def test_keys_are_for_their_owner_alone(pem: Path, tmp_path: Path) -> None:
    assert {path.stat().st_mode & 0o777 for path in (pem, tmp_path / "ca.key")} == {0o600}


def test_cipher_suites_are_those_that_are_named(pem: Path) -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    other = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
    context = server_context(
        config(ssl_keystore_type="PEM", ssl_keystore_location=pem, ssl_cipher_suites=f"{suite},{other}")
    )
    assert context.maximum_version == ssl.TLSVersion.TLSv1_2
    names = {each["name"] for each in context.get_ciphers() if each["protocol"] == "TLSv1.2"}
    assert names == {"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"}
    newer = "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256"
    context = server_context(
        config(ssl_keystore_type="PEM", ssl_keystore_location=pem, ssl_cipher_suites=newer)
    )
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("suites", "versions", "reason"),
    [
        ("TLS_AES_256_GCM_SHA384", "TLSv1.3", "one by one"),
        ("made-up", "TLSv1.2,TLSv1.3", "is unknown"),
        ("TLS_RSA_WITH_NULL_MD5", "TLSv1.2", "is unknown"),
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLSv1.3", "ssl.enabled.protocols"),
    ],
)
def test_cipher_suites_that_cannot_stand(pem: Path, suites: str, versions: str, reason: str) -> None:
    settings = config(
        ssl_keystore_type="PEM",
        ssl_keystore_location=pem,
        ssl_cipher_suites=suites,
        ssl_enabled_protocols=versions,
    )
    with pytest.raises(ConfigError, match=reason):
        server_context(settings)
