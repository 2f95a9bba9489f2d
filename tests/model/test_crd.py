"""The custom resource definition: its shape, its rules, and the copy of it that is committed.

What the rules do is for an API server to show, with the table of `cases`; here it is held that they are there.
"""

import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cidrella.model import rules
from cidrella.model.crd import crds, pool_crd, range_allocation_crd
from cidrella.model.kinds import CLUSTER_CIDR, CLUSTER_CIDR_CONFIG, POOL_KINDS, PoolKind
from tests.model import cases_config
from tests.model.cases import UPDATES

DEPLOY = Path(__file__).parents[2] / "deploy"
IMMUTABLE_FIELDS = ["perNodeHostBits", "perNodeHostBitsIPv6", "ipv4", "ipv6", "nodeSelector"]


def version_of(kind: PoolKind) -> Any:
    """The one version of a kind's definition."""
    crd: Any = pool_crd(kind)
    (only,) = crd["spec"]["versions"]
    return only


def root_of(kind: PoolKind) -> Any:
    return version_of(kind)["schema"]["openAPIV3Schema"]


@pytest.fixture
def spec() -> Any:
    return root_of(CLUSTER_CIDR)["properties"]["spec"]


@pytest.fixture
def config_spec() -> Any:
    return root_of(CLUSTER_CIDR_CONFIG)["properties"]["spec"]


@pytest.fixture(params=POOL_KINDS, ids=str)
def root(request: pytest.FixtureRequest) -> Any:
    """The schema of each kind of pool."""
    return root_of(request.param)


def schemas(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """A schema and everything in it that describes a value."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas(inner, f"{path}.{name}")
    for each in ("items", "additionalProperties"):
        if each in schema:
            yield from schemas(schema[each], f"{path}[]")


def committed() -> dict[str, Any]:
    """The definitions in the repository, by name."""
    found = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in DEPLOY.glob("**/crds/*")]
    return {each["metadata"]["name"]: each for each in found}


def cel(schema: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = schema.get("x-kubernetes-validations", [])
    return found


def test_the_committed_copy_is_current() -> None:
    """C4, B5: what people apply from the repository is what the program was made with."""
    assert committed() == crds(), "out of date; run: make crds"


def test_group_version_and_names() -> None:
    """C5: the resource is the one already in use in clusters today, and answers to `kubectl get cc`."""
    crd: Any = pool_crd(CLUSTER_CIDR)
    assert crd["metadata"]["name"] == "clustercidrs.networking.x-k8s.io"
    assert (crd["spec"]["group"], crd["spec"]["scope"]) == ("networking.x-k8s.io", "Cluster")
    assert crd["spec"]["names"]["shortNames"] == ["cc"]
    (version,) = crd["spec"]["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1", True, True)
    assert version["subresources"] == {"status": {}}


def test_group_version_and_names_of_configs() -> None:
    """K1: the other kind is of the same group, a version younger, and answers to `kubectl get ccc`."""
    crd: Any = pool_crd(CLUSTER_CIDR_CONFIG)
    assert crd["metadata"]["name"] == "clustercidrconfigs.networking.x-k8s.io"
    assert (crd["spec"]["group"], crd["spec"]["scope"]) == ("networking.x-k8s.io", "Cluster")
    assert (crd["spec"]["names"]["kind"], crd["spec"]["names"]["shortNames"]) == ("ClusterCIDRConfig", ["ccc"])
    (version,) = crd["spec"]["versions"]
    assert (version["name"], version["subresources"]) == ("v1alpha1", {"status": {}})


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        (
            CLUSTER_CIDR,
            {"PERNODEHOSTBITS": ".spec.perNodeHostBits", "IPV4": ".spec.ipv4", "IPV6": ".spec.ipv6"},
        ),
        (CLUSTER_CIDR_CONFIG, {"CIDR": ".spec.cidr", "PERNODEMASKSIZE": ".spec.perNodeMaskSize"}),
    ],
    ids=str,
)
def test_columns(kind: PoolKind, own: dict[str, str]) -> None:
    """C5, K5: kubectl, which writes names in capitals and NAME first, shows the columns that the rule lists."""
    columns = {column["name"].upper(): column["jsonPath"] for column in version_of(kind)["additionalPrinterColumns"]}
    assert columns == {
        **own,
        "USED": ".status.nodes",
        "FREE": ".status.free",
        "ACTIVE": '.status.conditions[?(@.type=="Active")].status',
        "AGE": ".metadata.creationTimestamp",
    }


def test_the_schema_is_structural(root: Any) -> None:
    """C4: every value has a type, every list says its kind, and nothing is referred to, nullable or left open."""
    for path, schema in schemas(root):
        assert schema["type"] in {"object", "array", "string", "integer"}, path
        assert not {"$ref", "nullable", "x-kubernetes-preserve-unknown-fields"} & set(schema), path
        assert not {"properties", "additionalProperties"} <= set(schema), path
        assert schema["type"] != "array" or {"items", "x-kubernetes-list-type"} <= set(schema), path
        assert schema["type"] != "integer" or schema["format"] in {"int32", "int64"}, path


def test_every_field_is_described(root: Any) -> None:
    """C4: `kubectl explain` has something to say about each field that people set."""
    for path, schema in schemas(root["properties"]["spec"], "spec"):
        assert path.endswith("[]") or schema.get("description"), path


def test_what_of_a_spec_is_required(spec: Any, config_spec: Any) -> None:
    """C2, K1: a size is required of either kind, and a range of the one that has one."""
    assert spec["required"] == ["perNodeHostBits"]
    assert config_spec["required"] == ["cidr", "perNodeMaskSize"]


def test_what_is_required(root: Any) -> None:
    """C4: an older object without a spec can still be relieved of its finalizers, and a new one cannot be made."""
    assert "required" not in root
    (rule,) = cel(root)
    assert (rule["optionalOldSelf"], rule["fieldPath"]) == (True, ".spec")


def test_counts_are_64_bit(root: Any) -> None:
    """C5: counts have the 63 bits that they are cut to."""
    status = root["properties"]["status"]["properties"]
    counts = [status["nodes"], status["free"], *status["ipv4"]["properties"].values()]
    assert [count["format"] for count in counts] == ["int64"] * 5


def test_host_bits_have_a_minimum(spec: Any) -> None:
    """C2, pitfall 13: fewer than four host bits are refused for either family."""
    assert [spec["properties"][each]["minimum"] for each in ("perNodeHostBits", "perNodeHostBitsIPv6")] == [4, 4]


@pytest.mark.parametrize("field", ["ipv4", "ipv6"])
def test_ranges_are_checked(spec: Any, field: str) -> None:
    """C1, pitfall 13: a range is strictly a range, of its family, with no host bits set."""
    told = " ".join(rule["rule"] for rule in cel(spec["properties"][field]))
    assert all(part in told for part in ("isCIDR(self)", f"family() == {field[-1]}", "masked()"))


@pytest.mark.parametrize("field", IMMUTABLE_FIELDS)
def test_every_field_is_immutable(spec: Any, field: str) -> None:
    """C3, pitfall 14: a rule of the spec, which is asked even when the field appears or goes, holds each field."""
    (rule,) = (rule for rule in cel(spec) if "oldSelf" in rule["rule"] and rule["fieldPath"] == f".{field}")
    assert f"has(self.{field})" in rule["rule"]
    assert f"has(oldSelf.{field})" in rule["rule"]
    assert "create another ClusterCIDR instead" in rule["message"]


def test_what_of_a_config_is_immutable(config_spec: Any) -> None:
    """K1, K2: range and mask are, and the selector is not."""
    held = {rule["fieldPath"]: rule["message"] for rule in cel(config_spec) if "oldSelf" in rule["rule"]}
    assert list(held) == [".cidr", ".perNodeMaskSize"]
    assert all("create another ClusterCIDRConfig instead" in message for message in held.values())
    inside = [rule["rule"] for path, schema in schemas(config_spec) if path for rule in cel(schema)]
    assert not [each for each in inside if "oldSelf" in each]


def test_immutability_is_never_a_rule_of_the_field_itself(spec: Any) -> None:
    """C3, pitfall 14: a rule with oldSelf on an optional field would not be asked when it is added or removed."""
    inside = [(path, rule) for path, schema in schemas(spec) if path for rule in cel(schema)]
    assert [path for path, rule in inside if "oldSelf" in rule["rule"]] == []


def test_the_updates_of_the_table_cover_every_field_and_way() -> None:
    """C3: the table has each field changed, and each optional one added and removed as well."""
    ways = {
        (update.field.removeprefix("spec."), "".join(re.findall("changed|added|removed", update.title)))
        for update in UPDATES
    }
    optional = {(field, way) for field in IMMUTABLE_FIELDS[1:] for way in ("changed", "added", "removed")}
    assert optional | {("perNodeHostBits", "changed")} <= ways


def test_the_updates_of_configs_cover_every_field() -> None:
    """K1, K2: the table has each field that must stay changed, and the one that need not in every way."""
    assert {update.field for update in cases_config.UPDATES} >= {cases_config.CIDR, cases_config.MASK}
    allowed = {update.title for update in cases_config.UPDATES if not update.field}
    assert {f"selector {way}" for way in ("changed", "added", "removed")} <= allowed


def test_every_rule_says_what_to_do(root: Any) -> None:
    """C3, C4: each rule comes with a message for people, on one line."""
    for path, schema in schemas(root):
        for rule in cel(schema):
            assert rule["message"], path
            assert "\n" not in rule["message"], path


def test_selectors_are_bounded(spec: Any) -> None:
    """C4: what rules are asked for each of has a bound, without which the API server would refuse the definition."""
    terms = spec["properties"]["nodeSelector"]["properties"]["nodeSelectorTerms"]
    assert terms["maxItems"] == rules.TERMS_MAX
    assert terms["items"]["properties"]["matchExpressions"]["maxItems"] == rules.EXPRESSIONS_MAX


def test_label_selectors_are_bounded(config_spec: Any) -> None:
    """K1, C4: the same of labels, of which neither way to ask knows Gt and Lt."""
    selector = config_spec["properties"]["nodeSelector"]["properties"]
    assert selector["matchLabels"]["maxProperties"] == rules.LABELS_MAX
    assert selector["matchExpressions"]["maxItems"] == rules.LABELS_MAX
    operators = selector["matchExpressions"]["items"]["properties"]["operator"]["enum"]
    assert operators == ["In", "NotIn", "Exists", "DoesNotExist"]


def test_fields_and_labels_have_rules_of_their_own(spec: Any) -> None:
    """C4, S1: matchFields knows metadata.name alone, and matchExpressions every label."""
    terms = spec["properties"]["nodeSelector"]["properties"]["nodeSelectorTerms"]["items"]["properties"]
    label, field = (terms[each]["items"]["properties"] for each in ("matchExpressions", "matchFields"))
    assert field["key"]["enum"] == ["metadata.name"]
    assert field["operator"]["enum"] == ["In", "NotIn"]
    assert "enum" not in label["key"]
    assert label["operator"]["enum"] == ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


def test_a_definition_can_be_changed_by_whoever_asked_for_it(spec: Any) -> None:
    """C4: nothing in a definition is shared with the next one."""
    spec["properties"]["ipv4"]["x-kubernetes-validations"].clear()
    spec["x-kubernetes-validations"].clear()
    assert crds() == committed()


def test_range_allocations_look_as_kubernetes_own() -> None:
    """B5: `range` and `data` stand at the top and must be there; there is no status; `kubectl get` shows the range."""
    crd: Any = range_allocation_crd()
    (version,) = crd["spec"]["versions"]
    root = version["schema"]["openAPIV3Schema"]
    assert (crd["spec"]["group"], version["name"], crd["spec"]["scope"]) == ("cidrella.dev", "v1alpha1", "Cluster")
    assert root["required"] == ["range", "data"]
    assert {"range", "data", "recent", "writes", "repairer"} < set(root["properties"])
    assert "subresources" not in version
    assert [each["name"] for each in version["additionalPrinterColumns"]] == ["Range", "Age"]


def test_the_largest_range_fits() -> None:
    """B2, B5: an IPv4 /12, the largest range that is served, is let in whatever its bits; a number more is not."""
    root: Any = range_allocation_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]  # type: ignore[index]
    full = (1 << ((1 << 20) - 2)) - 1
    snapshot = full.to_bytes((full.bit_length() + 7) // 8, "big")
    assert len(b64encode(snapshot)) == root["properties"]["data"]["maxLength"]
