"""Addresses that only this machine can connect to."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to it. No host is every interface.

    >>> is_loopback("localhost"), is_loopback("127.8.0.1"), is_loopback("::1"), is_loopback(""), is_loopback("10.0.0.1")
    (True, True, True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
