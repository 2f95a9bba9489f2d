"""`cidrella services --next-static` and `--check`: which addresses can be had."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.service_objects import (
    FLAG,
    KUBERNETES,
    RANGE,
    allocation,
    grant,
    ip_address,
    service,
    service_cidr,
    told,
)

if TYPE_CHECKING:
    from tests.cli.service_objects import OfFiles

    Json = dict[str, Any]


def test_next_static(of: OfFiles) -> None:
    """B1, B4: what is named is free for certain: no Service has it, no IPAddress, and no RangeAllocation."""
    objects = [
        RANGE,
        KUBERNETES,
        service("a/web", "10.96.0.3"),
        ip_address("10.96.0.2", "gateways"),
        allocation("10.96.0.0/24", 0, 2, 3),
    ]
    result = of(objects, "--next-static", "2")
    assert (result.code, result.out, result.err) == (0, "10.96.0.5\n10.96.0.6\n", "")
    assert told(of(objects, "--next-static", "1", "-o", "json")) == {"nextStatic": ["10.96.0.5"]}
    short = of(objects, "--next-static", "13")
    assert short.code == 3
    assert short.out.split() == [f"10.96.0.{number}" for number in range(5, 17)]
    assert "only 12 of 13 IPv4 addresses are free in static bands" in short.err


def test_next_static_of_each_family_and_range(of: OfFiles) -> None:
    """B9: each family gets as many, the default first; a second range goes on where the first has no more."""
    objects = [
        service_cidr("kubernetes", "fd00::/120", "10.96.0.0/27"),
        service_cidr("more", "10.97.0.0/24"),
        service_cidr("going", "10.98.0.0/24", deletionTimestamp="2026-01-01T00:00:00Z"),
        *(service(f"a/{number}", f"10.96.0.{number}") for number in range(1, 16)),
    ]
    result = of(objects, "--next-static", "3")
    assert result.code == 0
    # The first of the default range is the API server's own, which is not to be seen here.
    assert result.out.split() == ["fd00::2", "fd00::3", "fd00::4", "10.96.0.16", "10.97.0.1", "10.97.0.2"]


def test_the_api_servers_own_address(of: OfFiles) -> None:
    """B4: the first address of the first range is never free: the API server gives it to itself."""
    assert of([RANGE], "--next-static", "1").out == "10.96.0.2\n"
    taken = of([RANGE], "--check", "10.96.0.1")
    assert taken.code == 3
    assert "is what the API server takes for its own Service, default/kubernetes" in taken.out
    elsewhere = [RANGE, service("default/kubernetes", "10.96.0.7")]
    assert of(elsewhere, "--check", "10.96.0.1").code == 0
    assert of([service_cidr("other", "10.96.0.0/24")], "--check", "10.96.0.1").code == 0


CHECKED = [
    RANGE,
    service_cidr("going", "10.97.0.0/24", deletionTimestamp="2026-01-01T00:00:00Z"),
    service_cidr("huge", "11.0.0.0/8"),
    service_cidr("six", "fd00::/64"),
    KUBERNETES,
    service("a/web", "10.96.0.20"),
    service("a/copy", "10.96.0.20"),
    service("a/lost", "12.0.0.1"),
    ip_address("10.96.0.30", "gateways", "g"),
    ip_address("10.96.0.31", "", "", ""),
    allocation("10.96.0.0/24", 0, 19, 40, 41, recent=grant("10.96.0.41", "a/soon")),
]


@pytest.mark.parametrize(
    ("address", "code", "said"),
    [
        ("10.96.0.9", 0, "10.96.0.9 can be had: nobody has it (static band of 10.96.0.0/24)"),
        ("10.96.0.99", 0, "10.96.0.99 can be had: nobody has it (dynamic band of 10.96.0.0/24)"),
        ("fd00::100", 0, "fd00::100 can be had: nobody has it (static band of fd00::/64)"),
        ("10.96.0.20", 3, "cannot be had: the Services a/copy and a/web have it (dynamic band of 10.96.0.0/24)"),
        ("10.96.0.1", 3, "cannot be had: the Service default/kubernetes has it (static band"),
        ("10.96.0.30", 3, "cannot be had: there is an IPAddress of it, for gateways a/g (dynamic"),
        ("10.96.0.31", 3, "cannot be had: there is an IPAddress of it (dynamic"),
        ("10.96.0.41", 3, "RangeAllocation 10.96.0.0-24 says that it was given to a/soon of late (dynamic"),
        ("10.96.0.42", 3, "is set in RangeAllocation 10.96.0.0-24; if nobody has it, the repair loop frees it"),
        ("10.96.0.0", 3, "cannot be had: of 10.96.0.0/24, only 10.96.0.1 - 10.96.0.254 are given"),
        ("10.96.0.255", 3, "cannot be had: of 10.96.0.0/24, only"),
        ("fd00::1:0", 3, "cannot be had: of fd00::/64, only fd00::1 - fd00::ffff are given"),
        ("10.97.0.9", 3, "10.97.0.0/24 of ServiceCIDR going is on its way out, and gives nothing new"),
        ("12.0.0.1", 3, "cannot be had: the Service a/lost has it, and it is in no range of Services"),
        ("fe00::1", 3, "it is in no range of Services (there is 10.96.0.0/24, 10.97.0.0/24, fd00::/64)"),
    ],
)
def test_check(of: OfFiles, address: str, code: int, said: str) -> None:
    """B2, B4: an address can be had or not, and it is said why, in which band it is, and who has it."""
    result = of(CHECKED, "--check", address)
    assert (result.code, said in result.out) == (code, True), result.out
    data = json.loads(of(CHECKED, "--check", address, "-o", "json").out)["check"]
    assert (data["address"], data["available"]) == (address, code == 0)


def test_check_where_kubernetes_decides(of: OfFiles) -> None:
    """B2, B4: of a range that is not used here nothing is promised or ruled out, unless somebody has the address."""
    objects = [RANGE, KUBERNETES, service_cidr("wider", "10.96.0.0/16"), service("a/web", "10.96.7.7")]
    result = of(objects, "--check", "10.96.7.8")
    assert result.code == 3
    assert result.out.startswith(
        "10.96.7.8 is not managed here (range refused: 10.96.0.0/16 of ServiceCIDR wider is not used: it overlaps "
        "10.96.0.0/24 of ServiceCIDR kubernetes"
    )
    assert result.out.endswith("); Kubernetes decides\n")
    data = json.loads(of(objects, "--check", "10.96.7.8", "-o", "json").out)["check"]
    assert (data["available"], data["range"], data["holder"]) == (None, None, None)
    assert "is not managed here (range refused: 10.96.0.0/16" in data["message"]
    # The last address of the range in use, which it never gives, is one like others in the wider range.
    assert "Kubernetes decides" in of(objects, "--check", "10.96.0.255").out
    held = of(objects, "--check", "10.96.7.7")
    assert (held.code, held.out) == (3, "10.96.7.7 cannot be had: the Service a/web has it\n")


@pytest.mark.parametrize("asked", [("--check", "10.96.0.9"), ("--next-static", "1")], ids=["check", "next"])
@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_what_is_wrong_with_ranges_is_always_said(of: OfFiles, asked: tuple[str, str], output: str) -> None:
    """B5: an answer that rests on less than it should comes with a warning; what Services do wrong is not asked for."""
    corrupt = allocation("10.96.0.0/24", 5) | {"range": "10.95.0.0/24"}
    result = of([RANGE, KUBERNETES, service("a/lost", "12.0.0.1"), corrupt], *asked, "-o", output)
    assert result.code == 0
    assert result.err.startswith("warning: the RangeAllocation 10.96.0.0-24 is corrupt: it is of another range")
    assert result.err.count("\n") == 1
    flagged = of([RANGE, KUBERNETES], *asked, "-o", output, FLAG, "10.96.0.0/24,fd00::/112")
    assert (
        flagged.err
        == f"warning: no ServiceCIDR covers fd00::/112 of {FLAG}: the API server will refuse addresses of it\n"
    )


def test_check_as_data(of: OfFiles) -> None:
    """B4: for programs, the same in fields."""
    data = json.loads(of(CHECKED, "--check", "10.96.0.41", "-o", "json").out)["check"]
    assert data == {
        "address": "10.96.0.41",
        "available": False,
        "range": "10.96.0.0/24",
        "band": "dynamic",
        "message": "RangeAllocation 10.96.0.0-24 says that it was given to a/soon of late",
        "advice": None,
        "holder": {
            "services": [],
            "type": None,
            "chosen": None,
            "ipAddressOf": None,
            "inRangeAllocation": True,
            "givenTo": "a/soon",
        },
    }
    assert json.loads(of(CHECKED, "--check", "fd00::9999", "-o", "json").out)["check"]["holder"] is None


def test_dynamic_addresses_are_had_with_a_warning(of: OfFiles) -> None:
    """B3: whoever chooses from the dynamic band is told what may happen, and which band is for choosing."""
    result = of([RANGE, KUBERNETES], "--check", "10.96.0.99")
    assert (result.code, "the static band is 10.96.0.1 - 10.96.0.16" in result.err) == (0, True)
    assert of([RANGE, KUBERNETES], "--check", "10.96.0.9").err == ""
