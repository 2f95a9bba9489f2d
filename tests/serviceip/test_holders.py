"""Which Service has which address, and which addresses others gave: views that are kept by changes."""

from __future__ import annotations

from cidrella.core.address import Address
from cidrella.kube.mirror import Change
from cidrella.model.serviceip import SeenIPAddress, SeenService
from cidrella.serviceip.foreign import Foreign
from cidrella.serviceip.holders import Holders
from tests.serviceip.store import SMALL, SMALL_IPV6

ONE, TWO = Address.parse("10.96.0.1"), Address.parse("10.96.0.2")


def service(name: str, *addresses: str, uid: str = "1") -> SeenService:
    return SeenService(name, uid, "ClusterIP", addresses)


def test_addresses_come_and_go() -> None:
    """B8: what comes to a Service and what leaves it is told, with the Service; what stays is not."""
    holders = Holders()
    first, then = service("a/b", "10.96.0.1", "fd00::1"), service("a/b", "10.96.0.2", "fd00::1")
    assert holders.apply([Change(None, first)]).gained == {ONE: "a/b", Address.parse("fd00::1"): "a/b"}
    moves = holders.apply([Change(first, then)])
    assert (moves.lost, moves.gained) == ({ONE: "a/b"}, {TWO: "a/b"})
    assert (holders.holder(ONE), holders.holder(TWO)) == ("", "a/b")
    assert set(holders.apply([Change(then, None)]).lost) == {TWO, Address.parse("fd00::1")}
    assert list(holders) == []


def test_a_batch_is_taken_as_a_whole() -> None:
    """An address that changes hands within a batch was never let go; one that comes and goes never came."""
    holders = Holders()
    old, new = service("a/b", "10.96.0.1"), service("a/b", "10.96.0.1", uid="2")
    holders.apply([Change(None, old)])
    moves = holders.apply([Change(old, None), Change(None, new)])
    assert (moves.lost, moves.gained) == ({}, {ONE: "a/b"})
    short = service("a/c", "10.96.0.2")
    moves = holders.apply([Change(None, short), Change(short, None)])
    assert (moves.lost, moves.gained) == ({TWO: "a/c"}, {})


def test_two_with_one_address() -> None:
    """B8: the first by name is the one that has it; it is let go by the last of them."""
    holders = Holders()
    first, second = service("a/b", "10.96.0.1"), service("a/c", "010.096.000.001")
    holders.apply([Change(None, second)])
    holders.apply([Change(None, first)])
    assert holders.holder(ONE) == "a/b"
    assert holders.apply([Change(first, None)]).lost == {}
    assert holders.holder(ONE) == "a/c"
    assert holders.apply([Change(second, None)]).lost == {ONE: "a/c"}


def test_what_is_no_address() -> None:
    """B8: what is no address is nobody's here; one that a Service has twice is had once."""
    holders = Holders()
    odd = service("a/b", "rubbish", "10.96.0.1", "10.96.0.1")
    assert holders.apply([Change(None, odd)]).gained == {ONE: "a/b"}
    assert holders.apply([Change(odd, None)]).lost == {ONE: "a/b"}
    assert ONE not in holders


def test_addresses_that_others_gave() -> None:
    """IPAddress objects are seen in the range that they are of, whichever of the two came first."""
    foreign = Foreign()
    one, six = SeenIPAddress("10.96.0.1", "1", "a/b"), SeenIPAddress("fd00::2", "2", "a/c")
    foreign.apply([Change(None, one), Change(None, SeenIPAddress("rubbish", "3", ""))])
    view, view6 = foreign.of(SMALL), foreign.of(SMALL_IPV6)
    foreign.apply([Change(None, six), Change(None, SeenIPAddress("10.50.0.1", "4", "a/d"))])
    assert (view, view6) == ({0: "a/b"}, {1: "a/c"})
    assert foreign.of(SMALL) is view
    foreign.apply([Change(one, one._replace(parent="a/x"))])
    assert view == {0: "a/x"}
    assert ONE in foreign
    foreign.apply([Change(one, None), Change(SeenIPAddress("rubbish", "3", ""), None)])
    assert view == {}
    assert ONE not in foreign
    foreign.drop(SMALL_IPV6)
    foreign.apply([Change(six, None)])
    assert view6 == {1: "a/c"}, "nobody looks at it any more"
