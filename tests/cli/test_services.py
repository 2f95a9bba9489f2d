"""`cidrella services` on files: the bands, who sits where, what is wrong with that, and with the input."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.service_objects import (
    FLAG,
    KUBERNETES,
    LAST_APPLIED,
    RANGE,
    allocation,
    grant,
    ip_address,
    lines,
    service,
    service_cidr,
    told,
    words,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.run import Cidrella
    from tests.cli.service_objects import OfFiles

    Json = dict[str, Any]


def test_bands_and_who_sits_where(of: OfFiles) -> None:
    """B1, B2: each band has its bounds and its counts; below it stands who has which address, in order."""
    objects = [
        RANGE,
        service("b/late", "10.96.0.200"),
        service("a/web", "10.96.0.20"),
        service("a/headless", "None"),
        service("a/waits"),
        KUBERNETES,
    ]
    result = of(objects)
    assert result.code == 0
    assert result.err == ""
    assert lines(result) == [
        "RANGE BAND FIRST LAST CAPACITY ALLOCATED FREE STATE SOURCE",
        "10.96.0.0/24 static 10.96.0.1 10.96.0.16 16 1 15 Active ServiceCIDR kubernetes",
        "10.96.0.0/24 dynamic 10.96.0.17 10.96.0.254 238 2 236 Active ServiceCIDR kubernetes",
        "",
        "ADDRESS BAND HOLDER TYPE NOTE",
        "10.96.0.1 static default/kubernetes ClusterIP",
        "10.96.0.20 dynamic a/web ClusterIP",
        "10.96.0.200 dynamic b/late ClusterIP",
    ]


def test_as_data(of: OfFiles) -> None:
    """B1, B5: JSON and YAML hold everything: bands, addresses with all that shows who has them, warnings."""
    objects = [
        service_cidr("kubernetes", "10.96.0.0/24", "fd00::/112"),
        KUBERNETES,
        service("a/web", "10.96.0.20", "fd00::20"),
        ip_address("10.96.0.20"),
        allocation("10.96.0.0/24", 0, 19, 21, recent=grant("10.96.0.22", "a/soon")),
    ]
    found = told(of(objects, "-o", "json"))
    assert found["ranges"][0] == {
        "cidr": "10.96.0.0/24",
        "source": "ServiceCIDR kubernetes",
        "state": "Active",
        "bands": [
            {"band": "static", "first": "10.96.0.1", "last": "10.96.0.16", "capacity": 16, "allocated": 1, "free": 15},
            {
                "band": "dynamic",
                "first": "10.96.0.17",
                "last": "10.96.0.254",
                "capacity": 238,
                "allocated": 2,
                "free": 236,
            },
        ],
    }
    assert found["ranges"][1]["bands"][1]["last"] == "fd00::ffff"
    assert [each["address"] for each in found["addresses"]] == ["10.96.0.1", "10.96.0.20", "10.96.0.22", "fd00::20"]
    assert found["addresses"][1] == {
        "address": "10.96.0.20",
        "range": "10.96.0.0/24",
        "band": "dynamic",
        "services": ["a/web"],
        "type": "ClusterIP",
        "chosen": None,
        "ipAddressOf": "a/web",
        "inRangeAllocation": True,
        "givenTo": None,
    }
    assert found["addresses"][2]["givenTo"] == "a/soon"
    assert (found["refused"], found["warnings"]) == ([], [])
    assert yaml.safe_load(of(objects, "-o", "yaml").out) == found
    assert "10.96.0.22 dynamic a/soon - by its RangeAllocation; no Service has it" in lines(of(objects))


def test_small_ranges_have_no_bands(of: OfFiles) -> None:
    """B1: a /28 is one row without a band, and so are its addresses; none of it is safe to choose."""
    objects = [service_cidr("kubernetes", "10.96.0.0/28"), KUBERNETES]
    assert lines(of(objects))[1:] == [
        "10.96.0.0/28 - 10.96.0.1 10.96.0.14 14 1 13 Active ServiceCIDR kubernetes",
        "",
        "ADDRESS BAND HOLDER TYPE NOTE",
        "10.96.0.1 - default/kubernetes ClusterIP",
    ]
    assert told(of(objects, "-o", "json"))["ranges"][0]["bands"][0]["band"] is None
    checked = of(objects, "--check", "10.96.0.2")
    assert (checked.code, checked.err) == (0, "")
    assert checked.out == "10.96.0.2 can be had: nobody has it (10.96.0.0/28, which has no bands)\n"
    short = of(objects, "--next-static", "1")
    assert (short.code, short.out) == (3, "")
    assert "only 0 of 1 IPv4 addresses are free in static bands (ranges: 10.96.0.0/28)" in short.err


def test_many_addresses_are_counted(of: OfFiles) -> None:
    """A screen is enough by default; `--all` lists every address, and JSON always does."""
    objects = [RANGE, KUBERNETES, *(service(f"a/{number:03}", f"10.96.0.{number}") for number in range(100, 160))]
    result = of(objects)
    assert len(lines(result)) == 3 + 2 + 40 + 1
    assert lines(result)[-1] == "and 21 more; --all lists them"
    assert len(lines(of(objects, "--all"))) == 3 + 2 + 61
    assert len(told(of(objects, "-o", "json"))["addresses"]) == 61


def test_static_addresses_in_the_dynamic_band(of: OfFiles) -> None:
    """B3, B4: what shows to have been chosen in the dynamic band is warned of; what was given is not."""
    applied = {LAST_APPLIED: json.dumps({"spec": {"clusterIP": "10.96.0.40"}})}
    managed = [{"manager": "helm", "operation": "Update", "fieldsV1": {"f:spec": {"f:clusterIP": {}}}}]
    given = [{"manager": "kubectl-create", "operation": "Update", "fieldsV1": {"f:spec": {"f:type": {}}}}]
    objects = [
        RANGE,
        KUBERNETES,
        service("a/applied", "10.96.0.40", annotations=applied),
        service("a/given", "10.96.0.41", managedFields=given),
        service("a/helm", "10.96.0.42", managedFields=managed),
        service("a/good", "10.96.0.9", managedFields=managed),
        service("a/manifest", "10.96.0.43", uid=None),
    ]
    found = told(of(objects, "-o", "json"))["warnings"]
    assert [(each["reason"], each["service"], each["address"]) for each in found] == [
        ("ClusterIPInDynamicBand", "a/applied", "10.96.0.40"),
        ("ClusterIPInDynamicBand", "a/helm", "10.96.0.42"),
        ("ClusterIPInDynamicBand", "a/manifest", "10.96.0.43"),
    ]
    result = of(objects)
    assert "warning: a/helm 10.96.0.42 was chosen by helm and is in the dynamic band of 10.96.0.0/24" in result.err
    assert "10.96.0.9 static a/good ClusterIP chosen by helm" in lines(result)
    assert result.err.count("\n") == 3


def test_what_a_repair_loop_would_find(of: OfFiles) -> None:
    """B8: duplicates, addresses out of range, invalid ones, and those missing from a RangeAllocation are warned of."""
    objects = [
        RANGE,
        KUBERNETES,
        service("a/web", "10.96.0.20"),
        service("b/web", "10.96.0.20"),
        service("a/out", "10.97.0.1"),
        service("a/bad", "nonsense"),
        service("a/missing", "10.96.0.50"),
        allocation("10.96.0.0/24", 0, 19),
    ]
    found = told(of(objects, "-o", "json"))["warnings"]
    assert [(each["reason"], each["service"], each["address"]) for each in found] == [
        ("ClusterIPNotValid", "a/bad", "nonsense"),
        ("ClusterIPNotAllocated", "a/missing", "10.96.0.50"),
        ("ClusterIPOutOfRange", "a/out", "10.97.0.1"),
        ("ClusterIPAlreadyAllocated", "b/web", "10.96.0.20"),
    ]
    said = of(objects).err
    assert "warning: b/web 10.96.0.20 is also the address of a/web; one of the two has to be created anew\n" in said
    assert "10.97.0.1 out of range a/out ClusterIP" in lines(of(objects))
    without = told(of(objects[:-1], "-o", "json"))["warnings"]
    assert "ClusterIPNotAllocated" not in {each["reason"] for each in without}


def test_an_ip_address_of_somebody_else(of: OfFiles) -> None:
    """B8: where the IPAddress names another than the Service that has the address, that is shown."""
    objects = [RANGE, KUBERNETES, service("a/web", "10.96.0.20"), ip_address("10.96.0.20", name="other")]
    assert "10.96.0.20 dynamic a/web ClusterIP its IPAddress is of a/other" in lines(of(objects))


def test_many_warnings_are_counted(of: OfFiles) -> None:
    """A screen of warnings is enough; JSON has them all."""
    objects = [RANGE, *(service(f"a/{number}", f"10.97.0.{number}") for number in range(60))]
    said = of(objects).err
    assert said.count("\n") == 41
    assert said.endswith("warning: and 20 more; -o json has them all\n")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"data": b64encode(b"\xff" * 40).decode()}, "its data has 40 bytes"),
        ({"data": b64encode(b"\xff" * 32).decode()}, "has the bit of offset"),
        ({"range": "10.95.0.0/24"}, "it is of another range, 10.95.0.0/24 and not 10.96.0.0/24"),
        ({"range": "nonsense"}, "its range 'nonsense'"),
    ],
)
def test_a_corrupt_range_allocation(of: OfFiles, fields: Json, said: str) -> None:
    """B5: a RangeAllocation that makes no sense is warned of, and the addresses are told by the Services alone."""
    objects = [RANGE, KUBERNETES, allocation("10.96.0.0/24", 5) | fields]
    (warning,) = told(of(objects, "-o", "json"))["warnings"]
    assert warning["reason"] == "RangeAllocationCorrupt"
    assert said in warning["message"]
    assert of(objects, "--next-static", "1").out == "10.96.0.2\n"
    assert of(objects).err.count("RangeAllocation") == 1


def test_refused_ranges(of: OfFiles) -> None:
    """B2, B5: a range that is too large, or overlaps another or what is stored, is not used, and that is said."""
    objects = [
        RANGE,
        service_cidr("huge", "10.0.0.0/8"),
        service_cidr("overlaps", "10.96.0.128/25"),
        service_cidr("moved", "10.99.0.0/24"),
        allocation("10.99.0.0/16"),
        KUBERNETES,
    ]
    result = of(objects)
    assert result.code == 0
    for said in (
        "10.0.0.0/8 of ServiceCIDR huge is not used: it",
        "10.96.0.128/25 of ServiceCIDR overlaps is not used: it overlaps 10.96.0.0/24",
        "10.99.0.0/24 of ServiceCIDR moved is not used: it overlaps 10.99.0.0/16",
    ):
        assert f"warning: {said}" in result.err
    found = told(of(objects, "-o", "json"))
    assert [each["cidr"] for each in found["refused"]] == ["10.0.0.0/8", "10.99.0.0/24", "10.96.0.128/25"]
    assert [each["cidr"] for each in found["ranges"]] == ["10.96.0.0/24"]
    assert result.err.count("\n") == 3
    only = of([service_cidr("kubernetes", "10.0.0.0/8")], "--next-static", "1")
    assert only.code == 3
    assert "only 0 of 1 IPv4 addresses are free in static bands (ranges: none)" in only.err


def test_services_in_refused_ranges(of: OfFiles) -> None:
    """B8: an address of a range that is not used here is nothing that a repair loop finds, and is no fault."""
    objects = [RANGE, KUBERNETES, service_cidr("wider", "10.96.0.0/16"), service("a/web", "10.96.7.7")]
    assert told(of(objects, "-o", "json"))["warnings"] == []
    result = of(objects)
    assert "10.96.7.7 not managed a/web ClusterIP" in lines(result)
    assert "anew" not in result.err
    assert result.err.count("\n") == 1


def test_states_of_ranges(of: OfFiles) -> None:
    """B2: a range that is full says so, and one that goes."""
    full = [service(f"a/{number}", f"10.96.0.{number}") for number in range(1, 7)]
    going = service_cidr("going", "10.97.0.0/24", deletionTimestamp="2026-01-01T00:00:00Z")
    rows = lines(of([service_cidr("kubernetes", "10.96.0.0/29"), going, *full]))
    assert rows[1] == "10.96.0.0/29 - 10.96.0.1 10.96.0.6 6 6 0 Full ServiceCIDR kubernetes"
    assert rows[2].endswith("Terminating ServiceCIDR going")


def test_ranges_from_the_flag(of: OfFiles) -> None:
    """B9: without a ServiceCIDR the flag says what the ranges are; without either, nothing can be said."""
    result = of([KUBERNETES], FLAG, "10.96.0.0/24,fd00::/112")
    assert [line.split()[0] for line in lines(result)[1:5]] == ["10.96.0.0/24"] * 2 + ["fd00::/112"] * 2
    assert lines(result)[1].endswith(FLAG)
    refused = of([KUBERNETES])
    assert refused.code == 2
    assert "has no ServiceCIDR" in words(refused.err)
    assert of([KUBERNETES], FLAG, "10.96.0.0/24,10.97.0.0/24").code == 2


def test_equal_names_and_other_kinds_in_files(of: OfFiles) -> None:
    """Services of one name in two namespaces are two; what is none of ours is passed over, pools and nodes included."""
    others = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": 7}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}},
    ]
    result = of([RANGE, service("a/web", "10.96.0.20"), service("b/web", "10.96.0.21"), *others])
    assert (result.code, result.err) == (0, "")
    assert len(lines(result)) == 3 + 2 + 2


def test_what_kubectl_prints(of: OfFiles) -> None:
    """A list as kubectl prints it, with nulls and a `ServiceList` as the API sends it, is read."""
    items = [service("a/web", "10.96.0.20"), service("a/null") | {"spec": None}]
    for item in items:
        del item["kind"], item["apiVersion"]
    found = told(of([RANGE, {"apiVersion": "v1", "kind": "ServiceList", "items": items}], "-o", "json"))
    assert [each["services"] for each in found["addresses"]] == [["a/web"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--check", "10.96.0"], "is no address"),
        (["--check", ""], "--check: '' is no address"),
        (["--check", "", "--next-static", "1"], "ask one"),
        ([FLAG, ",,"], "--service-cluster-ip-range: '' has no length"),
        ([FLAG, "10.96.0.0/24,"], "--service-cluster-ip-range: '' has no length"),
        (["--check", "10.96.0.010"], "is no address"),
        (["--check", "::ffff:10.96.0.1"], "IPv4-mapped"),
        (["--check", "fe80::1%eth0"], "names a zone"),
        (["--check", "10.96.0.1", "--next-static", "1"], "ask one"),
        (["--next-static", "0"], "greater than or equal to 1"),
        (["--next-static", "x"], "valid integer"),
        (["--context", "x"], "leave them out, or the files"),
        (["-o", "wide"], "'wide' is not one of"),
    ],
)
def test_wrong_arguments(of: OfFiles, arguments: list[str], said: str) -> None:
    """B4: what cannot be asked is refused in words, with exit code 2."""
    result = of([RANGE], *arguments)
    assert (result.code, result.out) == (2, "")
    assert said in words(result.err)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "kind: Service\napiVersion: v1\nmetadata: {name: a}\nspec:\n  clusterIPs: 10.96.0.1\n",
            ":5: Service a: spec.clusterIPs: must be a list",
        ),
        ("kind: Service\napiVersion: v1\nmetadata: {}\n", "metadata.name: is required"),
        (
            "kind: Service\napiVersion: v2\nmetadata: {name: a}\n",
            ":2: Service a: apiVersion: is 'v2'; that of a Service is v1",
        ),
        (
            "kind: IPAddress\napiVersion: networking.k8s.io/v1\nmetadata:\n  name: x\n",
            ":4: IPAddress x: metadata.name: 'x' is no address",
        ),
        (
            "kind: RangeAllocation\napiVersion: cidrella.dev/v1alpha1\nmetadata: {name: a}\nrange: x\ndata: 5\n",
            ":5: RangeAllocation a: data: must be bytes in base64, not the number 5",
        ),
        ("kind: RangeAllocation\napiVersion: cidrella.dev/v1alpha1\nmetadata: {name: a}\n", "range: is required"),
        (
            "kind: RangeAllocation\napiVersion: v1\nmetadata: {name: a}\n",
            "that of a RangeAllocation is cidrella.dev/v1alpha1",
        ),
        ("kind: RangeAlocation\napiVersion: cidrella.dev/v1alpha1\n", "is not known; did you mean RangeAllocation?"),
        (
            "kind: ServiceCIDR\napiVersion: networking.k8s.io/v1\nmetadata: {name: a}\nspec: {cidrs: [x]}\n",
            "'x' has no length",
        ),
        (
            "kind: Service\napiVersion: v1\nmetadata: {name: a}\n---\n"
            "kind: Service\napiVersion: v1\nmetadata: {name: a, namespace: default}\n",
            "is taken: there is one of this name at",
        ),
        ("", "is empty: there is no object in it"),
    ],
)
def test_faults_in_files(cidrella: Cidrella, tmp_path: Path, text: str, said: str) -> None:
    """What is wrong in a file is said with its line, everything at once, and nothing is shown."""
    path = tmp_path / "objects.yaml"
    path.write_text(text)
    result = cidrella("services", "-f", path)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
