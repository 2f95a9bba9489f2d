"""Certificates of our own making: a CA, and what it signs for one who is connected to. No I/O; the time is passed in.

Rules:

- What is made is `Issued`: the CA with its key, and the serving certificate with its key, all in PEM.
- The serving certificate is renewed when a third of its time is left, by the same CA: nobody has to be told.
- The CA is renewed when a third of its time is left. The old one stays in the bundle, so that whoever still shows a
  certificate of it is still believed.
"""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cidrella.kube.tls import KeyPair

if TYPE_CHECKING:
    from collections.abc import Sequence

CA_LIFE: Final = timedelta(days=3650)
"""Ten years: its certificate is trusted in one place, and its key is kept as safe as whoever writes to that place."""
SERVING_LIFE: Final = timedelta(days=365)
_SLACK: Final = timedelta(hours=1)
"""What clocks may differ."""
_SIGNS: Final = {"digital_signature", "key_cert_sign", "crl_sign"}
_SERVES: Final = {"digital_signature"}
_USAGES: Final = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


class Issued(NamedTuple):
    """What a server needs to be believed."""

    bundle: bytes
    """The CA's certificate, first, and those of CAs before it."""
    ca_key: bytes
    pair: KeyPair

    def lasting(self, names: Sequence[str], now: datetime) -> bool:
        """Whether it can stay as it is: it makes sense, is for exactly these names, and has time left."""
        try:
            ca, serving = _certificate(self.bundle), _certificate(self.pair.certificate)
            serving.verify_directly_issued_by(ca)
            matches = _key(self.pair.key).public_key() == serving.public_key()
            alternatives = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
            return False
        return matches and set(alternatives) == set(_names(names)) and _fresh(serving, now) and _fresh(ca, now)


def issue(names: Sequence[str], now: datetime, before: Issued | None = None) -> Issued:
    """A serving certificate for these names and addresses, by the CA from before while that lasts, else by a new one.

    What was there before and makes no sense counts for nothing.
    """
    old: list[x509.Certificate] = []
    try:
        if before:
            old = [each for each in x509.load_pem_x509_certificates(before.bundle) if each.not_valid_after_utc > now]
            ca_key = _key(before.ca_key)
            if old and _fresh(old[0], now) and old[0].public_key() == ca_key.public_key():
                return Issued(before.bundle, before.ca_key, _serving(old[0], ca_key, names, now))
    except (ValueError, TypeError):
        pass
    key = ec.generate_private_key(ec.SECP256R1())
    ca = _authority(key, now)
    bundle = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in (ca, *old))
    return Issued(bundle, _pem(key), _serving(ca, key, names, now))


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = _name(f"cidrella-ca@{int(now.timestamp())}")
    return (
        _builder(name, name, key, key, now, CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(_SIGNS), critical=True)
        .sign(key, hashes.SHA256())
    )


def _serving(ca: x509.Certificate, ca_key: ec.EllipticCurvePrivateKey, names: Sequence[str], now: datetime) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        _builder(_name("cidrella"), ca.subject, key, ca_key, now, SERVING_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(_SERVES), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_names(names)), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return KeyPair(made.public_bytes(serialization.Encoding.PEM), _pem(key))


def _builder(  # noqa: PLR0913, PLR0917 -- a certificate has as many parts
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SLACK)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(wanted: set[str]) -> x509.KeyUsage:
    return x509.KeyUsage(**{each: each in wanted for each in _USAGES})


def _names(names: Sequence[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for each in names:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(each)))
        except ValueError:
            found.append(x509.DNSName(each))
    return found


def _certificate(pem: bytes) -> x509.Certificate:
    """The first of a bundle. Raises ValueError."""
    return x509.load_pem_x509_certificates(pem)[0]


def _key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("not a key of ours")
    return key


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _fresh(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether more than a third of a certificate's time is left."""
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return now < ends - (ends - begins) / 3


def utc_now() -> datetime:
    """The time, as certificates have it."""
    return datetime.now(UTC)
