"""The forms in which objects come: as they are, as rows of a table, as metadata alone, as YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.conformance.bodies import (
    CONFIGS,
    CRDS,
    NAMESPACES,
    NODES,
    POOLS,
    RANGES,
    SERVICE_CIDRS,
    core_events,
    events,
    lease,
    leases,
    made,
    node,
    pods,
    pool,
    service,
    services,
)
from tests.conformance.talking import PARTIAL, PARTIAL_LIST, TABLE

if TYPE_CHECKING:
    from tests.conformance.talking import Talk

    Json = dict[str, Any]

COLUMNS = {
    NODES: "Name Status Roles Age Version Internal-IP* External-IP* OS-Image* Kernel-Version* Container-Runtime*",
    NAMESPACES: "Name Status Age",
    services("default"): "Name Type Cluster-IP External-IP Port(s) Age Selector*",
    leases("default"): "Name Holder Age",
    core_events("default"): "Last_Seen Type Reason Object Subobject* Source* Message First_Seen* Count* Name*",
    events("default"): "Last_Seen Type Reason Object Subobject* Source* Message First_Seen* Count* Name*",
    pods("default"): "Name Ready Status Restarts Age IP* Node* Nominated_Node* Readiness_Gates*",
    SERVICE_CIDRS: "Name CIDRs Age",
    CRDS: "Name Created_At",
    POOLS: "Name PerNodeHostBits IPv4 IPv6 Used Free Active Age",
    CONFIGS: "Name CIDR PerNodeMaskSize Used Free Active Age",
    RANGES: "Name Range Age",
}


def heads(table: Json) -> str:
    """The columns of a table: those only for `-o wide` with a star."""
    columns = table["columnDefinitions"]
    return " ".join(each["name"].replace(" ", "_") + ("*" if each["priority"] else "") for each in columns)


@pytest.mark.parametrize("path", COLUMNS)
def test_columns_of_each_kind(talk: Talk, path: str) -> None:
    """What `kubectl get` shows, and what more with `-o wide`."""
    assert heads(talk("GET", path, accept=TABLE).granted()) == COLUMNS[path]


@pytest.mark.parametrize("path", COLUMNS)
def test_tables_are_complete(talk: Talk, path: str) -> None:
    """Each row has a cell for each column, and the metadata that kubectl reads names, ages and labels from."""
    table = talk("GET", path, accept=TABLE).granted()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"]["resourceVersion"]
    for row in table["rows"]:
        assert len(row["cells"]) == len(table["columnDefinitions"])
        assert row["object"]["kind"] == "PartialObjectMetadata"
        assert row["object"]["apiVersion"] == "meta.k8s.io/v1"
        assert row["object"]["metadata"]["name"] in row["cells"]


def test_rows_of_nodes(talk: Talk, name: str) -> None:
    """What of a Node stands where."""
    body = node(name, {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "x"}, unschedulable=True)
    body["status"] = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [
            {"type": "InternalIP", "address": "192.0.2.1"},
            {"type": "ExternalIP", "address": "192.0.2.2"},
        ],
        "nodeInfo": {
            "kubeletVersion": "v1.2.3",
            "osImage": "an image",
            "kernelVersion": "6.1",
            "containerRuntimeVersion": "containerd://2",
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
            "kubeProxyVersion": "",
            "operatingSystem": "",
            "architecture": "",
        },
    }
    made(talk, NODES, body)
    (row,) = talk("GET", f"{NODES}/{name}", accept=TABLE).granted()["rows"]
    cells = row["cells"]
    del cells[3]
    assert cells == [
        name,
        "Ready,SchedulingDisabled",
        "worker,x",
        "v1.2.3",
        "192.0.2.1",
        "192.0.2.2",
        "an image",
        "6.1",
        "containerd://2",
    ]


def test_rows_of_bare_nodes(talk: Talk, name: str) -> None:
    """A Node about which nothing is known yet."""
    made(talk, NODES, node(name))
    (row,) = talk("GET", f"{NODES}/{name}", accept=TABLE).granted()["rows"]
    cells = row["cells"]
    assert cells[:3] == [name, "Unknown", "<none>"]
    assert cells[3].endswith("s")
    assert cells[4:] == ["", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]


def test_rows_of_pools(talk: Talk, name: str) -> None:
    """What the columns of a CRD say; an age is a time here, which kubectl turns into an age."""
    body = made(talk, POOLS, pool(name))
    table = talk("GET", f"{POOLS}/{name}", accept=TABLE).granted()
    assert [each["type"] for each in table["columnDefinitions"]] == [
        "string",
        "integer",
        "string",
        "string",
        "integer",
        "integer",
        "string",
        "date",
    ]
    (row,) = table["rows"]
    assert row["cells"][:-1] == [name, 8, "10.0.0.0/16", None, None, None, None]
    assert row["cells"][-1].endswith("s"), body["metadata"]["creationTimestamp"]
    condition = {"type": "Active", "status": "True", "reason": "R", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    status = {"nodes": 3, "free": 253, "conditions": [condition]}
    talk.patch(f"{POOLS}/{name}/status", {"status": status}).granted()
    (row,) = talk("GET", f"{POOLS}/{name}", accept=TABLE).granted()["rows"]
    assert row["cells"][:-1] == [name, 8, "10.0.0.0/16", None, 3, 253, "True"]


@pytest.mark.parametrize(
    ("spec", "cells"),
    [
        ({"clusterIP": "None"}, ["ClusterIP", "None", "<none>", "80/TCP", "<none>"]),
        (
            {"clusterIP": "None", "selector": {"a": "b", "c": "d"}, "ports": [{"port": 53, "protocol": "UDP"}]},
            ["ClusterIP", "None", "<none>", "53/UDP", "a=b,c=d"],
        ),
        (
            {"clusterIP": "None", "externalIPs": ["192.0.2.1", "192.0.2.2"]},
            ["ClusterIP", "None", "192.0.2.1,192.0.2.2", "80/TCP", "<none>"],
        ),
        (
            {"type": "ExternalName", "externalName": "example.com", "ports": None},
            ["ExternalName", "<none>", "example.com", "<none>", "<none>"],
        ),
    ],
    ids=["headless", "selector", "external", "name"],
)
def test_rows_of_services(talk: Talk, name: str, namespace: str, spec: Json, cells: list[str]) -> None:
    """What of a Service stands where."""
    made(talk, services(namespace), service(name, **spec))
    (row,) = talk("GET", f"{services(namespace)}/{name}", accept=TABLE).granted()["rows"]
    assert [*row["cells"][1:5], row["cells"][6]] == cells


def test_rows_of_leases(talk: Talk, name: str, namespace: str) -> None:
    """Who holds it."""
    made(talk, leases(namespace), lease(name, holderIdentity="me"))
    (row,) = talk("GET", f"{leases(namespace)}/{name}", accept=TABLE).granted()["rows"]
    assert row["cells"][:2] == [name, "me"]


@pytest.mark.parametrize(
    ("include", "kind"), [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "Node"), ("", "")]
)
def test_what_comes_with_a_row(talk: Talk, name: str, include: str, kind: str | None) -> None:
    """`includeObject`: nothing, the metadata (unless said otherwise), or the whole object, as `--show-kind` needs."""
    made(talk, NODES, node(name))
    query = {"includeObject": include} if include else {}
    (row,) = talk("GET", f"{NODES}/{name}", accept=TABLE, **query).granted()["rows"]
    assert row["object"] is None if kind is None else row["object"]["kind"] == (kind or "PartialObjectMetadata")
    if kind == "Node":
        assert "spec" in row["object"]


def test_tables_in_parts(talk: Talk, name: str, namespace: str) -> None:
    """Limit and selectors hold for tables as well."""
    for number in range(3):
        made(talk, leases(namespace), lease(f"{name}-{number}"))
    first = talk("GET", leases(namespace), accept=TABLE, limit="2").granted()
    assert first["metadata"]["remainingItemCount"] == 1
    second = talk("GET", leases(namespace), accept=TABLE, **{"continue": first["metadata"]["continue"]}).granted()
    assert [row["cells"][0] for row in (*first["rows"], *second["rows"])] == [f"{name}-{n}" for n in range(3)]


@pytest.mark.parametrize("path", [NODES, POOLS])
def test_metadata_alone(talk: Talk, name: str, path: str) -> None:
    """Who needs no more asks for no more: garbage collectors do, over every kind."""
    body = made(talk, path, node(name) if path == NODES else pool(name))
    found = talk("GET", f"{path}/{name}", accept=PARTIAL).granted()
    expected = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": body["metadata"]}
    assert found == expected
    listed = talk("GET", path, accept=PARTIAL_LIST, fieldSelector=f"metadata.name={name}").granted()
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert listed["items"] == [expected]


def test_forms_that_do_not_fit(talk: Talk, name: str) -> None:
    """One object is no list, and a list no object."""
    made(talk, NODES, node(name))
    talk("GET", NODES, accept=PARTIAL).refused(406, "NotAcceptable", "you requested PartialObjectMetadata, but")
    talk("GET", f"{NODES}/{name}", accept=PARTIAL_LIST).refused(406, "NotAcceptable", "is not a list")
    talk("GET", f"{NODES}/{name}", accept="text/html").refused(406, "NotAcceptable", "application/json")


def test_the_first_that_fits(talk: Talk, name: str) -> None:
    """A client lists the forms that it knows, as kubectl does: the server takes the first that it knows as well."""
    made(talk, NODES, node(name))
    table = f"application/json;as=Table;v=v9;g=meta.k8s.io,{TABLE},application/json"
    assert talk("GET", f"{NODES}/{name}", accept=table).granted()["kind"] == "Table"
    for anything in ("*/*", ""):
        assert talk("GET", f"{NODES}/{name}", accept=anything).granted()["kind"] == "Node"


def test_yaml(talk: Talk, name: str) -> None:
    """The same, for people."""
    body = made(talk, NODES, node(name))
    reply = talk("GET", f"{NODES}/{name}", accept="application/yaml")
    assert reply.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(reply.text) == body


def test_errors_in_other_forms(talk: Talk, name: str) -> None:
    """What a table was asked for and is not there: a Status, as always."""
    talk("GET", f"{NODES}/{name}", accept=f"{TABLE},application/json").refused(404, "NotFound", name)


def test_what_replies_say_of_themselves(talk: Talk) -> None:
    """Nobody may keep a reply; and it is JSON."""
    reply = talk.get(NODES)
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.headers["Cache-Control"] == "no-cache, private"
