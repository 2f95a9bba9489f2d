"""Bad input gets a clear error: what is wrong, where, and what to do. Never a traceback."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cli.run import Cidrella, in_its_own_process
from tests.cli.test_plan import POOL, node, nodes

if TYPE_CHECKING:
    from pathlib import Path

GARBAGE = random.Random(1).randbytes(4096)

FILES: dict[str, tuple[bytes, str]] = {
    "binary garbage": (GARBAGE, "is not text"),
    "empty": (b"", "is empty: there is no object in it"),
    "a comment": (b"# nothing\n", "is empty"),
    "only separators": (b"---\n---\n", "is empty"),
    "UTF-16": ("kind: Node".encode("utf-16"), "is no UTF-8"),
    "a control character": (b"kind: \x01\n", "is no YAML"),
    "an open bracket": (b"kind: [Node\nb: }\n", ":2: while parsing"),
    "broken JSON": (b'{"kind": "Node",,}', ":1: while parsing"),
    "a key given twice": (b"kind: Node\nkind: Node\n", ":2: the key 'kind' is given twice"),
    "a Python object": (b"kind: !!python/object:os.system x\n", ":1: could not determine a constructor"),
    "deep JSON": (b'{"a":' * 100_000, "is nested more than 200 deep"),
    "deep YAML": (b"[" * 100_000, "is nested more than 200 deep"),
    "deep lists": (b"- " * 100_000 + b"x", "is nested more than 200 deep"),
    "deep mappings": (b"\n".join(b" " * depth + b"a:" for depth in range(1000)), ":201: is nested more than 200 deep"),
    "a list within itself": (
        b"apiVersion: v1\nkind: Node\nmetadata: &a [*a]\n",
        ":3: Node without a name: metadata: must be",
    ),
    "an unhashable key": (b"{[a]: b}", "unhashable"),
    "plain text": (b"hello", ":1: must be an object with apiVersion and kind, not text"),
    "a list": (b"- a\n", ":1: must be an object with apiVersion and kind, not a list"),
    "no kind": (b"metadata: {name: a}\n", "kind: is missing"),
    "a kind that is a list": (b"apiVersion: v1\nkind: [Node]\n", ":2: kind: is missing"),
    "items that are no list": (b"apiVersion: v1\nkind: List\nitems: {}\n", ":3: List: items: must be a list"),
    "an item that is no object": (b"apiVersion: v1\nkind: List\nitems:\n- a\n", ":4: must be an object"),
    "another apiVersion": (
        b"apiVersion: networking.k8s.io/v1alpha1\nkind: ClusterCIDR\n",
        "ours is networking.x-k8s.io/v1",
    ),
    "another kind": (b"apiVersion: networking.x-k8s.io/v1\nkind: ClusterCidr\n", "did you mean ClusterCIDR?"),
    "a kind of the group": (b"apiVersion: networking.x-k8s.io/v1\nkind: Else\n", "the kind known here is"),
    "host bits set": (POOL.replace("10.0.0.0/22", "10.0.1.0/22").encode(), "has host bits set"),
    "a mask longer than the range": (POOL.replace("Bits: 8", "Bits: 11").encode(), "must be at most 10"),
    "a wrong type": (POOL.replace("perNodeHostBits: 8", "perNodeHostBits: '8'").encode(), "remove the quotes"),
    "an unknown field": (POOL.replace("ipv4", "ipV4").encode(), "did you mean ipv4?"),
    "a name given twice": (f"{POOL}---\n{POOL}".encode(), "names must differ"),
    "a node named twice": (nodes(node("a"), node("a")).encode(), ":5: Node a: metadata.name: is taken"),
    "a label that is a number": (
        b"apiVersion: v1\nkind: Node\nmetadata: {name: a, labels: {b: 1}}\n",
        "put it in quotes",
    ),
}


@pytest.mark.parametrize("command", ["plan", "validate", "map"])
@pytest.mark.parametrize("name", FILES)
def test_file_that_is_wrong(cidrella: Cidrella, tmp_path: Path, command: str, name: str) -> None:
    """Whatever a file holds, the command says where and what, and exits with 2 (pitfall 13)."""
    data, message = FILES[name]
    path = tmp_path / "input.yaml"
    path.write_bytes(data)
    result = cidrella(command, "-f", path)
    assert result.code == 2
    assert result.out == ""
    assert f"{path}" in result.err
    assert message in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan"], "say where the objects are"),
        (["plan", "-f", "no-such-file.yaml"], "no-such-file.yaml: there is no such file or directory"),
        (["plan", "-f", "{empty}"], "has no file that ends in .yaml, .yml, .json; -R looks"),
        (["plan", "-R", "-f", "{empty}"], "has no file that ends in"),
        (["plan", "-f", "-", "--service-cluster-ip-range", "10.0.0.0"], "'10.0.0.0' has no length"),
        (["plan", "-f", "-", "--service-cluster-ip-range", "10.0.0.0/8,10.1.0.0/16"], "one of each family"),
        (["plan", "-f", "-", "--add-nodes", "-1"], "--add-nodes"),
        (["plan", "-f", "-", "--add-nodes", "1", "--labels", "a"], "write KEY=VALUE"),
        (["plan", "-f", "-", "--labels", "a=b"], "--add-nodes"),
        (["plan", "-f", "-", "-o", "xml"], "-o"),
        (["plan", "-f", "-", "--no-such-flag"], "--no-such-flag"),
        (["explain", "-f", "-"], "Missing argument 'NODE'"),
        (["explain", "nod-a", "-f", "-"], "there is no Node nod-a in the input; did you mean node-a?"),
        (["explain", "x", "-f", "-"], "there is no Node x in the input (1 others)"),
        (["map", "-f", "-", "--svg", "{empty}/no/such/directory.svg"], "cannot be written"),
        (["no-such-command"], "no-such-command"),
    ],
)
def test_command_line_that_is_wrong(cidrella: Cidrella, tmp_path: Path, arguments: list[str], message: str) -> None:
    """A command line that is wrong is told what to do instead, with exit code 2."""
    result = cidrella(
        *(each.replace("{empty}", str(tmp_path)) for each in arguments), stdin=f"{POOL}---\n{nodes(node('node-a'))}"
    )
    assert result.code == 2
    said = " ".join(result.err.replace("│", " ").split())
    assert message in said
    assert "Traceback" not in said


def test_file_that_may_not_be_read(cidrella: Cidrella, tmp_path: Path) -> None:
    """What the system says about a file is passed on in one line."""
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    result = cidrella("plan", "-f", tmp_path)
    assert result.code == 2
    assert "loop.yaml: cannot be read: " in result.err


def test_every_problem_is_named(cidrella: Cidrella, tmp_path: Path) -> None:
    """C4: `validate` names every problem with file, line, object and field, one behind another too."""
    path = tmp_path / "input.yaml"
    path.write_text(
        """apiVersion: networking.x-k8s.io/v1
kind: ClusterCIDR
metadata: {name: a}
spec:
  perNodeHostBits: "8"
  ipv4: 10.0.0.1/16
---
apiVersion: networking.x-k8s.io/v1
kind: ClusterCIDR
metadata: {name: b}
spec:
  perNodeHostBits: 3
  ipv6: fd00::/130
  nodeSelector:
    nodeSelectorTerms:
    - matchExpressions:
      - {key: a, operator: Near}
---
apiVersion: v1
kind: Node
metadata: {name: c}
spec:
  podCIDRs:
  - nonsense
"""
    )
    result = cidrella("validate", "-f", path)
    assert result.code == 2
    places = [line.removeprefix(f"{path}:").split(": ")[:3] for line in result.err.splitlines()[:-1]]
    assert places == [
        ["5", "ClusterCIDR a", "spec.perNodeHostBits"],
        ["6", "ClusterCIDR a", "spec.ipv4"],
        ["12", "ClusterCIDR b", "spec.perNodeHostBits"],
        ["13", "ClusterCIDR b", "spec.ipv6"],
        ["17", "ClusterCIDR b", "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].operator"],
        ["24", "Node c", "spec.podCIDRs[0]"],
    ]
    assert result.err.endswith("6 problems; nothing was done\n")


def test_sound_input_is_counted(cidrella: Cidrella) -> None:
    """`validate` says what it found in input without a problem, and what it passed over."""
    text = f"{POOL}---\n{nodes(node('a'), node('b'))}---\napiVersion: v1\nkind: Secret\n"
    result = cidrella("validate", "-f", "-", stdin=text)
    assert (result.code, result.err) == (0, "")
    assert result.out == "1 ClusterCIDR, 2 Nodes: no problem (passed over: 1 Secret)\n"


def test_many_problems_are_counted(cidrella: Cidrella) -> None:
    """A flood of problems is cut, and the rest counted."""
    text = nodes(*(node(f"Node-{number}") for number in range(250)))
    result = cidrella("validate", "-f", "-", stdin=text)
    assert result.code == 2
    assert result.err.splitlines()[-2:] == ["and 50 more", "250 problems; nothing was done"]


def test_pipe_closed_early() -> None:
    """A reader that has seen enough is no error to complain about."""
    result = in_its_own_process(
        "(echo 'apiVersion: v1'; echo 'kind: NodeList'; echo 'items:'; "
        'for i in $(seq 20000); do echo "- {metadata: {name: n$i}}"; done) | cidrella plan -f - | head -1'
    )
    assert result.out.startswith("NODE ")
    assert "Traceback" not in result.err
    assert "BrokenPipe" not in result.err


def test_hundred_thousand_nodes(tmp_path: Path) -> None:
    """A9: 100,000 nodes are planned, those for whom there is room served and the others told why not."""
    pool = yaml.safe_load(POOL.replace("10.0.0.0/22", "10.0.0.0/8"))
    named = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}} for number in range(100_000)]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [pool, *named]}))
    result = in_its_own_process(f"cidrella plan -f {path} | tail -1")
    assert (result.code, result.err) == (3, "")
    assert result.out == "100000 nodes: 65536 Assigned, 34464 Waiting\n"
