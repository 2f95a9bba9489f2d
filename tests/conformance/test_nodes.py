"""Nodes: a block is given once. What the controller's safety stands on, and what kubelets write."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.bodies import NODES, made, node
from tests.conformance.talking import MERGE, STRATEGIC

if TYPE_CHECKING:
    from tests.conformance.talking import Talk

    Json = dict[str, Any]

ONCE = 'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'
BLOCK: Json = {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}
BOTH: Json = {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd00:1::/64"]}


@pytest.mark.parametrize("form", [MERGE, STRATEGIC])
@pytest.mark.parametrize("spec", [BLOCK, BOTH], ids=["one", "both"])
def test_a_block_is_given(talk: Talk, name: str, form: str, spec: Json) -> None:
    """By a patch, as the controller does; the same again is no change."""
    made(talk, NODES, node(name))
    given = talk.patch(f"{NODES}/{name}", {"spec": spec}, form).granted()
    assert {key: given["spec"][key] for key in spec} == spec
    assert talk.patch(f"{NODES}/{name}", {"spec": spec}, form).granted() == given


@pytest.mark.parametrize(
    "spec",
    [
        {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]},
        {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd00:1::/64"]},
        {"podCIDR": "10.1.0.0/25", "podCIDRs": ["10.1.0.0/25"]},
        {"podCIDR": None, "podCIDRs": None},
        {"podCIDR": "", "podCIDRs": []},
        {"podCIDR": "fd00:1::/64", "podCIDRs": ["fd00:1::/64"]},
    ],
    ids=["another", "more", "smaller", "none", "empty", "family"],
)
def test_never_another(talk: Talk, name: str, spec: Json) -> None:
    """Once given, a node's block can be neither changed nor added to nor taken away, whoever asks."""
    made(talk, NODES, node(name, **BLOCK))
    reply = talk.patch(f"{NODES}/{name}", {"spec": spec}).refused(422, "Invalid", f'Node "{name}" is invalid: {ONCE}')
    assert reply.causes == [("FieldValueForbidden", "spec.podCIDRs")]
    assert talk.get(f"{NODES}/{name}").granted()["spec"]["podCIDRs"] == BLOCK["podCIDRs"]


def test_not_by_replacing_either(talk: Talk, name: str) -> None:
    """PUT with another block, or with none, is refused alike."""
    before = made(talk, NODES, node(name, **BLOCK))
    for spec in ({}, {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}):
        body = deepcopy(before)
        body["spec"] = spec
        talk.replace(f"{NODES}/{name}", body).refused(422, "Invalid", ONCE)


def test_a_strategic_patch_adds(talk: Talk, name: str) -> None:
    """Lists are joined by it: another block would be a second one, which is refused for what it then is."""
    made(talk, NODES, node(name, **BLOCK))
    patch = {"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}}
    talk.patch(f"{NODES}/{name}", patch, STRATEGIC).refused(422, "Invalid", "spec.podCIDRs")
    assert talk.get(f"{NODES}/{name}").granted()["spec"]["podCIDRs"] == BLOCK["podCIDRs"]


@pytest.mark.parametrize(
    ("spec", "given"),
    [
        ({"podCIDR": "10.1.0.0/24"}, "10.1.0.0/24"),
        ({"podCIDRs": ["10.1.0.0/24"]}, "10.1.0.0/24"),
        ({"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.2.0.0/24"]}, "10.1.0.0/24"),
    ],
    ids=["first", "list", "both"],
)
def test_both_fields_say_the_same(talk: Talk, name: str, spec: Json, given: str) -> None:
    """The older field is the first of the newer, whichever of them is sent."""
    found = made(talk, NODES, node(name, **spec))["spec"]
    assert (found["podCIDR"], found["podCIDRs"]) == (given, [given])


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        (["nonsense"], "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
        (["10.1.0.0"], "must be a valid CIDR value"),
        (["10.1.0.1/24"], "must not have bits set beyond the prefix length"),
        (["10.1.0.0/24", "10.2.0.0/24"], "may specify no more than one CIDR for each IP family"),
        (["fd00::/64", "fd01::/64"], "may specify no more than one CIDR for each IP family"),
        (["10.1.0.0/24", "fd00::/64", "10.2.0.0/24"], "may specify no more than one CIDR for each IP family"),
        (["010.1.0.0/24"], "must not have leading 0s in IP or prefix length"),
    ],
    ids=["word", "address", "bits", "twice", "twice-6", "three", "zeros"],
)
def test_blocks_that_are_none(talk: Talk, name: str, blocks: list[str], said: str) -> None:
    """One range a family, and a range is one as it is written."""
    spec: Json = {"podCIDR": blocks[0], "podCIDRs": blocks}
    talk.create(NODES, node(name, **spec)).refused(422, "Invalid", "spec.podCIDRs", said)
    made(talk, NODES, node(name))
    talk.patch(f"{NODES}/{name}", {"spec": spec}).refused(422, "Invalid", "spec.podCIDRs", said)


def test_new_nodes_wait(talk: Talk, name: str) -> None:
    """A new node takes no Pods until somebody says that it is ready; what it is made with is added to."""
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert made(talk, NODES, node(name))["spec"]["taints"] == [taint]
    mine = {"key": "a", "effect": "NoExecute"}
    assert made(talk, NODES, node(f"{name}-2", taints=[mine]))["spec"]["taints"] == [mine, taint]


def test_the_provider_is_told_once(talk: Talk, name: str) -> None:
    """A node does not move to another machine."""
    made(talk, NODES, node(name))
    path = f"{NODES}/{name}"
    talk.patch(path, {"spec": {"providerID": "a:///1"}}).granted()
    reply = talk.patch(path, {"spec": {"providerID": "a:///2"}})
    reply.refused(422, "Invalid", 'spec.providerID: Forbidden: node updates may not change providerID except from ""')


@pytest.mark.parametrize(
    ("taints", "said"),
    [
        ([{"key": "a", "effect": "Perhaps"}], 'effect: Unsupported value: "Perhaps"'),
        ([{"key": "a"}], "effect"),
        ([{"effect": "NoSchedule"}], "key"),
        ([{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule", "value": "x"}], "must be unique"),
    ],
    ids=["effect", "no-effect", "no-key", "twice"],
)
def test_taints_that_are_none(talk: Talk, name: str, taints: list[Json], said: str) -> None:
    """What the scheduler reads is as it expects it."""
    made(talk, NODES, node(name))
    talk.patch(f"{NODES}/{name}", {"spec": {"taints": taints}}).refused(422, "Invalid", said)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"spec": {"unschedulable": "yes"}}, "NodeSpec.spec.unschedulable of type bool"),
        ({"spec": {"podCIDRs": "10.1.0.0/24"}}, "NodeSpec.spec.podCIDRs of type []string"),
        ({"metadata": {"labels": {"a": 5}}}, "ObjectMeta.metadata.labels of type string"),
        ({"spec": []}, "Node.spec of type v1.NodeSpec"),
    ],
    ids=["bool", "list", "label", "spec"],
)
def test_wrong_types(talk: Talk, name: str, body: Json, said: str) -> None:
    """What cannot be read as a Node is told so, and which field it was."""
    sent = node(name) | {key: value for key, value in body.items() if key != "metadata"}
    sent["metadata"] |= body.get("metadata", {})
    reply = talk.create(NODES, sent)
    reply.refused(400, "BadRequest", 'Node in version "v1" cannot be handled as a Node: json: cannot unmarshal', said)


def test_what_kubelets_write(talk: Talk, name: str) -> None:
    """Quantities in their shortest form, and what can be given away is what there is unless it says otherwise."""
    made(talk, NODES, node(name))
    status = {"capacity": {"cpu": "1000m", "memory": "1024Ki", "pods": "110"}}
    told = talk.patch(f"{NODES}/{name}/status", {"status": status}, STRATEGIC).granted()["status"]
    assert told["capacity"] == {"cpu": "1", "memory": "1Mi", "pods": "110"}
    assert told["allocatable"] == told["capacity"]
