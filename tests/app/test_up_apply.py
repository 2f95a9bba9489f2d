"""Objects of files, brought into the embedded API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cidrella.app.intake import take_inventory
from cidrella.app.up_apply import apply_manifests
from cidrella.model.objects import NODES_PATH, POOLS_PATH
from tests.app.embedded import embedded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cidrella.app.intake import Manifest
    from tests.app.embedded import EmbeddedApi

POOL = """\
apiVersion: networking.x-k8s.io/v1
kind: ClusterCIDR
metadata: {name: POOL, uid: not-mine, resourceVersion: "7", creationTimestamp: "2020-01-01T00:00:00Z"}
spec: {perNodeHostBits: 8, ipv4: 10.10.0.0/22}
"""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedApi]:
    """One for all: what each test makes has another name."""
    with embedded(tmp_path_factory.mktemp("api")) as running:
        yield running


class Files:
    """Files that are applied."""

    def __init__(self, api: EmbeddedApi, directory: Path) -> None:
        self.api = api
        self.path = directory / "objects.yaml"
        self.progress: list[tuple[int, int]] = []

    def apply(self, text: str) -> list[str]:
        """What is refused of these objects."""
        self.path.write_text(text)
        found: list[Manifest] = []
        take_inventory([str(self.path)], each_object=found.append).require_sound()
        told = lambda done, total: self.progress.append((done, total))  # noqa: E731
        faults = self.api.do(lambda client: apply_manifests(client, found, told))
        return [str(each).removeprefix(f"{self.path}:") for each in faults]

    def pool(self, name: str) -> dict[str, Any]:
        """The pool of this name."""
        return next(each for each in self.api.items(POOLS_PATH) if each["metadata"]["name"] == name)


@pytest.fixture
def files(api: EmbeddedApi, tmp_path: Path) -> Files:
    """Files of this test's own."""
    return Files(api, tmp_path)


def test_created_then_changed(files: Files) -> None:
    """What is not there is created, whatever some other cluster noted in it; what is there is changed."""
    text = POOL.replace("POOL", "created")
    assert files.apply(text) == []
    made = files.pool("created")
    assert made["metadata"]["uid"] != "not-mine"
    assert files.apply(text.replace("{name: created", "{name: created, labels: {colour: red}")) == []
    assert files.pool("created")["metadata"]["labels"] == {"colour": "red"}
    assert files.pool("created")["metadata"]["uid"] == made["metadata"]["uid"]
    assert files.progress == [(1, 1), (1, 1)]


def test_what_is_refused(files: Files) -> None:
    """Everything that the API refuses comes back, with the line and in the API's words; the rest is there."""
    text = POOL.replace("POOL", "fixed")
    assert files.apply(text) == []
    other = "---\napiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: nowhere}\n"
    unknown = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b}\n"
    unnamed = "---\napiVersion: v1\nkind: Namespace\nmetadata: {}\n"
    nokind = "---\napiVersion: v1\nkind: Nothing\nmetadata: {name: b}\n"
    refused = files.apply(
        text.replace("/22", "/21") + other + unknown + unnamed + nokind + "---\n" + POOL.replace("POOL", "last")
    )
    assert refused[0] == "16: Namespace without a name: metadata.name: is missing"
    assert refused[1].startswith(
        '1: ClusterCIDR fixed: the API refuses it: ClusterCIDR.networking.x-k8s.io "fixed" is invalid'
    )
    assert refused[2:] == [
        '6: Service a: the API refuses it: namespaces "nowhere" not found',
        "10: Deployment b: apiVersion: apps/v1 is not served by the embedded API",
        "19: Nothing b: kind: Nothing of v1 is not served by the embedded API",
    ]
    assert files.pool("last")


def test_the_order(files: Files) -> None:
    """Namespaces come before what is in them, pools before nodes, nodes with their blocks before those without."""
    text = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Event, metadata: {name: e, namespace: order}, involvedObject: {namespace: order}}
- {apiVersion: v1, kind: Node, metadata: {name: order-1}}
- {apiVersion: v1, kind: Node, metadata: {name: order-2}, spec: {podCIDRs: [10.1.0.0/24]}}
- {apiVersion: v1, kind: Node, metadata: {name: order-3}}
- {apiVersion: v1, kind: Namespace, metadata: {name: order}}
"""
    assert files.apply(text) == []
    nodes = [each for each in files.api.items(NODES_PATH) if each["metadata"]["name"].startswith("order-")]
    nodes.sort(key=lambda each: int(each["metadata"]["resourceVersion"]))
    assert [each["metadata"]["name"] for each in nodes] == ["order-2", "order-1", "order-3"]
    assert nodes[0]["spec"]["podCIDRs"] == ["10.1.0.0/24"]
    assert files.progress[-1] == (5, 5)


def test_lists_whose_items_say_no_kind(files: Files) -> None:
    """As kubectl prints them: the list says it for them."""
    assert files.apply("apiVersion: v1\nkind: NodeList\nitems: [{metadata: {name: listed}}]\n") == []
    assert "listed" in [each["metadata"]["name"] for each in files.api.items(NODES_PATH)]
