"""What holds for every built-in kind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.apiserver.kinds import KINDS, kind, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.apiserver.resource import Resource

Json = dict[str, Any]

EVERY = pytest.mark.parametrize("resource", KINDS.values(), ids=[f"{group or 'core'}-{name}" for group, name in KINDS])
COLUMNS = {
    ("", "nodes"): [
        "Status", "Roles", "Age", "Version", "Internal-IP*", "External-IP*", "OS-Image*", "Kernel-Version*",
        "Container-Runtime*",
    ],
    ("", "namespaces"): ["Status", "Age"],
    ("", "services"): ["Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector*"],
    ("", "pods"): [
        "Ready", "Status", "Restarts", "Age", "IP*", "Node*", "Nominated Node*", "Readiness Gates*",
    ],
    ("", "events"): [
        "Last Seen", "Type", "Reason", "Object", "Subobject*", "Source*", "Message", "First Seen*", "Count*", "Name*",
    ],
    ("coordination.k8s.io", "leases"): ["Holder", "Age"],
    ("networking.k8s.io", "servicecidrs"): ["CIDRs", "Age"],
}  # fmt: skip
COLUMNS["events.k8s.io", "events"] = COLUMNS["", "events"]


def schemas(schema: Json) -> Iterator[Json]:
    """A schema and all that are in it, but metadata, which is not read by the kind."""
    yield schema
    for name, each in schema.get("properties", {}).items():
        if name != "metadata":
            yield from schemas(each)
    for each in (schema.get("items"), schema.get("additionalProperties")):
        if each:
            yield from schemas(each)


def test_kinds() -> None:
    """There are those that Cidrella uses, and an empty list of Pods."""
    assert KINDS.keys() == COLUMNS.keys()


@EVERY
def test_columns(resource: Resource) -> None:
    """`kubectl get` has the columns of a real server, in its order; those marked * are for -o wide."""
    found = [each.name + "*" * each.priority for each in resource.columns]
    assert found == COLUMNS[resource.group, resource.plural]
    assert all(each.type == "string" and each.description for each in resource.columns)


@EVERY
def test_bookmarks(resource: Resource) -> None:
    """A bookmark, which has nothing but a version, can be shown as well, and is not changed by that."""
    bookmark = {"metadata": {"resourceVersion": "7"}}
    assert len(row(resource, bookmark)) == len(resource.columns)
    assert bookmark == {"metadata": {"resourceVersion": "7"}}


@EVERY
def test_reading_is_done_once(resource: Resource) -> None:
    """What was read is in its form: reading it again changes nothing, and nothing is left for the schema to do."""
    obj: Json = {"metadata": {"name": "x"}}
    assert resource.strategy.read(obj) == ""
    once = json.dumps(obj, sort_keys=True)
    assert resource.strategy.read(obj) == ""
    resource.schema.default(obj)
    assert resource.schema.prune(obj) == []
    assert json.dumps(obj, sort_keys=True) == once


@EVERY
def test_schemas_say_what_is_what(resource: Resource) -> None:
    """Every field is described, for `kubectl explain`; no rule is in a schema, for rules have their own words."""
    for schema in schemas(resource.schema.definition):
        assert not schema.keys() & {"enum", "required", "pattern", "minimum", "maximum", "minLength", "maxLength"}
        for name, each in schema.get("properties", {}).items():
            assert each.get("description") or resource.plural == "pods", name


@pytest.mark.parametrize(
    ("plural", "group", "key", "strategy"),
    [
        ("nodes", "", "spec.podCIDRs", ("merge", None)),
        ("nodes", "", "spec.taints", (None, None)),
        ("nodes", "", "status.conditions", ("merge", "type")),
        ("nodes", "", "status.addresses", ("merge", "type")),
        ("services", "", "spec.ports", ("merge", "port")),
        ("services", "", "spec.clusterIPs", (None, None)),
        ("servicecidrs", "networking.k8s.io", "status.conditions", ("merge", "type")),
        ("namespaces", "", "metadata.finalizers", ("merge", None)),
        ("namespaces", "", "metadata.ownerReferences", ("merge", "uid")),
    ],
)
def test_patches(plural: str, group: str, key: str, strategy: tuple[str | None, str | None]) -> None:
    """Strategic merge patches find how lists are merged, as for a real server."""
    schema = kind(plural, group).schema.definition
    for name in key.split("."):
        schema = schema["properties"][name]
    assert (schema.get("x-kubernetes-patch-strategy"), schema.get("x-kubernetes-patch-merge-key")) == strategy


def test_pods() -> None:
    """Pods can be looked for by what a real server knows of them, and not be made."""
    pods = kind("pods")
    assert pods.verbs == ("get", "list", "watch")
    assert pods.fields["spec.nodeName"]({}) == ""
