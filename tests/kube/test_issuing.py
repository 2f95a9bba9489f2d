"""Certificates of our own making."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from cidrella.kube.issuing import CA_LIFE, SERVING_LIFE, Issued, issue
from cidrella.kube.tls import KeyPair, Serving, serving_context

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("cidrella-webhook.kube-system.svc", "127.0.0.1", "fd00::1")


def authorities(issued: Issued) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(issued.bundle)


def serving(issued: Issued) -> x509.Certificate:
    return x509.load_pem_x509_certificate(issued.pair.certificate)


def test_what_is_made() -> None:
    """B9: one CA, a certificate of it for all names and addresses, and keys that go with them."""
    made = issue(NAMES, NOW)
    serving_context(Serving(made.pair))
    (ca,) = authorities(made)
    serving(made).verify_directly_issued_by(ca)
    names = serving(made).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(each.value) for each in names] == list(NAMES)
    assert made.lasting(NAMES, NOW)
    assert made.lasting(NAMES[::-1], NOW)


def test_clocks_differ() -> None:
    """B9: an API server whose clock is behind believes it, too."""
    made = issue(NAMES, NOW)
    for each in (*authorities(made), serving(made)):
        assert each.not_valid_before_utc < NOW - timedelta(minutes=30)


def test_renewal_by_the_same_ca() -> None:
    """B9: when a third of its time is left, another takes its place, and nobody has to be told."""
    first = issue(NAMES, NOW)
    early, due = NOW + 0.6 * SERVING_LIFE, NOW + 0.7 * SERVING_LIFE
    assert first.lasting(NAMES, early)
    assert not first.lasting(NAMES, due)
    second = issue(NAMES, due, first)
    assert (second.bundle, second.ca_key) == (first.bundle, first.ca_key)
    assert second.lasting(NAMES, due)
    assert serving(second).not_valid_after_utc == due + SERVING_LIFE


def test_other_names() -> None:
    """B9: a certificate for other names is as good as none."""
    first = issue(NAMES, NOW)
    assert not first.lasting(NAMES[:1], NOW)
    assert not first.lasting((*NAMES, "more"), NOW)
    second = issue(NAMES[:1], NOW, first)
    assert second.bundle == first.bundle
    assert second.lasting(NAMES[:1], NOW)


def test_a_new_ca() -> None:
    """B9: what the old one signed is believed until it has run out: the bundle has both, the new one first."""
    first = issue(NAMES, NOW)
    due = NOW + 0.7 * CA_LIFE
    second = issue(NAMES, due, first)
    assert len(authorities(second)) == 2
    assert authorities(second)[1] == authorities(first)[0]
    serving(second).verify_directly_issued_by(authorities(second)[0])
    assert second.lasting(NAMES, due)
    third = issue(NAMES, due + 0.7 * CA_LIFE, second)
    assert len(authorities(third)) == 2


FIRST, OTHER = issue(NAMES, NOW), issue(NAMES, NOW)


@pytest.mark.parametrize(
    "broken",
    [
        Issued(b"", b"", KeyPair(b"", b"")),
        FIRST._replace(bundle=b"rubbish"),
        FIRST._replace(bundle=OTHER.bundle),
        FIRST._replace(pair=KeyPair(FIRST.pair.certificate, OTHER.pair.key)),
        FIRST._replace(pair=OTHER.pair),
        FIRST._replace(pair=KeyPair(FIRST.pair.certificate, b"rubbish")),
        FIRST._replace(pair=KeyPair(b"rubbish", FIRST.pair.key)),
        FIRST._replace(pair=KeyPair(FIRST.bundle, FIRST.ca_key)),
    ],
)
def test_what_makes_no_sense(broken: Issued) -> None:
    """B9: it does not last, and what is made in its place does."""
    assert not broken.lasting(NAMES, NOW)
    assert issue(NAMES, NOW, broken).lasting(NAMES, NOW)


@pytest.mark.parametrize("key", [b"", b"rubbish", OTHER.ca_key])
def test_a_ca_without_its_key(key: bytes) -> None:
    """B9: it cannot sign any more; a new one takes its place, and the old one is still believed."""
    made = issue(("other",), NOW, FIRST._replace(ca_key=key))
    assert made.lasting(("other",), NOW)
    assert authorities(made)[1:] == authorities(FIRST)
