"""`cidrella convert`: no node notices, or it is said why a pool stays as it is."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cidrella.app.converting import Conversion, convert, manifest, other_kind
from cidrella.app.inventory import Inventory
from cidrella.app.planning import Options, make_plan
from cidrella.core.overlap import Demand
from cidrella.model.decode import decode
from cidrella.model.kinds import CLUSTER_CIDR, CLUSTER_CIDR_CONFIG, POOL_KINDS, kind_of, pool_name
from cidrella.model.objects import Node, ServiceCIDR
from cidrella.model.validate import validate_pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cidrella.model.kinds import PoolKind, PoolObject

Json = dict[str, Any]

IPV4 = [f"10.0.{third}.0/{length}" for third in (0, 1) for length in (24, 25, 26)]
IPV6 = [f"fd00::{last}/{length}" for last in ("", "100") for length in (120, 121, 122)]
SIZES = [4, 5, 6]
NAMES = ["p", "p-ipv4", "p-ipv6", "p-v4", "p-v6", "p--v4", "p--v6", "q"]
"""Some of which may be made of others."""


def pool(kind: PoolKind, name: str, spec: Json, **metadata: object) -> PoolObject:
    """A pool as it is read, which has to be valid."""
    raw = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, **metadata}, "spec": spec}
    made = decode(raw, kind.struct)
    assert not isinstance(made, list), made
    assert not validate_pool(made)
    return made


def cc(name: str, *ranges: str, where: Json | list[Json] | None = None, **metadata: object) -> PoolObject:
    """A ClusterCIDR: ranges as `10.0.0.0/16 8`, with the host bits; `where` is a term or several."""
    spec: Json = {}
    for text, bits in (each.split() for each in ranges):
        family = "ipv6" if ":" in text else "ipv4"
        spec[family] = text
        spec["perNodeHostBitsIPv6" if family == "ipv6" and "ipv4" in spec else "perNodeHostBits"] = int(bits)
    if where is not None:
        spec["nodeSelector"] = {"nodeSelectorTerms": where if isinstance(where, list) else [where]}
    return pool(CLUSTER_CIDR, name, spec, **metadata)


def ccc(name: str, cidr: str, where: Json | None = None, **metadata: object) -> PoolObject:
    """A ClusterCIDRConfig: the range as `10.0.0.0/16 24`, with the length of a block; `where` is its selector."""
    text, length = cidr.split()
    spec: Json = {"cidr": text, "perNodeMaskSize": int(length)}
    if where is not None:
        spec["nodeSelector"] = where
    return pool(CLUSTER_CIDR_CONFIG, name, spec, **metadata)


def asks(*requirements: str) -> Json:
    """Expressions, as `a=x|y`, `a!=x`, `a`, `!a`, `a>5`."""
    return {"matchExpressions": [_expression(each) for each in requirements]}


def _expression(text: str) -> Json:
    for sign, operator in (("!=", "NotIn"), ("=", "In"), (">", "Gt"), ("<", "Lt")):
        if sign in text:
            key, values = text.split(sign)
            return {"key": key, "operator": operator, "values": values.split("|")}
    return {"key": text.removeprefix("!"), "operator": "DoesNotExist" if text.startswith("!") else "Exists"}


def reread(made: PoolObject) -> PoolObject:
    """A pool as it is read from what is written of it."""
    again = decode(manifest(made), kind_of(made).struct)
    assert not isinstance(again, list), again
    return again


def written(result: Conversion) -> list[Json]:
    return [manifest(each) for each in result.pools]


def refusals(result: Conversion) -> dict[str, str]:
    return {pool_name(each.pool): each.reason for each in result.refused}


requirements = st.sampled_from(["a=x", "a=y", "a=x|y", "a!=x", "a", "!a", "b=x", "b!=x|y", "b", "!b"])
"""Half of which exclude another."""
some = st.lists(requirements, min_size=1, max_size=2, unique=True)
configs_selectors: st.SearchStrategy[Json | None] = st.none() | st.just({}) | some.map(lambda each: asks(*each))
terms = (some | some.map(lambda each: [*each, "a>3"])).map(lambda each: asks(*each)) | st.just(
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
)
pool_selectors = (
    st.none()
    | st.lists(terms, min_size=1, max_size=1)
    | st.lists(terms | st.just({}), max_size=2)
    | terms.map(lambda each: [each, {}, each])
)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[PoolObject], list[Node], list[ServiceCIDR]]:
    """Pools of both kinds over ranges that overlap, with selectors that do, and nodes of which some hold blocks."""
    pools: list[PoolObject] = []
    named = st.tuples(st.sampled_from(NAMES), st.sampled_from(POOL_KINDS))
    for name, kind in draw(st.lists(named, min_size=1, max_size=5, unique=True)):
        metadata: Json = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if draw(st.integers(0, 9)) == 0 else {}
        if kind is CLUSTER_CIDR_CONFIG:
            cidr = draw(st.sampled_from([*IPV4, *IPV6]))
            length = (128 if ":" in cidr else 32) - draw(st.sampled_from(SIZES))
            pools.append(ccc(name, f"{cidr} {length}", draw(configs_selectors), **metadata))
        else:
            ranges = draw(
                st.sampled_from([[each] for each in [*IPV4, *IPV6]] + [[one, two] for one in IPV4[:3] for two in IPV6])
            )
            sized = [f"{each} {draw(st.sampled_from(SIZES))}" for each in ranges]
            pools.append(cc(name, *sized, where=draw(pool_selectors), **metadata))
    nodes = []
    for number in range(draw(st.integers(0, 24))):
        labels = draw(st.dictionaries(st.sampled_from("ab"), st.sampled_from(["x", "y", "7"])))
        held = draw(st.sampled_from([[], [], [], [f"10.0.0.{number * 8 % 256}/29"], [f"10.0.1.{number % 4 * 64}/26"]]))
        nodes.append(node(f"n{number}", labels, held))
    services = [service("10.0.0.64/26")] if draw(st.booleans()) else []
    return pools, nodes, services


def node(name: str, labels: dict[str, str], held: Sequence[str] = ()) -> Node:
    made = decode({"metadata": {"name": name, "labels": labels}, "spec": {"podCIDRs": list(held)}}, Node)
    assert isinstance(made, Node)
    return made


def service(cidr: str) -> ServiceCIDR:
    made = decode({"metadata": {"name": "s"}, "spec": {"cidrs": [cidr]}}, ServiceCIDR)
    assert isinstance(made, ServiceCIDR)
    return made


def planned(pools: list[PoolObject], nodes: list[Node], services: list[ServiceCIDR]) -> list[tuple[object, ...]]:
    """What becomes of every node: its outcome and its blocks."""
    plan = make_plan(Inventory(pools=pools, nodes=nodes, services=services), Options())
    return [(each.node, each.outcome, each.blocks) for each in plan.decisions]


@settings(max_examples=200)
@given(clusters(), st.sampled_from(POOL_KINDS))
def test_no_node_notices(cluster: tuple[list[PoolObject], list[Node], list[ServiceCIDR]], target: PoolKind) -> None:
    """S3, S4, K3, K4: the plan before and after is the same; each pool is of the kind asked for, or it is said why."""
    pools, nodes, services = cluster
    result = convert(pools, target)
    event(f"converted: {result.converted > 0}, refused: {len(result.refused) > 0}")
    # A pool that is being deleted is still there, beside what was written. Without it, its blocks are nobody's.
    before = planned(pools, nodes, services)
    read = [reread(each) for each in result.pools]
    assert planned([*result.pools, *result.left_out], nodes, services) == before
    assert planned([*read, *result.left_out], nodes, services) == before
    assert [each[::2] for each in planned(read, nodes, services)] == [each[::2] for each in before]
    going = [each for each in pools if each.metadata.deletion_timestamp]
    assert result.left_out == going
    asked = [pool_name(each) for each in pools if kind_of(each) is not target and each not in going]
    assert result.converted + len(result.refused) == len(asked)
    assert set(refusals(result)) <= set(asked)
    assert [each for each in result.pools if kind_of(each) is not target] == [each.pool for each in result.refused]
    assert not any(validate_pool(each) for each in result.pools)
    assert len(set(map(pool_name, [*result.pools, *going]))) == len(result.pools) + len(going)


@given(clusters(), st.sampled_from(POOL_KINDS), st.randoms(use_true_random=False))
def test_no_order_matters(
    cluster: tuple[list[PoolObject], list[Node], list[ServiceCIDR]], target: PoolKind, source: random.Random
) -> None:
    """S3, K4: in whatever order the pools are given, the same become the same, and the same stay."""
    pools, _, _ = cluster
    result = convert(pools, target)
    shuffled = convert(source.sample(pools, len(pools)), target)
    assert sorted(shuffled.pools, key=pool_name) == sorted(result.pools, key=pool_name)
    assert refusals(shuffled).keys() == refusals(result).keys()


@pytest.mark.parametrize("target", POOL_KINDS, ids=str)
def test_what_can_be_converted_is(target: PoolKind) -> None:
    """K3, K4: caution is no excuse. Of random pools of which none is for a node of another, all are converted."""
    source = random.Random(1)
    for _ in range(50):
        pools: list[PoolObject] = []
        for number in range(4):
            ipv4, ipv6, where = source.choice(IPV4), source.choice(IPV6), asks(f"a=v{number}")
            if target is CLUSTER_CIDR_CONFIG:
                sizes = source.choice(SIZES), source.choice(SIZES)
                pools.append(cc(f"p{number}", f"{ipv4} {sizes[0]}", f"{ipv6} {sizes[1]}", where=where))
            else:
                pools.append(ccc(f"p{number}-v4", f"{ipv4} {source.randint(26, 28)}", where))
                pools.append(ccc(f"p{number}-v6", f"{ipv6} 124", {"matchLabels": {"a": f"v{number}"}}))
        result = convert(pools, target)
        assert (result.converted, result.refused) == (len(pools), [])


class TestOneByItself:
    """What a single pool becomes."""

    def test_one_family(self) -> None:
        """K1: one range, the length of a block for host bits, and the selector in other words; there and back."""
        where = asks("size=big", "rack=1|2", "size!=small", "!old", "gpu")
        first = cc("p", "10.0.0.0/16 8", where=where, labels={"team": "net"}, annotations={"note": "x"})
        result = convert([first], CLUSTER_CIDR_CONFIG)
        assert written(result) == [
            {
                "apiVersion": "networking.x-k8s.io/v1alpha1",
                "kind": "ClusterCIDRConfig",
                "metadata": {"name": "p", "labels": {"team": "net"}, "annotations": {"note": "x"}},
                "spec": {
                    "cidr": "10.0.0.0/16",
                    "perNodeMaskSize": 24,
                    "nodeSelector": {
                        "matchLabels": {"size": "big"},
                        "matchExpressions": where["matchExpressions"][1:],
                    },
                },
            }
        ]
        assert convert(result.pools, CLUSTER_CIDR).pools == [first]

    def test_two_families(self) -> None:
        """K1, K3: a dual-stack pool is two configs for the same nodes, and they are one again."""
        first = cc("p", "10.0.0.0/16 8", "fd00::/48 64", where=asks("a=x"))
        result = convert([first], CLUSTER_CIDR_CONFIG)
        assert [(each["metadata"]["name"], each["spec"]) for each in written(result)] == [
            ("p-ipv4", {"cidr": "10.0.0.0/16", "perNodeMaskSize": 24, "nodeSelector": {"matchLabels": {"a": "x"}}}),
            ("p-ipv6", {"cidr": "fd00::/48", "perNodeMaskSize": 64, "nodeSelector": {"matchLabels": {"a": "x"}}}),
        ]
        assert result.converted == 1
        assert convert(result.pools, CLUSTER_CIDR).pools == [first]
        assert convert(result.pools[::-1], CLUSTER_CIDR).pools == [first]

    def test_one_size_for_both_families(self) -> None:
        """C2: where both families have the same host bits, they are said once."""
        pair = [ccc("a", "10.0.0.0/16 24"), ccc("b", "fd00::/112 120")]
        (made,) = written(convert(pair, CLUSTER_CIDR))
        assert made["spec"] == {"perNodeHostBits": 8, "ipv4": "10.0.0.0/16", "ipv6": "fd00::/112"}

    def test_an_ipv6_range_alone(self) -> None:
        """C2: the host bits of an IPv6 range alone are those of the pool."""
        (made,) = written(convert([ccc("p", "fd00::/48 64", {})], CLUSTER_CIDR))
        assert made["spec"] == {"perNodeHostBits": 64, "ipv6": "fd00::/48"}

    @pytest.mark.parametrize(
        ("names", "joint"),
        [
            (("pods-v4", "pods-v6"), "pods"),
            (("pods-ipv4", "pods-ipv6"), "pods"),
            (("pods.4", "pods.6"), "pods"),
            (("podsv4", "podsv6"), "pods"),
            (("pods-v6", "pods-v4"), "pods"),
            (("rack-14", "rack-16"), "rack-14"),
            (("one-v4", "two-v6"), "one-v4"),
            (("taken-v4", "taken-v6"), "taken-v4"),
            (("pods--v4", "pods--v6"), "pods--v4"),
        ],
    )
    def test_name_of_two(self, names: tuple[str, str], joint: str) -> None:
        """What two configs have in common before the family is the name of the pool, if it is one and is free."""
        other = cc("taken", "10.9.0.0/16 8", where=asks("a=y"))
        pools = [other, ccc(names[0], "10.0.0.0/16 24", asks("a=x")), ccc(names[1], "fd00::/112 120", asks("a=x"))]
        assert [each.metadata.name for each in convert(pools, CLUSTER_CIDR).pools] == ["taken", joint]

    def test_labels_and_annotations(self) -> None:
        """On what two do not agree, or what is about the object itself, the pool does not say."""
        noise = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "cidrella.dev/family-order": "IPv6,IPv4"}
        pools = [
            ccc("p4", "10.0.0.0/16 24", labels={"a": "1", "b": "2"}, annotations={"c": "3", **noise}),
            ccc("p6", "fd00::/112 120", labels={"b": "2", "a": "x"}, annotations={"c": "3", **noise}, uid="u"),
        ]
        (made,) = written(convert(pools, CLUSTER_CIDR))
        assert made["metadata"] == {"name": "p4", "labels": {"b": "2"}, "annotations": {"c": "3"}}

    @pytest.mark.parametrize(
        ("where", "reason"),
        [
            ([asks("a"), asks("b")], "its selector has 2 terms"),
            ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}, "looks at fields"),
            (asks("a>3"), "compares a as a number (Gt)"),
            (asks("b", "a<3"), "compares a as a number (Lt)"),
            ({}, "an empty term, which matches no node"),
        ],
    )
    def test_selector_that_labels_cannot_say(self, where: Json | list[Json], reason: str) -> None:
        """S1, K1: what the selector of a config cannot say is named, and the pool stays as it is."""
        pools = [cc("p", "10.0.0.0/16 8", where=where)]
        result = convert(pools, CLUSTER_CIDR_CONFIG)
        assert result.pools == pools
        assert reason in refusals(result)["p"]

    def test_no_terms_are_no_selector(self) -> None:
        """S2: a selector without terms makes a default, in either kind."""
        (made,) = written(convert([cc("p", "10.0.0.0/16 8", where=[])], CLUSTER_CIDR_CONFIG))
        assert "nodeSelector" not in made["spec"]

    def test_ipv6_first(self) -> None:
        """F1: the order of families that an annotation asks for cannot be asked of configs. Of one it is void."""
        order = {"cidrella.dev/family-order": "IPv6,IPv4"}
        both = cc("p", "10.0.0.0/16 8", "fd00::/112 8", annotations=order)
        assert "gives IPv6 first" in refusals(convert([both], CLUSTER_CIDR_CONFIG))["p"]
        assert convert([cc("p", "10.0.0.0/16 8", annotations=order)], CLUSTER_CIDR_CONFIG).refused == []

    @pytest.mark.parametrize("target", POOL_KINDS, ids=str)
    def test_being_deleted(self, target: PoolKind) -> None:
        """S6: a pool that is going is not written, in either direction, is in nobody's way, and has its name still."""
        gone: Json = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}
        pools = [ccc("old", "10.0.0.0/16 24", **gone), ccc("new", "10.0.0.0/16 25"), ccc("six", "fd00::/112 120")]
        result = convert(pools, target)
        assert (refusals(result), result.left_out) == ({}, pools[:1])
        kept = ["new", "six"] if target is CLUSTER_CIDR_CONFIG else ["new"]
        assert [each["metadata"]["name"] for each in written(result)] == kept
        (reason,) = refusals(convert([pools[0], cc("old", "10.1.0.0/16 8")], CLUSTER_CIDR_CONFIG)).values()
        assert reason == "there is a ClusterCIDRConfig old already; rename one of them"

    @pytest.mark.parametrize(
        "where",
        [
            [asks("a=x", "b"), {}],
            [{}, asks("a=x", "b"), {"matchExpressions": []}],
            [asks("a=x", "b"), asks("b", "a=x")],
        ],
    )
    def test_terms_that_add_nothing(self, where: list[Json]) -> None:
        """S1: an empty term matches no node, and one that is said twice matches no more; neither is in the way."""
        (made,) = written(convert([cc("p", "10.0.0.0/16 8", where=where)], CLUSTER_CIDR_CONFIG))
        assert made["spec"]["nodeSelector"] == {"matchLabels": {"a": "x"}, **asks("b")}

    @pytest.mark.parametrize(
        "where",
        [
            [asks("a=x"), asks("a=x", "a=x")],
            [asks("metadata.name=n"), {"matchFields": asks("metadata.name=n")["matchExpressions"]}],
        ],
    )
    def test_terms_that_add_something(self, where: list[Json]) -> None:
        """S1, S3: how often something is asked counts, and a field is no label."""
        (reason,) = refusals(convert([cc("p", "10.0.0.0/16 8", where=where)], CLUSTER_CIDR_CONFIG)).values()
        assert reason.startswith("its selector has 2 terms")

    def test_more_requirements_than_a_term_can_hold(self) -> None:
        """C4, K1: what would be invalid is not made."""
        (reason,) = refusals(
            convert([ccc("p", "10.0.0.0/16 24", asks(*(f"k{n}" for n in range(33))))], CLUSTER_CIDR)
        ).values()
        assert reason.startswith("as a ClusterCIDR it would be invalid: spec.nodeSelector")

    def test_name_that_is_taken(self) -> None:
        """No two pools of a kind get one name."""
        pools = [cc("p", "10.0.0.0/16 8", where=asks("a=x")), ccc("p", "10.1.0.0/16 24", asks("a=y"))]
        for target in POOL_KINDS:
            (reason,) = refusals(convert(pools, target)).values()
            assert reason == f"there is a {target} p already; rename one of them"

    @pytest.mark.parametrize("turn", [1, -1])
    def test_name_that_two_would_get(self, turn: int) -> None:
        """The one that keeps its own name gets it, whichever is given first; the other is told whose it is."""
        both = cc("a", "10.0.0.0/16 8", "fd00::/112 8", where=asks("k=x"))
        pools = [both, cc("a-ipv4", "10.2.0.0/16 8", where=asks("k=v"))]
        result = convert(pools[::turn], CLUSTER_CIDR_CONFIG)
        assert refusals(result) == {
            "a": "there would be two ClusterCIDRConfigs a-ipv4, its own and that of ClusterCIDR a-ipv4; rename one of "
            "them"
        }
        assert {pool_name(each) for each in result.pools} == {"a", "ccc/a-ipv4"}

    @pytest.mark.parametrize("turn", [1, -1])
    def test_name_of_one_that_stays(self, turn: int) -> None:
        """K3: one that has to stay, by itself or for the sake of others, takes nobody's name."""
        both = cc("a", "10.0.0.0/16 8", "fd00::/112 8", where=asks("k=x"))
        staying = [
            [cc("a-ipv4", "10.2.0.0/16 8", where=asks("k>3", "k=v"))],
            [cc("a-ipv4", "10.2.0.0/24 6", where=asks("k=v")), cc("large", "10.1.0.0/16 4", where=asks("k=v"))],
        ]
        for others in staying:
            result = convert([both, *others][::turn], CLUSTER_CIDR_CONFIG)
            assert refusals(result).keys() == set(map(pool_name, others))
            assert {"ccc/a-ipv4", "ccc/a-ipv6", "a-ipv4"} <= set(map(pool_name, result.pools))

    @pytest.mark.parametrize("turn", [1, -1])
    def test_stem_that_others_could_want(self, turn: int) -> None:
        """What two have in common is their name only if nobody else is called so, or could be."""
        pools = [
            *(ccc(f"a-v{n}", cidr, asks("k=x")) for n, cidr in ((4, "10.0.0.0/16 24"), (6, "fd00::/112 120"))),
            *(ccc(f"a.{n}", cidr, asks("k=y")) for n, cidr in ((4, "10.1.0.0/16 24"), (6, "fd01::/112 120"))),
            *(ccc(f"b-v{n}", cidr, asks("k=z")) for n, cidr in ((4, "10.2.0.0/16 24"), (6, "fd02::/112 120"))),
            ccc("b", "10.3.0.0/16 24", asks("k=u")),
        ]
        result = convert(pools[::turn], CLUSTER_CIDR)
        assert (result.refused, {each.metadata.name for each in result.pools}) == ([], {"a-v4", "a.4", "b-v4", "b"})


class TestBesideOthers:
    """What becomes of a pool depends on those that can be for the same nodes."""

    def test_order(self) -> None:
        """S3, K4: capacity goes first among ClusterCIDRs, the size of a block among configs. Both are said to stay."""
        pools = [cc("small", "10.0.0.0/24 6"), cc("large", "10.1.0.0/16 4")]
        assert refusals(convert(pools, CLUSTER_CIDR_CONFIG)) == {
            "small": "it comes before large by S3, and would come after large, by K4",
            "large": "it comes after small by S3, and would come before small, by K4",
        }
        assert convert([cc("small", "10.0.0.0/24 4"), cc("large", "10.1.0.0/16 6")], CLUSTER_CIDR_CONFIG).refused == []

    def test_selectors_that_exclude_each_other(self) -> None:
        """S1: the order of two that no node can choose between does not matter."""
        pools = [cc("p", "10.0.0.0/24 6", where=asks("a=x")), cc("q", "10.1.0.0/16 4", where=asks("a!=x"))]
        assert convert(pools, CLUSTER_CIDR_CONFIG).refused == []

    def test_turns(self) -> None:
        """K3: whatever is of the other kind comes in another turn. One that stays may keep others from changing."""
        stays = cc("stays", "10.0.0.0/24 8", where=[asks("a"), asks("b")])
        first, last = cc("first", "10.1.0.0/24 4", where=asks("a", "b")), cc("last", "10.2.0.0/16 4", where=asks("a"))
        default = cc("default", "10.3.0.0/24 8")
        result = convert([stays, first, last, default], CLUSTER_CIDR_CONFIG)
        assert [str(kind_of(each)) for each in result.pools] == [*["ClusterCIDR"] * 2, *["ClusterCIDRConfig"] * 2]
        reason = "it comes before stays by S3, and would come after stays, which stays as it is, by K3"
        assert refusals(result)["first"] == reason

    def test_families_that_would_be_joined(self) -> None:
        """K3: ClusterCIDRs of one family each give a node one; as configs they would give it both."""
        pools = [cc("four", "10.0.0.0/16 8"), cc("six", "fd00::/112 8")]
        assert (
            "would get its blocks joined with those of six (K3), and now do not"
            in refusals(convert(pools, CLUSTER_CIDR_CONFIG))["four"]
        )

    def test_two_dual_stack_pools(self) -> None:
        """K3: configs fall through family by family, ClusterCIDRs as a whole."""
        pools = [cc("p", "10.0.0.0/16 8", "fd00::/112 8", where=asks("a")), cc("d", "10.1.0.0/16 8", "fd01::/112 8")]
        assert refusals(convert(pools, CLUSTER_CIDR_CONFIG)).keys() == {"p", "d"}

    def test_families_that_are_joined(self) -> None:
        """K3: configs for different nodes, which some nodes get joined, can be said in no other way."""
        pools = [ccc("four", "10.0.0.0/16 24"), ccc("six", "fd00::/48 64", asks("a"))]
        result = convert(pools, CLUSTER_CIDR)
        assert result.pools == pools
        assert refusals(result) == {
            "ccc/four": "nodes that both are for get its blocks joined with those of ccc/six (K3), and then would not",
            "ccc/six": "nodes that both are for get its blocks joined with those of ccc/four (K3), and then would not",
        }

    def test_example_of_the_enhancement_proposal(self) -> None:
        """K3, K4: of the example in KEP-2594, what can be said as ClusterCIDRs is, and the rest stays."""
        pools = [
            ccc("all", "10.0.0.0/8 24"),
            ccc("more", "172.16.0.0/14 24"),
            ccc("np1", "10.0.0.0/8 26", asks("np=np1")),
            ccc("np2", "192.168.0.0/16 26", asks("np=np2")),
            ccc("np3-v4", "5.2.0.0/16 20", {"matchLabels": {"np": "np3"}}),
            ccc("np3-v6", "fd12:3456:789a:1::/64 112", {"matchLabels": {"np": "np3"}}),
        ]
        result = convert(pools, CLUSTER_CIDR)
        assert refusals(result).keys() == {"ccc/all", "ccc/more", "ccc/np3-v4", "ccc/np3-v6"}
        assert [pool_name(each) for each in result.pools][2:4] == ["np1", "np2"]


def test_the_other_kind() -> None:
    """Of one kind the other is wanted; of both, nobody can know."""
    one, two = cc("p", "10.0.0.0/16 8"), ccc("p", "10.0.0.0/16 24")
    assert other_kind([one]) is CLUSTER_CIDR_CONFIG
    assert other_kind([two]) is CLUSTER_CIDR
    assert other_kind([one, two]) is None


@pytest.mark.parametrize("target", POOL_KINDS, ids=str)
def test_thousands(target: PoolKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1: pools that a label tells apart are not compared each with each; how far it is, is told."""
    told: list[tuple[int, int]] = []
    compared: list[Demand] = []
    shared = Demand.shared

    def counted(one: Demand, other: Demand) -> frozenset[tuple[int, int]]:
        compared.append(one)
        return shared(one, other)

    monkeypatch.setattr(Demand, "shared", counted)
    racks = [asks(f"rack=r{number}", "env=prod", "z") for number in range(1500)]
    if target is CLUSTER_CIDR:
        pools = [ccc(f"p{number}", "10.0.0.0/16 24", where) for number, where in enumerate(racks)]
    else:
        pools = [cc(f"p{number}", "10.0.0.0/16 8", where=where) for number, where in enumerate(racks)]
    result = convert(pools, target, lambda *how_far: told.append(how_far))
    assert len(compared) < 10 * len(pools)
    assert (result.converted, told) == (1500, [(number, 1500) for number in range(1500)])
