"""From objects of the API to what the core reasons about."""

import msgspec
import pytest

from cidrella.core.prefix import PrefixError
from cidrella.core.selector import Operator, Requirement, Selector, Term
from cidrella.model.configs import ClusterCIDRConfig
from cidrella.model.convert import node_facts, pool_spec, service_ranges
from cidrella.model.objects import (
    FAMILY_ORDER_ANNOTATION,
    POOL_ANNOTATION,
    UNINITIALIZED_TAINT,
    ClusterCIDR,
    Node,
    ServiceCIDR,
)
from tests.model.cases import BIG
from tests.model.cases_config import FOUR
from tests.model.manifests import config, pool, selecting

NP3 = {"key": "np", "operator": "In", "values": ["np3"]}


def blocks(**spec: object) -> list[tuple[str, int]]:
    """The ranges of a pool, each with the length of its blocks."""
    return [(str(each.cidr), each.length) for each in pool_spec(msgspec.convert(pool(spec), ClusterCIDR)).ranges]


def selector(raw: object) -> Selector | None:
    spec = {"perNodeHostBits": 8, "ipv4": "10.1.0.0/16", "nodeSelector": raw}
    return pool_spec(msgspec.convert(pool(spec), ClusterCIDR)).selector


def node(metadata: object = None, **spec: object) -> Node:
    return msgspec.convert({"metadata": metadata or {"name": "node-1"}, "spec": spec}, Node)


def test_one_size_for_both_families() -> None:
    """C2: without a size of its own an IPv6 block has as many host bits as an IPv4 one, and IPv4 comes first."""
    both = blocks(perNodeHostBits=9, ipv6="fd12:3456:789a::/48", ipv4="10.1.0.0/16")
    assert both == [("10.1.0.0/16", 23), ("fd12:3456:789a::/48", 119)]


def test_a_size_of_its_own_for_ipv6() -> None:
    """C2, pitfall 11: people who want a /64 for IPv6 and a /23 for IPv4 get both from one pool."""
    both = blocks(perNodeHostBits=9, perNodeHostBitsIPv6=64, ipv4="10.1.0.0/16", ipv6="fd12:3456:789a::/48")
    assert both == [("10.1.0.0/16", 23), ("fd12:3456:789a::/48", 64)]


@pytest.mark.parametrize("ipv4", ["", None])
def test_an_empty_range_is_an_absent_one(ipv4: str | None) -> None:
    """C1: an empty string gives no range."""
    assert blocks(perNodeHostBits=8, ipv4=ipv4, ipv6="fd00::/64") == [("fd00::/64", 120)]


@pytest.mark.parametrize("raw", [None, {}, {"nodeSelectorTerms": None}, {"nodeSelectorTerms": []}])
def test_a_selector_without_terms_is_none(raw: object) -> None:
    """S2: a pool whose selector is absent or has no terms is a default."""
    assert selector(raw) is None


def test_a_selector() -> None:
    """S1: terms, requirements on labels and requirements on fields are kept apart."""
    named = {"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]}
    raw = selecting({"matchExpressions": [{"key": "a", "operator": "Exists"}], "matchFields": [named]}, {})
    assert selector(BIG) == Selector((Term((Requirement("size", Operator.IN, ("big",)),)),))
    assert selector(raw) == Selector(
        (
            Term((Requirement("a", Operator.EXISTS),), (Requirement("metadata.name", Operator.NOT_IN, ("node-1",)),)),
            Term(),
        )
    )


def test_an_empty_term_is_kept() -> None:
    """S1, S2: a term without requirements matches nothing, and does not make the pool a default."""
    empty = selector(selecting({}))
    assert empty is not None
    assert empty.matched("node-1", {}) is None


def test_age_and_end_of_a_pool() -> None:
    """P3: when a pool was created is kept, since the oldest comes first, and so is that it is being deleted."""
    spec = {"perNodeHostBits": 8, "ipv4": "10.1.0.0/16"}
    young = pool_spec(msgspec.convert(pool(spec), ClusterCIDR))
    times = {"creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z"}
    old = pool_spec(msgspec.convert(pool(spec, times), ClusterCIDR))
    assert (young.name, young.created, young.terminating, young.gives) == ("pool", "", False, True)
    assert (old.name, old.created, old.terminating, old.gives) == ("pool", "2026-01-01T00:00:00Z", True, False)


def test_a_config_is_a_pool_of_one_family() -> None:
    """K1, K3: range and mask are the pool's, it is composed with others, and its name tells it from a ClusterCIDR."""
    raw = config({"cidr": "fd12:3456:789a::/48", "perNodeMaskSize": 64}, {"name": "pods-v6"})
    made = pool_spec(msgspec.convert(raw, ClusterCIDRConfig))
    assert [(str(each.cidr), each.length) for each in made.ranges] == [("fd12:3456:789a::/48", 64)]
    assert (made.name, made.composed, made.selector, made.gives) == ("ccc/pods-v6", True, None, True)
    assert not pool_spec(msgspec.convert(pool({"perNodeHostBits": 8, "ipv4": "10.1.0.0/16"}), ClusterCIDR)).composed


def test_an_annotation_turns_no_config_round() -> None:
    """K1, F1: the order of the families is nothing that one family has."""
    annotated = config(FOUR, {"annotations": {FAMILY_ORDER_ANNOTATION: "IPv6,IPv4"}})
    assert len(pool_spec(msgspec.convert(annotated, ClusterCIDRConfig)).ranges) == 1


@pytest.mark.parametrize("raw", [None, {}, {"matchLabels": {}}, {"matchExpressions": []}, {"matchLabels": None}])
def test_a_config_that_asks_for_nothing_is_a_default(raw: object) -> None:
    """K3: a selector that is absent or empty selects any node, as a fall-back."""
    assert pool_spec(msgspec.convert(config({**FOUR, "nodeSelector": raw}), ClusterCIDRConfig)).selector is None


@pytest.mark.parametrize("raw", [{"matchLabels": {"np": "np3"}}, {"matchExpressions": [NP3]}])
def test_either_half_of_a_label_selector_selects(raw: object) -> None:
    """K3: labels alone, or expressions alone, make a selector, and say the same if they ask the same."""
    made = pool_spec(msgspec.convert(config({**FOUR, "nodeSelector": raw}), ClusterCIDRConfig)).selector
    assert made == Selector((Term((Requirement("np", Operator.IN, ("np3",)),)),))


def test_labels_are_requirements() -> None:
    """K2, K4: labels and expressions are one term, in which each counts as matched by itself."""
    asked = [{"key": "gpu", "operator": "Exists"}, {"key": "zone", "operator": "NotIn", "values": ["a", "b"]}]
    raw = {"matchLabels": {"np": "np3", "size": "big"}, "matchExpressions": asked}
    made = pool_spec(msgspec.convert(config({**FOUR, "nodeSelector": raw}), ClusterCIDRConfig)).selector
    assert made == Selector(
        (
            Term(
                (
                    Requirement("np", Operator.IN, ("np3",)),
                    Requirement("size", Operator.IN, ("big",)),
                    Requirement("gpu", Operator.EXISTS),
                    Requirement("zone", Operator.NOT_IN, ("a", "b")),
                )
            ),
        )
    )
    assert made.matched("node-1", {"np": "np3", "size": "big", "gpu": ""}) == 4


def test_the_facts_about_a_node() -> None:
    """N3, P3: name, uid, labels, blocks and the pool that the annotation names come over as they stand."""
    meta = {"name": "node-1", "uid": "7f9c", "labels": {"size": "big"}, "annotations": {POOL_ANNOTATION: "big-nodes"}}
    facts = node_facts(node({**meta, "deletionTimestamp": "2026-01-01T00:00:00Z"}, podCIDRs=["10.0.0.0/24"]))
    assert (facts.name, facts.uid, facts.labels, facts.pool) == ("node-1", "7f9c", {"size": "big"}, "big-nodes")
    assert (facts.pod_cidrs, facts.terminating, facts.uninitialized) == (("10.0.0.0/24",), True, False)


def test_a_bare_node() -> None:
    """N3: a node about which nothing is known has no blocks and no pool, and is not being deleted."""
    facts = node_facts(node())
    assert (facts.pod_cidrs, facts.pool, facts.terminating, facts.uninitialized) == ((), "", False, False)


@pytest.mark.parametrize(
    ("spec", "held"),
    [
        ({"podCIDR": "10.0.0.0/24"}, ("10.0.0.0/24",)),
        ({"podCIDR": "10.0.0.0/24", "podCIDRs": None}, ("10.0.0.0/24",)),
        ({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"]}, ("10.0.0.0/24", "fd00::/64")),
        ({"podCIDRs": ["010.0.0.7/24", "nonsense"]}, ("010.0.0.7/24", "nonsense")),
    ],
)
def test_pod_cidrs(spec: dict[str, object], held: tuple[str, ...]) -> None:
    """N7: podCIDRs come over as they stand, readable or not, and podCIDR alone counts as well."""
    assert node_facts(node(**spec)).pod_cidrs == held


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute", ""])
def test_a_node_that_waits_for_its_cloud(effect: str) -> None:
    """N10: the cloud provider's taint marks a node that may still lack labels, whatever its effect."""
    other = {"key": "example.com/other", "effect": "NoSchedule"}
    mine = {"key": UNINITIALIZED_TAINT, "value": "true", "effect": effect}
    assert node_facts(node(taints=[other, mine])).uninitialized
    assert not node_facts(node(taints=[other])).uninitialized


def test_service_ranges() -> None:
    """A7: the ranges of a ServiceCIDR are known however they are spelt, and what is no range is an error."""
    raw = {"spec": {"cidrs": ["10.96.0.1/16", "FD00::/108"]}}
    assert [str(each) for each in service_ranges(msgspec.convert(raw, ServiceCIDR))] == ["10.96.0.0/16", "fd00::/108"]
    with pytest.raises(PrefixError):
        service_ranges(msgspec.convert({"spec": {"cidrs": ["nonsense"]}}, ServiceCIDR))
