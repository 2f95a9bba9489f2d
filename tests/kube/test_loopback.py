"""Addresses that only this machine can connect to."""

from __future__ import annotations

import pytest

from cidrella.kube.loopback import is_loopback


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("localhost", True)]
    + [(host, False) for host in ("", "0.0.0.0", "::", "192.0.2.1", "box", "localhost.example")],
)
def test_loopback(host: str, expected: bool) -> None:
    """What only this machine can connect to is known; in doubt it is not."""
    assert is_loopback(host) is expected
