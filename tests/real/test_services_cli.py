"""`cidrella services` on the real API server: what it says of real Services, to a user who may only read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cidrella.core.prefix import Prefix
from cidrella.model.serviceip import RANGE_ALLOCATIONS_PATH, range_name
from tests.cli.run import Cidrella
from tests.cli.service_objects import allocation, lines, service_cidr, told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import Kubectl
    from tests.testenv.api import Api
    from tests.testenv.client import Json

SERVICE_CIDRS = "/apis/networking.k8s.io/v1/servicecidrs"
SERVICES = "/api/v1/namespaces/default/services"
READER = "services-reader"
READ_ONLY = [
    {"apiGroups": [""], "resources": ["services"], "verbs": ["list"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["servicecidrs", "ipaddresses"], "verbs": ["list"]},
    {"apiGroups": ["cidrella.dev"], "resources": ["rangeallocations"], "verbs": ["list"]},
]


@pytest.fixture(scope="module")
def reader(cluster: Api, kubectl: Kubectl) -> Path:
    """The kubeconfig of a user who may list what the command needs, and nothing else."""
    assert kubectl("get", "rangeallocations").returncode == 0
    client, path = cluster.user(READER, READ_ONLY)
    client.close()
    return path


@pytest.fixture
def cidrella(reader: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cidrella:
    """The command, for whom KUBECONFIG leads to that user."""
    monkeypatch.setenv("KUBECONFIG", str(reader))
    return Cidrella(monkeypatch, capsys)


@pytest.fixture(scope="module")
def main_range(cluster: Api) -> Prefix:
    """The range of the API server."""
    return Prefix.parse(cluster.admin.get(f"{SERVICE_CIDRS}/kubernetes")["spec"]["cidrs"][0])


@pytest.fixture
def made(cluster: Api, kubectl: Kubectl) -> Iterator[list[str]]:
    """Names of Services, which are gone afterwards."""
    names: list[str] = []
    yield names
    for name in names:
        kubectl("delete", "service", name, "--ignore-not-found")
    cluster.admin.wait(SERVICES, lambda found: not set(names) & set(found))


def manifest(name: str, **spec: object) -> Json:
    spec = {"ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def text_of(cidr: Prefix, offset: int) -> str:
    """The address that is so far from the network's."""
    return str(Prefix(cidr.family, cidr.network + offset, cidr.family.bits)).partition("/")[0]


def address_of(cluster: Api, name: str) -> str:
    return str(cluster.admin.get(f"{SERVICES}/{name}")["spec"]["clusterIP"])


def test_it_names_what_the_api_server_then_gives(
    cluster: Api, cidrella: Cidrella, made: list[str], main_range: Prefix
) -> None:
    """B1, B4: what `--next-static` names can be had from the API server, and is taken from then on."""
    assert cidrella("services", "--check", text_of(main_range, 1)).code == 3
    offered = cidrella("services", "--next-static", "3")
    assert (offered.code, offered.err) == (0, "")
    for number, address in enumerate(offered.out.split()):
        assert cidrella("services", "--check", address).code == 0
        made.append(f"static-{number}")
        cluster.admin.create(SERVICES, manifest(made[-1], clusterIP=address))
        checked = cidrella("services", "--check", address)
        assert checked.code == 3
        assert f"the Service default/{made[-1]} has it (static band of {main_range})" in checked.out
    again = cidrella("services", "--next-static", "3").out.split()
    assert len(again) == 3
    assert not set(again) & set(offered.out.split())


def test_ranges_and_services(cluster: Api, cidrella: Cidrella, made: list[str], main_range: Prefix) -> None:
    """B1, B2: the API server's own range and its bands are shown, and the Services by the addresses that they have."""
    made.append("shown")
    cluster.admin.create(SERVICES, manifest("shown"))
    cluster.admin.create(SERVICES, manifest("headless", clusterIP="None"))
    made.append("headless")
    found = told(cidrella("services", "-o", "json"))
    (main,) = [each for each in found["ranges"] if each["cidr"] == str(main_range)]
    assert main["source"] == "ServiceCIDR kubernetes"
    assert [each["band"] for each in main["bands"]] == ["static", "dynamic"]
    assert main["bands"][0]["first"] == text_of(main_range, 1)
    seats = {each["address"]: each for each in found["addresses"]}
    assert seats[text_of(main_range, 1)]["services"] == ["default/kubernetes"]
    shown = seats[address_of(cluster, "shown")]
    assert (shown["services"], shown["type"], shown["ipAddressOf"]) == (["default/shown"], "ClusterIP", "default/shown")
    assert "default/headless" not in str(found)
    assert sum(each["allocated"] for each in main["bands"]) == sum(
        each["range"] == str(main_range) for each in found["addresses"]
    )


def test_who_chose(cluster: Api, kubectl: Kubectl, cidrella: Cidrella, made: list[str], main_range: Prefix) -> None:
    """B3, B4: an address of the dynamic band that a request named is warned of, and one that was given is not.

    Whether it was created, applied by kubectl or applied on the server, or changed in other ways since.
    """
    chosen = [text_of(main_range, main_range.size - 10 - number) for number in range(3)]
    for name, command, spec in (
        ("given-created", ("create",), {}),
        ("given-applied", ("apply",), {}),
        ("given-on-server", ("apply", "--server-side"), {}),
        ("chosen-created", ("create",), {"clusterIP": chosen[0]}),
        ("chosen-applied", ("apply",), {"clusterIP": chosen[1]}),
        ("chosen-on-server", ("apply", "--server-side"), {"clusterIP": chosen[2], "clusterIPs": [chosen[2]]}),
    ):
        made.append(name)
        done = kubectl(*command, "-f", "-", stdin=json.dumps(manifest(name, **spec)))
        assert done.returncode == 0, done.stderr
    # Others who write what they have read do not choose, nor does who changes something else.
    read = cluster.admin.get(f"{SERVICES}/given-created")
    read["spec"]["ports"][0]["port"] = 81
    cluster.admin.replace(f"{SERVICES}/given-created", read)
    assert kubectl("label", "service", "given-applied", "a=b").returncode == 0
    found = told(cidrella("services", "-o", "json"))["warnings"]
    warned = {each["service"]: each["address"] for each in found if each["reason"] == "ClusterIPInDynamicBand"}
    assert {name: warned.get(f"default/{name}") for name in made if f"default/{name}" in warned} == {
        "chosen-created": chosen[0],
        "chosen-applied": chosen[1],
        "chosen-on-server": chosen[2],
    }
    # The same from what kubectl prints, which leaves managedFields out: only what was applied by kubectl shows.
    printed = kubectl("get", "services,servicecidrs,ipaddresses", "-A", "-o", "yaml")
    found = told(cidrella("services", "-f", "-", "-o", "json", stdin=printed.stdout))["warnings"]
    shown = {each["service"] for each in found if each["reason"] == "ClusterIPInDynamicBand"}
    assert {name for name in made if f"default/{name}" in shown} == {"chosen-applied"}


def test_stored_and_refused_ranges(cluster: Api, kubectl: Kubectl, cidrella: Cidrella) -> None:
    """B5, B8: what a RangeAllocation has set is taken; a corrupt one is warned of; a range that shrank is not used."""
    objects: list[tuple[str, Json]] = [
        (SERVICE_CIDRS, service_cidr("cli-good", "10.201.0.0/24")),
        (SERVICE_CIDRS, service_cidr("cli-corrupt", "10.202.0.0/24")),
        (SERVICE_CIDRS, service_cidr("cli-moved", "10.203.0.0/24")),
        (RANGE_ALLOCATIONS_PATH, allocation("10.201.0.0/24", 0, 4)),
        (RANGE_ALLOCATIONS_PATH, allocation("10.202.0.0/24") | {"data": "not base64"}),
        (RANGE_ALLOCATIONS_PATH, allocation("10.203.0.0/16")),
    ]
    try:
        for path, obj in objects:
            cluster.admin.create(path, obj)
        result = cidrella("services", "--all")
        assert result.code == 0
        rows = lines(result)
        assert "10.201.0.0/24 static 10.201.0.1 10.201.0.16 16 2 14 Active ServiceCIDR cli-good" in rows
        assert "10.201.0.5 static - - by its RangeAllocation; no Service has it" in rows
        assert f"the RangeAllocation {range_name(Prefix.parse('10.202.0.0/24'))} is corrupt" in result.err
        assert "10.203.0.0/24 of ServiceCIDR cli-moved is not used: it overlaps 10.203.0.0/16" in result.err
        assert cidrella("services", "--check", "10.201.0.5").code == 3
        assert cidrella("services", "--check", "10.203.0.5").code == 3
    finally:
        for path, obj in objects:
            kind = "servicecidr" if path == SERVICE_CIDRS else "rangeallocation"
            kubectl("patch", kind, obj["metadata"]["name"], "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
            kubectl("delete", kind, obj["metadata"]["name"], "--ignore-not-found")


def test_as_a_plugin_of_kubectl(cluster: Api, reader: Path) -> None:
    """`kubectl cidrella services` is the same, its exit codes included."""
    programs = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "KUBECONFIG": str(reader)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(cluster.kubectl_path), "cidrella", "services", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)

    shown = run()
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("RANGE")
    assert run("--check", "192.0.2.1").returncode == 3
    wrong = run("--check", "nonsense")
    assert wrong.returncode == 2
    assert "Usage: kubectl cidrella services" in wrong.stderr


def test_who_may_not_read(cluster: Api, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A user without permissions learns in one line which are needed."""
    client, path = cluster.user("services-nobody")
    client.close()
    monkeypatch.setenv("KUBECONFIG", str(path))
    result = Cidrella(monkeypatch, capsys)("services")
    assert (result.code, result.out) == (2, "")
    assert "list services, servicecidrs.networking.k8s.io, ipaddresses.networking.k8s.io" in result.err
