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
    "a Python object": (
        b"kind: !!python/object:os.system x\n",
        ":1: has the tag 'tag:yaml.org,2002:python/object:os.system', which is not known here",
    ),
    "deep JSON": (b'{"a":' * 100_000, "is nested more than 200 deep"),
    "deep YAML": (b"[" * 100_000, "is nested more than 200 deep"),
    "deep lists": (b"- " * 100_000 + b"x", "is nested more than 200 deep"),
    "deep mappings": (b"\n".join(b" " * depth + b"a:" for depth in range(1000)), ":201: is nested more than 200 deep"),
    "a list within itself": (
        b"apiVersion: v1\nkind: Node\nmetadata: &a [*a]\n",
        ":3: the alias *a stands for nothing that was read before it",
    ),
    "an unhashable key": (b"{[a]: b}", ":1: has a key that is a list or a mapping"),
    "a list of itself": (b"&a\napiVersion: v1\nkind: List\nitems: [*a]\n", ":4: the alias *a stands for nothing"),
    "aliases without end": (
        b"a0: &a0 [x]\n"
        + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 9)),
        "its aliases stand for more than 100,000 values",
    ),
    "brackets in a comment": (b"# " + b"]" * 100_000 + b"\n" + b"[" * 100_000, ":2: is nested more than 200 deep"),
    "deep JSON with a fault": (
        b'{"apiVersion":"v1","kind":"Node","metadata":{"name":5},"x":' + b"[" * 600 + b"]" * 600 + b"}",
        "metadata.name: must be text",
    ),
    "a key given twice in JSON": (b'{"kind": "Node", "kind": "Node"}', "the key 'kind' is given twice"),
    "a list within a list": (
        b"apiVersion: v1\nkind: List\nitems: [{kind: List, items: []}]\n",
        ":3: kind: is a list within a list",
    ),
    "a number without end": (b"kind: " + b"1" * 5000, ":1: has a number of 5000 digits"),
    "a bad merge key": (b"<<: 1\n", ":1: the merge key << must lead to a mapping"),
    "a tag on a mapping": (b"!!set {a, b}\n", ":1: has the tag"),
    "no apiVersion": (b"kind: Node\nmetadata: {name: a}\n", "apiVersion: is missing"),
    "a Node of another version": (b"apiVersion: v2\nkind: Node\n", "that of a Node is v1"),
    "a terminal's escape": (b'apiVersion: v1\nkind: Node\nmetadata: {name: "a\\e[31mX\\nb"}\n', "\\x1b[31mX\\nb"),
    "a selector of many zeros": (
        POOL.replace(
            "10.0.0.0/22",
            "10.0.0.0/22, nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: ['"
            + "0" * 5000
            + "']}]}]}",
        ).encode(),
        "must be a whole number",
    ),
    "plain text": (b"hello", ":1: must be an object with apiVersion and kind, not text"),
    "a list": (b"- a\n", ":1: must be an object with apiVersion and kind, not a list"),
    "no kind": (b"metadata: {name: a}\n", "kind: is missing"),
    "a kind that is a list": (b"apiVersion: v1\nkind: [Node]\n", ":2: kind: must be text, not a list"),
    "items that are no list": (b"apiVersion: v1\nkind: List\nitems: {}\n", ":3: List: items: must be a list"),
    "an item that is no object": (b"apiVersion: v1\nkind: List\nitems:\n- a\n", ":4: must be an object"),
    "another apiVersion": (
        b"apiVersion: networking.k8s.io/v1alpha1\nkind: ClusterCIDR\n",
        "that of a ClusterCIDR is networking.x-k8s.io/v1",
    ),
    "another kind": (b"apiVersion: networking.x-k8s.io/v1\nkind: ClusterCidr\n", "did you mean ClusterCIDR?"),
    "a kind of the group": (b"apiVersion: networking.x-k8s.io/v1\nkind: Else\n", "the kinds known here: ClusterCIDR,"),
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
        (["plan", "-f", ""], "'': there is no such file or directory"),
        (["plan", "-f", "a" * 300], "cannot be read: File name too long"),
        (["plan", "-f", "-", "--add-nodes", "1000001"], "--add-nodes"),
        (["plan", "-f", "-", "--add-nodes", "1", "--labels", "a b=c"], "is no label key"),
        (["plan", "-f", "-", "--add-nodes", "1", "--labels", "a=%"], "is no label value"),
        (["plan", "-f", "-", "--add-nodes", "1", "--labels", "a=b,a=c"], "a is given twice"),
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


def test_fault_before_a_broken_document_has_its_line(cidrella: Cidrella) -> None:
    """What stands before text that cannot be parsed still has its line."""
    result = cidrella("validate", "-f", "-", stdin=f"{nodes(node('A'))}---\nkind: [\n")
    assert "<stdin>:4: Node A: metadata.name: " in result.err


def test_merge_keys_are_read(cidrella: Cidrella) -> None:
    """A merge key brings what is not written out beside it, as YAML has it."""
    text = POOL.replace("spec: {", "x: &defaults {perNodeHostBits: 8, ipv4: 10.9.0.0/16}\nspec: {<<: *defaults, ")
    result = cidrella("plan", "-f", "-", stdin=text.replace("x: &defaults", "status: {}\nmetadata2: &defaults"))
    assert "metadata2: is no known field" in result.err
    merged = POOL.replace("spec: {perNodeHostBits: 8, ", "spec: {<<: [{perNodeHostBits: 8}, {perNodeHostBits: 9}], ")
    assert "10.0.0.0/22   /24" in cidrella("plan", "-f", "-", stdin=merged).out


def test_words_mean_what_they_mean_to_kubectl(cidrella: Cidrella) -> None:
    """A time of day and a date are text; yes, on and n are truth values, and so no labels."""
    text = nodes("{metadata: {name: a, labels: {at: 2026-01-01, time: 12:30:45, hex: '0x1', eq: =}}}")
    assert "2026-01-01" in cidrella("explain", "a", "-f", "-", stdin=text).out
    for word in ("yes", "On", "n"):
        result = cidrella("validate", "-f", "-", stdin=nodes(f"{{metadata: {{name: a, labels: {{b: {word}}}}}}}"))
        assert "must be text, not the value" in result.err


def test_pod_cidr_is_checked_too(cidrella: Cidrella) -> None:
    """`validate` finds fault with the older field `podCIDR` as with `podCIDRs`."""
    result = cidrella("validate", "-f", "-", stdin=nodes("{metadata: {name: a}, spec: {podCIDR: rubbish}}"))
    assert "spec.podCIDR: 'rubbish' has no length" in result.err


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("cidrella crds > /dev/full", 1, "the output cannot be written: No space left on device"),
        ("cidrella crds >&-", 1, "standard output is closed"),
        ("cidrella plan -f - <&-", 2, "<stdin>: is closed: there is nothing to read"),
    ],
)
def test_streams_that_are_closed_or_full(command: str, code: int, message: str) -> None:
    """Standard input or output that is not there ends in one line, not in a traceback."""
    result = in_its_own_process(command)
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert "Traceback" not in result.err


def test_terminal_that_knows_only_ascii() -> None:
    """A terminal that cannot show blocks gets plain characters."""
    result = in_its_own_process("PYTHONIOENCODING=ascii cidrella map examples/larger-nodes.yaml")
    assert result.code == 0
    assert "  # 10.0.0.0 - 10.0.3.255  usual-nodes: usual-1" in result.out


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
