"""A certificate authority for development, and its certificates."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, Name

_BACKDATED = timedelta(minutes=5)


class Authority:
    """Sign certificates; the authority's key and certificate are in a directory.

    Args:
        directory: created if missing; `ca.pem` and `ca.key` are created in it, and reused.
        days: validity of new certificates.
        now: the current time.

    Raises:
        OSError: the directory is not available.
        ValueError: its files are not an authority.
    """

    def __init__(self, directory: Path, *, days: int, now: datetime | None = None) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
        from cryptography.x509 import load_pem_x509_certificate

        self._directory = directory
        self._now = now or datetime.now(timezone.utc)
        self._until = self._now + timedelta(days=days)
        self.certificate_path = directory / "ca.pem"
        key_path = directory / "ca.key"
        directory.mkdir(parents=True, exist_ok=True)
        if key_path.exists():
            key = load_pem_private_key(key_path.read_bytes(), None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise ValueError(f"{key_path}: no key that `sharecore certs` made")
            self._key = key
            self._certificate = load_pem_x509_certificate(self.certificate_path.read_bytes())
            return
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._sign(_name("sharecore development CA"), self._key, authority=True)
        _write_secret(key_path, _pem_of(self._key))
        self.certificate_path.write_bytes(_pem_of_certificate(self._certificate))

    def issue(self, name: str, *, file: str, hosts: Sequence[str] = ()) -> Path:
        """Create a key and a certificate in one PEM file for `ssl.keystore.location`.

        Args:
            name: the subject's common name.
            file: name of the file in the directory, without its extension.
            hosts: names and addresses of the server.
        """
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(_name(name), key, hosts=hosts)
        path = self._directory / f"{file}.pem"
        _write_secret(path, _pem_of(key) + _pem_of_certificate(certificate))
        return path

    def _sign(
        self,
        subject: Name,
        key: EllipticCurvePrivateKey,
        *,
        hosts: Sequence[str] = (),
        authority: bool = False,
    ) -> Certificate:
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.x509.oid import ExtendedKeyUsageOID

        issuer = subject if authority else self._certificate.subject
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _BACKDATED)
            .not_valid_after(self._until)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False)
            .add_extension(_usage(authority=authority), True)
        )
        if not authority:
            usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), False)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(host) for host in hosts]), False
            )
        return builder.sign(self._key, SHA256())


def _usage(*, authority: bool) -> Any:
    from cryptography.x509 import KeyUsage

    return KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(host: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem_of(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _pem_of_certificate(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read at any time."""
    fresh = path.with_name(path.name + ".new")
    number = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(number, "wb") as file:
        file.write(content)
    fresh.replace(path)
