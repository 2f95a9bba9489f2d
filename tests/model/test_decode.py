"""From plain data to objects, or to everything that is wrong with it."""

import copy
import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.model.configs import ClusterCIDRConfig, LabelSelector
from cidrella.model.decode import Problem, decode
from cidrella.model.objects import ClusterCIDR, Node, ServiceCIDR
from cidrella.model.serviceip import RangeAllocation
from tests.model.cases import BIG, CASES, SHAPES
from tests.model.manifests import EXPRESSION, Case, asking, config, pool


def problems(raw: object) -> dict[str, str]:
    """What is wrong with a ClusterCIDR, by field."""
    found = decode(raw, ClusterCIDR)
    assert isinstance(found, list)
    return {problem.field: problem.message for problem in found}


def spec(**fields: object) -> dict[str, object]:
    return pool({"perNodeHostBits": 8, "ipv4": "10.1.0.0/16", **fields})


def test_null_in_a_mapping() -> None:
    """K1, C4: null is an empty label in metadata, and none at all in a selector, as it is to the API server."""
    written = {"cidr": "10.1.0.0/16", "perNodeMaskSize": 24, "nodeSelector": {"matchLabels": {"a": None, "b": "c"}}}
    found = decode(config(written, {"labels": {"a": None}}), ClusterCIDRConfig)
    assert isinstance(found, ClusterCIDRConfig)
    assert found.metadata.labels == {"a": ""}
    assert found.spec.node_selector == LabelSelector(match_labels={"b": "c"})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_shape_is_told_apart_from_sense(case: Case) -> None:
    """C4: an object of the right shape is decoded even if it makes no sense, and one of the wrong shape is not."""
    found = decode(case.manifest, ClusterCIDR)
    if isinstance(found, list):
        assert {problem.field for problem in found} == case.fields
    else:
        assert found == msgspec.convert(msgspec.to_builtins(found), ClusterCIDR)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("perNodeHostBits", "8", "must be a whole number, not the text '8'; remove the quotes"),
        ("perNodeHostBits", "many", "must be a whole number, not the text 'many'"),
        ("perNodeHostBits", 8.5, "must be a whole number, not the number 8.5"),
        ("perNodeHostBits", True, "must be a whole number, not the value true"),
        ("perNodeHostBits", float("inf"), "must be a whole number, not the number inf"),
        ("perNodeHostBits", None, "is required; add it"),
        ("ipv4", 10, "must be text, not the number 10; put it in quotes"),
        ("ipv4", False, "must be text, not the value false; put it in quotes"),
        ("ipv4", ["10.1.0.0/16"], "must be text, not a list"),
        ("ipv4", {}, "must be text, not a mapping"),
        ("nodeSelector", "big", "must be a mapping of fields, not the text 'big'"),
        ("nodeSelector", "b" * 60, f"must be a mapping of fields, not the text '{'b' * 40}…'"),
        ("perNodeHostbits", 8, "is no known field; did you mean perNodeHostBits?"),
        ("IPV4", "10.0.0.0/8", "is no known field; did you mean ipv4?"),
        (
            "cidr",
            "10.0.0.0/8",
            "is no known field; the fields here are perNodeHostBits, perNodeHostBitsIPv6, ipv4, ipv6, nodeSelector",
        ),
    ],
)
def test_messages(field: str, value: object, message: str) -> None:
    """C4, pitfall 13: a message says what is wrong and, where that can be told, what to do."""
    assert problems(spec(**{field: value})) == {f"spec.{field}": message}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("big", "must be a list, not the text 'big'; write it as a list: [big]"),
        ({"key": "size"}, "must be a list, not a mapping; put '- ' before it"),
    ],
)
def test_a_list_that_is_none(value: object, message: str) -> None:
    """C4: what should have been a list is told how to become one."""
    requirement = {"key": "a", "operator": "In", "values": value}
    raw = spec(nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [requirement]}]})
    assert problems(raw) == {f"{EXPRESSION}.values": message}


def test_every_problem_is_found() -> None:
    """C4, pitfall 13: all that is wrong is said at once, each thing with its field."""
    requirements = [{"key": "a", "operator": "Exists"}, {"key": 1, "operatr": "In", "values": ["x", 2]}]
    raw = pool(
        {"ipv4": 10, "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": requirements}, None]}},
        {"labels": {"example.com/size": 1, "b": "c"}, "finalizers": "mine"},
        stauts={},
    )
    terms = "spec.nodeSelector.nodeSelectorTerms"
    assert set(problems(raw)) == {
        'metadata.labels["example.com/size"]',
        "metadata.finalizers",
        "spec.perNodeHostBits",
        "spec.ipv4",
        f"{terms}[0].matchExpressions[1].key",
        f"{terms}[0].matchExpressions[1].operator",
        f"{terms}[0].matchExpressions[1].operatr",
        f"{terms}[0].matchExpressions[1].values[1]",
        f"{terms}[1]",
        "stauts",
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1, "must be text, not the number 1; put it in quotes"),
        (True, "must be text, not the value true; put it in quotes"),
        (
            datetime(2026, 1, 1, tzinfo=UTC),
            "must be text, not the datetime 2026-01-01 00:00:00+00:00; put it in quotes",
        ),
    ],
)
def test_labels_that_yaml_did_not_read_as_text(value: object, message: str) -> None:
    """S1: a label of a node is text, and one that YAML took for something else is pointed out."""
    raw = {"metadata": {"name": "node-1", "labels": {"size": value}}}
    assert decode(raw, Node) == [Problem(("metadata", "labels", "size"), message)]


def test_a_label_whose_key_is_a_number() -> None:
    """S1: a key that YAML took for a number is pointed out too."""
    found = decode({"metadata": {"labels": {1: "a"}}}, Node)
    assert found == [Problem(("metadata", "labels", "1"), "the key must be text, not the number 1; put it in quotes")]


def test_a_label_without_a_value_is_empty() -> None:
    """S1: `node-role.kubernetes.io/worker:` in YAML is an empty label, as it is to Kubernetes."""
    raw = {"metadata": {"name": "node-1", "labels": {"node-role.kubernetes.io/worker": None, "size": "big"}}}
    before = copy.deepcopy(raw)
    node = decode(raw, Node)
    assert isinstance(node, Node)
    assert node.metadata.labels == {"node-role.kubernetes.io/worker": "", "size": "big"}
    assert raw == before


def test_a_whole_number_with_a_point() -> None:
    """C2: 8.0 is 8, as it is to kubectl."""
    obj = decode(spec(perNodeHostBits=8.0, nodeSelector=BIG), ClusterCIDR)
    assert isinstance(obj, ClusterCIDR)
    assert msgspec.to_builtins(obj.spec) == {"perNodeHostBits": 8, "ipv4": "10.1.0.0/16", "nodeSelector": BIG}
    assert type(obj.spec.per_node_host_bits) is int


@pytest.mark.parametrize("kind", [ClusterCIDR, Node, ServiceCIDR])
@pytest.mark.parametrize("raw", [None, "text", 1, []])
def test_no_object_at_all(raw: object, kind: type[Node]) -> None:
    """C4: what is no mapping is no object of any kind."""
    found = decode(raw, kind)
    assert isinstance(found, list)
    assert [(problem.field, problem.message[:26]) for problem in found] == [("", "must be a mapping of field")]
    assert str(found[0]) == found[0].message


def test_unknown_fields_of_a_node_are_none_of_our_business() -> None:
    """N7: a node is decoded whatever its other fields hold, even where the walk has to help."""
    node = decode({"metadata": {"labels": {"a": None}}, "spec": {"podCIDRs": None, 1: 2}, "status": 3}, Node)
    assert isinstance(node, Node)


def test_a_problem_reads_as_one_line() -> None:
    """C4: a problem is printed as its field and what is wrong with it."""
    (problem,) = decode(spec(nodeSelector=asking("a", "In", 1)), ClusterCIDR)  # type: ignore[misc]
    assert str(problem) == f"{EXPRESSION}.values[0]: must be text, not the number 1; put it in quotes"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(raw: object) -> list[tuple[str | int, ...]]:
    """Every place in plain data that something else could be put in."""
    found: list[tuple[str | int, ...]] = [()]
    items = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for key, value in items:
        found += [(key, *place) for place in places(value)]
    return found


@st.composite
def damaged(draw: st.DrawFn) -> object:
    """A manifest of the table with something else in up to three places."""
    raw = json.loads(json.dumps(draw(st.sampled_from([case.manifest for case in SHAPES]))))
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(places(raw)[1:]))
        at = raw
        for step in way:
            at = at[step]
        at[last] = draw(ANYTHING)
    return raw


@given(damaged())
def test_the_walk_agrees_with_msgspec(raw: object) -> None:
    """C4: the walk never fails, finds something wherever msgspec does, and speaks no jargon."""
    found = decode(raw, ClusterCIDR)
    if isinstance(found, list):
        assert found
        assert not any("Expected" in problem.message or "`" in problem.message for problem in found)
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(raw, ClusterCIDR)


def test_bytes() -> None:
    """B5: bits are read from base64; what is none is told in words."""
    good: dict[str, object] = {"metadata": {"name": "x"}, "range": "10.96.0.0/28", "data": "Aw=="}
    read = decode(good, RangeAllocation)
    assert isinstance(read, RangeAllocation)
    assert read.data == b"\x03"
    # Null is nothing to the walk: it reads what msgspec would not.
    assert decode(good | {"writes": None}, RangeAllocation) == read
    for value, told in (("Aw=", "the text 'Aw='"), (7, "the number 7"), (["Aw=="], "a list")):
        found = decode(good | {"data": value}, RangeAllocation)
        assert isinstance(found, list)
        assert [str(each) for each in found] == [f"data: must be bytes in base64, not {told}"]
