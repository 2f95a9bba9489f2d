"""What people do with kubectl: the same commands on both servers, with the same output.

Commands are played in order, each scenario with objects of its own. What cannot be the same is made so before it is
compared: uids, versions, times and ages, the width of columns, and descriptions, which are in our own words.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.conformance.conftest import CRD_FILES
from tests.real.conftest import KEPT_LOGS
from tests.testenv.cluster import Cluster
from tests.testenv.embedded import Embedded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.testenv.api import Api

_SAME = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000"), "<time>"),
    (re.compile(r'(?i)("?resource ?version"?: *"?)\d+'), r"\1<version>"),
    (re.compile(r"(?<![\w.-])(\d+[dhms]){1,2}(?![\w.])"), "<age>"),
    (re.compile(r"/tmp/(LIVE|MERGED)-\d+"), r"\1"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000"), "<time>"),
    (re.compile(r"10\.96\.\d+\.\d+"), "<address>"),
    (re.compile(r"(?m)[ \t]+$"), ""),
    (re.compile(r"(?<=\S)[ \t]{2,}"), "  "),
)


def _unlogged(text: str) -> str:
    """Without what kubectl logs about itself: whether a watch that it gave up was a short one is chance."""
    return re.sub(r"^[IWE]\d{4} .*\n", "", text, flags=re.MULTILINE)


def normalised(text: str) -> str:
    """What is compared of an output."""
    for pattern, same in _SAME:
        text = pattern.sub(same, text)
    return text


@dataclass(frozen=True)
class Both:
    """The two servers, and files for both."""

    servers: tuple[Api, Api]
    directory: Path

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl on both; how it ended and what it said is the same. Returns what one of them said."""
        outputs = [self._run(each, arguments, stdin) for each in self.servers]
        real, embedded = (
            [each.returncode, normalised(each.stdout), normalised(_unlogged(each.stderr))] for each in outputs
        )
        assert embedded == real, " ".join(arguments)
        return outputs[1].stdout + outputs[1].stderr

    def play(self, *commands: str) -> None:
        """Run these, one after the other."""
        for each in commands:
            self(*each.split())

    def file(self, name: str, *objects: object) -> str:
        """The name of a file with these objects."""
        path = self.directory / name
        path.write_text(yaml.safe_dump_all(objects))
        return str(path)

    def start(self, *arguments: str) -> list[subprocess.Popen[str]]:
        """Begin what does not end by itself, on both."""
        return [
            subprocess.Popen(
                [str(each.kubectl_path), "--kubeconfig", str(each.kubeconfig), *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for each in self.servers
        ]

    @staticmethod
    def _run(server: Api, arguments: Sequence[str], stdin: str) -> subprocess.CompletedProcess[str]:
        command = [str(server.kubectl_path), "--kubeconfig", str(server.kubeconfig), *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=180, check=False)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Both servers, for these tests alone."""
    with Cluster.temporary(keep_logs_in=KEPT_LOGS) as real, Embedded.temporary(keep_logs_in=KEPT_LOGS) as embedded:
        for each in (real, embedded):
            each.admin.wait("/api/v1/namespaces", lambda found: "kube-system" in found)
            each.kubectl("apply", *CRD_FILES)
            each.kubectl("wait", "--for=condition=Established", "--timeout=120s", *CRD_FILES)
        yield Both((real, embedded), tmp_path_factory.mktemp("files"))


def node(name: str, **labels: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def pool(name: str, bits: int = 8, **spec: object) -> dict[str, object]:
    return {
        "apiVersion": "networking.x-k8s.io/v1",
        "kind": "ClusterCIDR",
        "metadata": {"name": name},
        "spec": {"perNodeHostBits": bits, "ipv4": "10.0.0.0/16", **spec},
    }


class TestNodes:
    """A built-in kind, from the beginning to the end."""

    def test_forms(self, both: Both) -> None:
        """get, in every form that people use."""
        both("create", "-f", both.file("forms.yaml", node("form-1", zone="a"), node("form-2", zone="b")))
        both.play(
            "get nodes -l zone",
            "get nodes -l zone=a -o wide",
            "get nodes -l zone=a -o yaml",
            "get nodes -l zone=a -o json",
            "get node form-1 -o name",
            "get node form-1 form-2 --no-headers",
            "get node form-1 -o jsonpath={.metadata.labels.zone}",
            "get nodes -l zone -o jsonpath={.items[*].metadata.name}",
            "get nodes -l zone -o custom-columns=NAME:.metadata.name,ZONE:.metadata.labels.zone",
            "get nodes -l zone -L zone --show-labels",
            "get nodes -l zone --sort-by=.metadata.labels.zone",
            "get nodes --field-selector=metadata.name=form-2",
            "get nodes -l zone=nowhere",
            "get node form-9",
            "get nodes -l zone --chunk-size=1",
            "get node form-1 --show-managed-fields=false -o yaml",
            "get node/form-1 lease/nothing",
            "get --raw /api/v1/nodes/form-9",
            "describe node form-1",
            "describe nodes -l zone=b",
            "describe node form-9",
        )

    def test_changes(self, both: Both) -> None:
        """label, annotate, taint, cordon, and patches of all three types."""
        both("create", "-f", both.file("changes.yaml", node("change-1")))
        both.play(
            "label node change-1 color=red",
            "label node change-1 color=blue",
            "label node change-1 color=blue --overwrite",
            "label node change-1 color-",
            "label node change-1 -bad=x",
            "annotate node change-1 note=x",
            "annotate node change-1 note-",
            "taint nodes change-1 key=value:NoSchedule",
            "taint nodes change-1 key:NoSchedule-",
            "cordon change-1",
            "cordon change-1",
            "get node change-1",
            "uncordon change-1",
            "get node change-1 -o yaml",
        )
        for kind, patch in (
            ("strategic", '{"metadata":{"labels":{"a":"1"}}}'),
            ("merge", '{"metadata":{"labels":{"b":"2"}}}'),
            ("json", '[{"op":"add","path":"/metadata/labels/c","value":"3"}]'),
            ("json", '[{"op":"test","path":"/metadata/labels/c","value":"4"}]'),
            ("merge", '{"spec":{"podCIDR":"10.0.0.0/24","podCIDRs":["10.0.0.0/24"]}}'),
            ("merge", '{"spec":{"podCIDR":"10.0.1.0/24","podCIDRs":["10.0.1.0/24"]}}'),
            ("merge", '{"spec":{"podCIDR":"x"}}'),
            ("merge", '{"spec":{"unknown":1}}'),
            ("merge", '{"metadata":{"labels":{"b":"2"}}}'),
        ):
            both("patch", "node", "change-1", "--type", kind, "-p", patch)
        condition = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
        both("patch", "node", "change-1", "--subresource=status", "-p", condition)
        both.play("get node change-1 -o yaml", "get node change-1 -o wide", "wait --for=condition=Ready node/change-1")

    def test_the_end(self, both: Both) -> None:
        """delete, once and twice, by name, by label and by file; and waiting for what holds it."""
        held = node("end-3", end="x")
        held["metadata"] = {**held["metadata"], "finalizers": ["example.com/held"]}  # type: ignore[dict-item]
        file = both.file("end.yaml", node("end-1", end="x"), node("end-2", end="x"), held)
        both("create", "-f", file)
        both.play(
            "delete node end-1 --dry-run=server",
            "delete node end-1",
            "delete node end-1",
            "delete node end-1 --ignore-not-found",
            "delete nodes -l end=x --wait=false",
            "get node end-3 -o yaml",
            "wait --for=delete node/end-3 --timeout=3s",
            "describe node end-3",
        )
        both("patch", "node", "end-3", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        both.play("wait --for=delete node/end-3 --timeout=5s", f"delete -f {file}")


class TestPools:
    """A kind of ours, from files."""

    def test_applying(self, both: Both) -> None:
        """apply, again, changed, and wrong; diff, edit and replace."""
        first = both.file("pool.yaml", pool("applied"))
        both.play(f"apply -f {first}", f"apply -f {first}", "get cc applied", "get clustercidr applied -o yaml")
        both.play("get cc applied -o wide", "describe cc applied", "apply view-last-applied cc applied")
        labelled = pool("applied")
        labelled["metadata"] = {"name": "applied", "labels": {"a": "b"}}
        both("apply", "-f", both.file("pool.yaml", labelled))
        both("apply", "-f", both.file("wrong.yaml", pool("applied", 9)))
        both("apply", "-f", both.file("worse.yaml", pool("new", 99)))
        both("apply", "-f", both.file("unknown.yaml", pool("new", sizes=[])))
        both("apply", "--validate=warn", "--dry-run=server", "-f", both.file("unknown.yaml", pool("new", sizes=[])))
        both("apply", "--dry-run=client", "-f", both.file("dry.yaml", pool("dry")))
        both("apply", "--dry-run=server", "-o", "yaml", "-f", both.file("dry.yaml", pool("dry")))
        both("create", "-f", first)
        both("replace", "-f", both.file("pool.yaml", pool("applied")))
        both("replace", "-f", both.file("dry.yaml", pool("dry")))
        both("label", "cc", "applied", "x=y")
        both("patch", "cc", "applied", "-p", "{}")
        both("patch", "cc", "applied", "--type=merge", "-p", '{"spec":{"perNodeHostBits":9}}')
        both("diff", "-f", both.file("dry.yaml", pool("dry")))
        both.play("get cc applied -o jsonpath={.metadata.generation}", "delete cc applied", "get cc")

    def test_a_list(self, both: Both) -> None:
        """Several objects in one file, also of kinds that there are not."""
        objects = [pool("list-1"), node("list-1"), {"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {}}]
        listed = {"apiVersion": "v1", "kind": "List", "items": objects[:2]}
        both("apply", "-f", both.file("list.yaml", listed))
        both("create", "-f", both.file("several.yaml", *objects))
        both.play("get cc/list-1 node/list-1", "delete cc/list-1 node/list-1")

    def test_by_an_editor(self, both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
        """edit: what the editor leaves is applied; what is wrong is refused, and kept."""
        both("create", "-f", both.file("edited.yaml", pool("edited")))
        monkeypatch.setenv(
            "KUBE_EDITOR", "sed -i s/^metadata:/metadata:\\n__labels:\\n____a:_b/;s/^\\(_*\\)//".replace("_", " ")
        )
        monkeypatch.setenv("KUBE_EDITOR", str(_editor(both, "labels: {a: b}")))
        both("edit", "cc", "edited")
        both.play("get cc edited --show-labels", "delete cc edited")


def _editor(both: Both, line: str) -> Path:
    """A program that puts a line into the metadata of the file that it is given."""
    path = both.directory / "editor.sh"
    path.write_text(f'#!/bin/sh\nsed -i "s/^metadata:/metadata:\\n  {line}/" "$1"\n')
    path.chmod(0o755)
    return path


class TestServices:
    """Services, whose addresses differ."""

    def test_them(self, both: Both) -> None:
        """create, get, describe, patch, expose and delete."""
        both.play(
            "create namespace shop",
            "create service clusterip web --tcp=80:8080 -n shop",
            "create service clusterip none --clusterip=None -n shop",
            "create service nodeport far --tcp=443 -n shop --node-port=30443",
            "create service externalname away --external-name=example.com -n shop",
            "create service loadbalancer lb --tcp=80 -n shop --dry-run=server",
            "get services -n shop",
            "get svc -n shop -o wide",
            "get svc web -n shop -o yaml",
            "get services -A -l app=web",
            "expose service web --name=again --port=81 -n shop",
            "label service web -n shop tier=front",
            "delete service web far -n shop",
            "get svc -n shop",
            "create service clusterip web --tcp=80 -n nowhere",
            "create namespace shop",
            "get namespace shop -o yaml",
            "delete svc --all -n shop",
        )

    def test_describing(self, both: Both) -> None:
        """describe, without the endpoints, which are of a kind that is not served here.

        Without events too: kube-apiserver checks its addresses every now and then, and where it comes upon a Service
        before its address, it says so in an event.
        """
        both("create", "service", "clusterip", "told", "--tcp=80")
        told = [each.kubectl("describe", "service", "told", "--show-events=false").stdout for each in both.servers]
        real, embedded = ([line for line in normalised(each).splitlines() if "Endpoints" not in line] for each in told)
        assert embedded == real


class TestOthers:
    """The rest of what is served."""

    def test_events(self, both: Both) -> None:
        """In the list, in `kubectl events`, and with what they are about."""
        both("create", "-f", both.file("told.yaml", node("told-1")))
        for number in range(2):
            event = {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"told-1.{number}", "namespace": "default"},
                "involvedObject": {"kind": "Node", "name": "told-1", "uid": "told-1"},
                "reason": "Told",
                "message": f"number {number}",
                "type": "Warning" if number else "Normal",
                "source": {"component": "test"},
                "firstTimestamp": "2026-01-01T00:00:00Z",
                "lastTimestamp": f"2026-01-01T00:0{number}:00Z",
                "count": number + 1,
            }
            both("create", "-f", both.file("event.yaml", event))
        both.play(
            "get events --field-selector=involvedObject.name=told-1",
            "get events.events.k8s.io told-1.0 -o yaml",
            "events --for=node/told-1 --types=Warning",
            "describe node told-1",
            "delete event told-1.0 told-1.1",
        )

    def test_leases_and_ranges(self, both: Both) -> None:
        """Leases, ServiceCIDRs, namespaces, Pods that there are none of."""
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "held", "namespace": "kube-system"},
            "spec": {"holderIdentity": "me"},
        }
        both("apply", "-f", both.file("lease.yaml", lease))
        both.play(
            "get lease held -n kube-system",
            "describe lease held -n kube-system",
            "delete lease held -n kube-system",
            "get servicecidrs",
            "describe servicecidr kubernetes",
            "get namespaces default kube-system kube-public kube-node-lease",
            "delete namespace default",
            "get pods -A",
            "get nothing",
            "api-resources --api-group=networking.x-k8s.io",
            "api-resources --api-group=coordination.k8s.io -o wide",
            "get crd clustercidrs.networking.x-k8s.io",
        )

    def test_explaining(self, both: Both) -> None:
        """Fields and their types, of our kinds and of built-in ones; the words are of each server."""
        for path in (
            "clustercidr",
            "clustercidr.spec",
            "cc.spec.nodeSelector",
            "cc.status.conditions",
            "node.spec.taints",
        ):
            told = [each.kubectl("explain", path).stdout for each in both.servers]
            real, embedded = (re.findall(r"(?m)^(?:[A-Z]+:.*|  \S+\t<\S+>)", each) for each in told)
            assert embedded == real
            assert len(real) > 3
        both("explain", "clustercidr.nothing")
        both("explain", "nothing")


def test_watching(both: Both) -> None:
    """`get -w` shows what there is, and then each change on a line of its own."""
    both("create", "-f", both.file("watched.yaml", node("watched-1")))
    watches = both.start("get", "nodes", "-w", "--field-selector=metadata.name=watched-1")
    lines: list[list[str]] = [[], []]

    def read(at: int) -> None:
        for line in watches[at].stdout or ():
            lines[at].append(normalised(line))

    threads = [threading.Thread(target=read, args=(at,)) for at in range(2)]
    for each in threads:
        each.start()
    try:
        _await(lines, 2)
        both.play("cordon watched-1")
        _await(lines, 3)
        both.play("delete node watched-1")
        _await(lines, 4)
    finally:
        for watch, thread in zip(watches, threads, strict=True):
            watch.terminate()
            thread.join()
            watch.communicate()
    assert lines[0] == lines[1]


def _await(lines: list[list[str]], count: int) -> None:
    deadline = time.monotonic() + 20
    while min(map(len, lines)) < count:
        assert time.monotonic() < deadline, lines
        time.sleep(0.05)


def test_custom_kinds(both: Both) -> None:
    """A definition comes, is waited for, is used, and goes with what was made of it."""
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"], "categories": ["toys"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}}
                            },
                        }
                    },
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                }
            ],
        },
    }
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 3}}
    file = both.file("definition.yaml", definition)
    both.play(f"apply -f {file}", "wait --for=condition=Established crd/gadgets.example.com --timeout=20s")
    for each in both.servers:
        each.admin.wait("/apis/example.com/v1/namespaces/default/gadgets", lambda _: True)
    both("apply", "-f", both.file("gadget.yaml", gadget))
    both("apply", "-f", both.file("small.yaml", gadget | {"spec": {"size": 0}}))
    both.play(
        "get gd",
        "get toys -o yaml",
        "describe gadget g",
        "api-resources --api-group=example.com -o wide",
        "explain gadget.spec",
        f"delete -f {file}",
        "wait --for=delete crd/gadgets.example.com --timeout=20s",
        "get gadgets",
    )
