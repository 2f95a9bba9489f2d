"""Whether objects make sense: the table of cases, and what is said about the wrong ones."""

from collections import Counter

import pytest

from cidrella.model.decode import Problem, decode
from cidrella.model.kinds import CLUSTER_CIDR, CLUSTER_CIDR_CONFIG, PoolKind
from cidrella.model.objects import Node, ServiceCIDR
from cidrella.model.validate import validate_node, validate_pool, validate_service_cidr
from tests.model import cases_config
from tests.model.cases import BIG, CASES, RANGES, SELECTORS, SERVICE_CIDRS, SIZES
from tests.model.manifests import EXPRESSION, FIELD, Case, asking, config, naming, pool


def judge(manifest: object, kind: PoolKind = CLUSTER_CIDR) -> list[Problem]:
    """What `cidrella validate` finds in a pool."""
    obj = decode(manifest, kind.struct)
    return obj if isinstance(obj, list) else validate_pool(obj)


def said(**spec: object) -> dict[str, str]:
    """What is said about a spec, by field."""
    found = judge(pool({"perNodeHostBits": 8, "ipv4": "10.1.0.0/16", **spec}))
    return {problem.field: problem.message for problem in found}


def said_of_config(**spec: object) -> dict[str, str]:
    """The same of a ClusterCIDRConfig."""
    found = judge(config({**cases_config.FOUR, **spec}), CLUSTER_CIDR_CONFIG)
    return {problem.field: problem.message for problem in found}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_table(case: Case) -> None:
    """C1, C2, C4, pitfall 13: what is valid passes, and what is not is refused for the fields that are wrong."""
    assert {problem.field for problem in judge(case.manifest)} == case.fields


@pytest.mark.parametrize("case", cases_config.CASES, ids=lambda case: case.title)
def test_the_table_of_configs(case: Case) -> None:
    """K1, C1, C2, C4: a ClusterCIDRConfig is refused for the fields that are wrong, once each, and for no others."""
    assert Counter(problem.field for problem in judge(case.manifest, CLUSTER_CIDR_CONFIG)) == Counter(case.fields)


@pytest.mark.parametrize("case", [*RANGES, *SIZES, *SELECTORS], ids=lambda case: case.title)
def test_one_mistake_is_reported_once(case: Case) -> None:
    """C4: each field that is wrong is named once, so that one mistake reads as one."""
    assert set(Counter(problem.field for problem in judge(case.manifest)).values()) <= {1}


@pytest.mark.parametrize("table", [CASES, cases_config.CASES], ids=["ClusterCIDR", "ClusterCIDRConfig"])
def test_the_table_has_no_case_twice(table: list[Case]) -> None:
    """C4: every case of the table has a title of its own, so that a failure can be found."""
    assert max(Counter(case.title for case in table).values()) == 1


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"ipv4": ""}, "spec", "gives no range; set ipv4, ipv6 or both"),
        (
            {"ipv4": "10.1.2.3/16"},
            "spec.ipv4",
            "'10.1.2.3/16' has host bits set; the range that holds it is 10.1.0.0/16",
        ),
        (
            {"ipv4": "fd00::/64"},
            "spec.ipv4",
            "'fd00::/64' must be an IPv4 range; the other family has a field of its own, ipv6",
        ),
        (
            {"ipv6": "fd00::/125"},
            "spec.ipv6",
            "'fd00::/125' is too small; a node's block has at least 16 addresses, so give a /124 or larger",
        ),
    ],
)
def test_what_is_said_of_ranges(spec: dict[str, object], field: str, message: str) -> None:
    """C1, pitfall 13: a range that is wrong is quoted, with what is wrong and what to write."""
    assert said(**spec) == {field: message}


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"perNodeHostBits": 3}, "perNodeHostBits", "must be at least 4, not 3; a block has 16 addresses or more"),
        (
            {"perNodeHostBits": 17},
            "perNodeHostBits",
            "must be at most 16, not 17, to leave at least one block in 10.1.0.0/16",
        ),
        (
            {"perNodeHostBits": 12, "ipv6": "fd00::/120"},
            "perNodeHostBits",
            "must be at most 8, not 12, to leave at least one block in fd00::/120",
        ),
        (
            {"perNodeHostBitsIPv6": 81, "ipv6": "fd12:3456:789a::/48"},
            "perNodeHostBitsIPv6",
            "must be at most 80, not 81, to leave at least one block in fd12:3456:789a::/48",
        ),
        (
            {"perNodeHostBitsIPv6": 64},
            "perNodeHostBitsIPv6",
            "may only be set together with ipv6; set ipv6, or leave this out",
        ),
    ],
)
def test_what_is_said_of_sizes(spec: dict[str, object], field: str, message: str) -> None:
    """C2, pitfall 11, pitfall 13: a size that does not fit is told the largest that does."""
    assert said(**spec) == {f"spec.{field}": message}


def test_a_size_that_fits_neither_family() -> None:
    """C2: a size that is too large for both ranges is told so of both."""
    found = judge(pool({"perNodeHostBits": 17, "ipv4": "10.1.0.0/16", "ipv6": "fd00::/120"}))
    assert [problem.message.split(", ")[0] for problem in found] == ["must be at most 16", "must be at most 8"]


@pytest.mark.parametrize(
    ("selector", "field", "message"),
    [
        (
            asking("a", "Equals", "b"),
            f"{EXPRESSION}.operator",
            "'Equals' is not supported; use In or NotIn or Exists or DoesNotExist or Gt or Lt",
        ),
        (asking("a", "In"), f"{EXPRESSION}.values", "must have at least one value with the operators In and NotIn"),
        (naming("size", "In", "a"), f"{FIELD}.key", "'size' is not supported; use metadata.name"),
        (
            naming("metadata.name", "In", "a", "b"),
            f"{FIELD}.values",
            "must be exactly one node's name; use a term for each further one",
        ),
    ],
)
def test_what_is_said_of_selectors(selector: object, field: str, message: str) -> None:
    """C4: a selector that Kubernetes would not accept is told what it would."""
    assert said(nodeSelector=selector) == {field: message}


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"cidr": "10.1.2.3/16"}, "cidr", "'10.1.2.3/16' has host bits set; the range that holds it is 10.1.0.0/16"),
        (
            {"cidr": "fd00::/125", "perNodeMaskSize": 124},
            "cidr",
            "'fd00::/125' is too small; a node's block has at least 16 addresses, so give a /124 or larger",
        ),
        (
            {"perNodeMaskSize": 15},
            "perNodeMaskSize",
            "must be at least 16, not 15, to leave at least one block in 10.1.0.0/16",
        ),
        (
            {"perNodeMaskSize": 29},
            "perNodeMaskSize",
            "must be at most 28 for IPv4, not 29; a block has 16 addresses or more",
        ),
        (
            {"nodeSelector": cases_config.asking("a", "Gt", "8")},
            "nodeSelector.matchExpressions[0].operator",
            "'Gt' is not supported; use In or NotIn or Exists or DoesNotExist",
        ),
        (
            {"nodeSelector": {"matchLabels": {"size": "very big"}}},
            "nodeSelector.matchLabels.size",
            "'very big' is no label value; one is empty or made of letters, digits, '-', '_' and '.', begins and ends "
            "with a letter or digit, and has at most 63 characters",
        ),
    ],
)
def test_what_is_said_of_configs(spec: dict[str, object], field: str, message: str) -> None:
    """K1, C1, C2: what is wrong with a ClusterCIDRConfig is said in the words that a ClusterCIDR is told."""
    assert said_of_config(**spec) == {f"spec.{field}": message}


@pytest.mark.parametrize("case", cases_config.NO_RANGES, ids=lambda case: case.title)
def test_ranges_are_judged_alike(case: Case) -> None:
    """K1, C1: what is wrong with a range is said in the same words, whichever kind it is in."""
    text = case.manifest["spec"]["cidr"]  # type: ignore[index]
    field = "ipv6" if ":" in text else "ipv4"
    assert said_of_config(cidr=text)["spec.cidr"] == said(**{field: text})[f"spec.{field}"]


def test_another_kind() -> None:
    """C4: an object that calls itself something else is none of this kind."""
    raw = {**pool({"perNodeHostBits": 8, "ipv4": "10.1.0.0/16"}), "apiVersion": "example.com/v1", "kind": "Pool"}
    assert [problem.field for problem in judge(raw)] == ["apiVersion", "kind"]
    other = pool(cases_config.FOUR)
    assert [problem.field for problem in judge(other, CLUSTER_CIDR_CONFIG)] == ["apiVersion", "kind"]


def test_a_pool_with_everything() -> None:
    """C1, C2, pitfall 11: the example of the rules is valid: /23 for IPv4, and a /64 of its own for IPv6."""
    spec = {"perNodeHostBits": 9, "perNodeHostBitsIPv6": 64, "ipv4": "10.1.0.0/16", "ipv6": "fd12:3456:789a::/48"}
    status = {
        "conditions": [{"type": "Active", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "ipv4": {"capacity": 128, "allocated": 3, "free": 125},
        "ipv6": {"capacity": 65536, "allocated": 3, "free": 65533},
        "nodes": 3,
        "free": 125,
    }
    assert judge(pool({**spec, "nodeSelector": BIG}, status=status)) == []


@pytest.mark.parametrize("case", SERVICE_CIDRS, ids=lambda case: case.title)
def test_service_ranges(case: Case) -> None:
    """A7: a ServiceCIDR holds one range, or one of each family, as Kubernetes has it."""
    obj = decode(case.manifest, ServiceCIDR)
    assert isinstance(obj, ServiceCIDR)
    assert {problem.field for problem in validate_service_cidr(obj)} == case.fields


@pytest.mark.parametrize("cidr", ["10.0.0.7/24", "010.0.0.0/24", "FD00:0::/64", "nonsense", ""])
def test_pod_cidrs_are_no_problem(cidr: str) -> None:
    """N7: whatever stands in podCIDRs, the node is valid."""
    obj = decode({"metadata": {"name": "node-1"}, "spec": {"podCIDR": cidr, "podCIDRs": [cidr]}}, Node)
    assert isinstance(obj, Node)
    assert validate_node(obj) == []


@pytest.mark.parametrize("name", ["", "Node_1", "a" * 254])
def test_a_node_has_a_name(name: str) -> None:
    """N3: a node that is to be written to needs a name that the API can have."""
    obj = decode({"metadata": {"name": name}}, Node)
    assert isinstance(obj, Node)
    assert [problem.field for problem in validate_node(obj)] == ["metadata.name"]
