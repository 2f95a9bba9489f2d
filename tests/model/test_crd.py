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
from cidrella.model.crd import cluster_cidr_crd, crds, range_allocation_crd
from tests.model.cases import UPDATES

DEPLOY = Path(__file__).parents[2] / "deploy"
IMMUTABLE_FIELDS = ["perNodeHostBits", "perNodeHostBitsIPv6", "ipv4", "ipv6", "nodeSelector"]


@pytest.fixture
def version() -> Any:
    (only,) = cluster_cidr_crd()["spec"]["versions"]  # type: ignore[index]
    return only


@pytest.fixture
def root(version: Any) -> Any:
    return version["schema"]["openAPIV3Schema"]


@pytest.fixture
def spec(root: Any) -> Any:
    return root["properties"]["spec"]


def schemas(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """A schema and everything in it that describes a value."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas(inner, f"{path}.{name}")
    if "items" in schema:
        yield from schemas(schema["items"], f"{path}[]")


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
    crd: Any = cluster_cidr_crd()
    assert crd["metadata"]["name"] == "clustercidrs.networking.x-k8s.io"
    assert (crd["spec"]["group"], crd["spec"]["scope"]) == ("networking.x-k8s.io", "Cluster")
    assert crd["spec"]["names"]["shortNames"] == ["cc"]
    (version,) = crd["spec"]["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1", True, True)
    assert version["subresources"] == {"status": {}}


def test_columns(version: Any) -> None:
    """C5: kubectl, which writes names in capitals and NAME first, shows the columns that the rule lists."""
    columns = {column["name"].upper(): column["jsonPath"] for column in version["additionalPrinterColumns"]}
    assert columns == {
        "PERNODEHOSTBITS": ".spec.perNodeHostBits",
        "IPV4": ".spec.ipv4",
        "IPV6": ".spec.ipv6",
        "USED": ".status.nodes",
        "FREE": ".status.free",
        "ACTIVE": '.status.conditions[?(@.type=="Active")].status',
        "AGE": ".metadata.creationTimestamp",
    }


def test_the_schema_is_structural(root: Any) -> None:
    """C4: every value has a type, every list says its kind, and nothing is referred to, nullable or left open."""
    for path, schema in schemas(root):
        assert schema["type"] in {"object", "array", "string", "integer"}, path
        assert not {"$ref", "nullable", "additionalProperties", "x-kubernetes-preserve-unknown-fields"} & set(schema), (
            path
        )
        assert schema["type"] != "array" or {"items", "x-kubernetes-list-type"} <= set(schema), path
        assert schema["type"] != "integer" or schema["format"] in {"int32", "int64"}, path


def test_every_field_is_described(root: Any) -> None:
    """C4: `kubectl explain` has something to say about each field that people set."""
    for path, schema in schemas(root["properties"]["spec"], "spec"):
        assert path.endswith("[]") or schema.get("description"), path


def test_what_is_required(root: Any, spec: Any) -> None:
    """C4: an older object without a spec can still be relieved of its finalizers, and a new one cannot be made."""
    assert spec["required"] == ["perNodeHostBits"]
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
    assert "create another ClusterCIDR" in rule["message"]


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
