"""Certificates for a test environment: a CA of its own, and what it signs."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_VALID = datetime.timedelta(days=2)
_SLACK = datetime.timedelta(minutes=5)


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, in files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority. Its certificate is in `certificate`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cidrella-test-ca")])
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        made = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self._identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        self.certificate = directory / "ca.crt"
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def server(self, name: str) -> Identity:
        """For a server on this machine's loopback addresses."""
        alternatives = x509.SubjectAlternativeName(
            [
                x509.DNSName("localhost"),
                x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
                x509.IPAddress(ipaddress.ip_address("::1")),
            ]
        )
        return self._issue(name, (), ExtendedKeyUsageOID.SERVER_AUTH, [alternatives])

    def client(self, user: str, groups: Sequence[str] = ()) -> Identity:
        """For a client that the API server takes for this user, in these groups."""
        return self._issue(user, groups, ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def _issue(
        self,
        name: str,
        groups: Sequence[str],
        purpose: x509.ObjectIdentifier,
        extensions: Sequence[x509.ExtensionType],
    ) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(subject, key).add_extension(self._identifier, critical=False)
        for extension in (x509.ExtendedKeyUsage([purpose]), *extensions):
            builder = builder.add_extension(extension, critical=False)
        stem = name.replace("/", "_").replace(":", "_")
        identity = Identity(self._directory / f"{stem}.crt", self._directory / f"{stem}.key")
        made = builder.sign(self._key, hashes.SHA256())
        identity.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        identity.key.touch(mode=0o600)
        identity.key.write_bytes(_pem(key))
        return identity

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SLACK)
            .not_valid_after(now + _VALID)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )


def private_key(path: Path) -> Path:
    """A new key in a file, for what needs no certificate: signing ServiceAccount tokens."""
    path.touch(mode=0o600)
    path.write_bytes(_pem(ec.generate_private_key(ec.SECP256R1())))
    return path


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """In the one form in which kube-apiserver takes an elliptic key for ServiceAccounts."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
