"""Services: an address for each, no address twice; as a server of one family gives them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.bodies import made, service, services
from tests.testenv.api import SERVICE_RANGE

if TYPE_CHECKING:
    from tests.conformance.talking import Talk

    Json = dict[str, Any]

RANGE = ip_network(SERVICE_RANGE)


@pytest.fixture
def path(namespace: str) -> str:
    """Where this test's Services are."""
    return services(namespace)


def test_an_address_of_its_own(talk: Talk, name: str, path: str) -> None:
    """Who asks for none in particular gets one of the range, and all that belongs to it."""
    spec = made(talk, path, service(name))["spec"]
    assert ip_address(spec["clusterIP"]) in RANGE
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    assert (spec["type"], spec["sessionAffinity"], spec["internalTrafficPolicy"]) == ("ClusterIP", "None", "Cluster")
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]


def test_each_another(talk: Talk, name: str, path: str) -> None:
    """Many at once never get the same."""
    with ThreadPoolExecutor(6) as workers:
        found = list(workers.map(lambda n: made(talk, path, service(f"{name}-{n}"))["spec"]["clusterIP"], range(24)))
    assert len(set(found)) == len(found)


def test_the_one_that_is_asked_for(talk: Talk, name: str, path: str) -> None:
    """An address that is free is given to who names it, and can be given again when it is gone."""
    address = talk.create(path, service(name), dryRun="All").granted(201)["spec"]["clusterIP"]
    assert ip_address(address) in RANGE
    found = made(talk, path, service(name, clusterIP="10.96.0.85"))
    assert found["spec"]["clusterIPs"] == ["10.96.0.85"]
    talk.delete(f"{path}/{name}").granted()
    assert made(talk, path, service(f"{name}-2", clusterIP="10.96.0.85"))["spec"]["clusterIP"] == "10.96.0.85"
    talk.delete(f"{path}/{name}-2").granted()


def test_from_hand_to_hand(talk: Talk, name: str, path: str) -> None:
    """An address is free as soon as its Service is gone, or has another: for one of that name, and for any."""
    address = "10.96.0.86"
    for _ in range(2):
        made(talk, path, service(name, clusterIP=address))
        talk.delete(f"{path}/{name}").granted()
    made(talk, path, service(name))
    found = made(talk, path, service(f"{name}-2", clusterIP=address))
    assert found["spec"]["clusterIP"] == address
    talk.delete(f"{path}/{name}-2").granted()
    with ThreadPoolExecutor(6) as workers:
        asked = [service(f"{name}-{number}", clusterIP=address) for number in range(3, 9)]
        codes = sorted(reply.code for reply in workers.map(lambda each: talk.create(path, each), asked))
    assert codes == [201, 422, 422, 422, 422, 422]


def test_one_that_another_has(talk: Talk, name: str, path: str) -> None:
    """It is refused, and by which field."""
    address = made(talk, path, service(name))["spec"]["clusterIP"]
    reply = talk.create(path, service(f"{name}-2", clusterIP=address))
    reply.refused(422, "Invalid", f"failed to allocate IP {address}: provided IP is already allocated")
    assert reply.causes == [("FieldValueInvalid", "spec.clusterIPs")]


@pytest.mark.parametrize("address", ["10.97.0.1", "192.0.2.1", "10.96.0.0", "10.96.255.255"])
def test_one_outside_the_range(talk: Talk, name: str, path: str, address: str) -> None:
    """The range's first and last addresses are outside as well."""
    reply = talk.create(path, service(name, clusterIP=address))
    reply.refused(422, "Invalid", f"failed to allocate IP {address}: the provided network does not match")
    assert reply.causes == [("FieldValueInvalid", "spec.clusterIPs")]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"clusterIP": "nonsense"}, 'spec.clusterIPs[0]: Invalid value: "nonsense": must be a valid IP address'),
        ({"clusterIPs": ["10.96.0.201"]}, "must be empty when `clusterIP` is not specified"),
        ({"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.2"]}, "first value must match `clusterIP`"),
        ({"type": "ExternalName"}, "spec.externalName: Required value"),
        (
            {"type": "ExternalName", "externalName": "example.com", "clusterIP": "10.96.0.77"},
            "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
        ),
        ({"type": "Perhaps"}, 'spec.type: Unsupported value: "Perhaps"'),
        ({"ports": None}, "spec.ports: Required value"),
        ({"ports": [{"port": 99999}]}, "spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535"),
        ({"ports": [{"port": 1, "protocol": "X"}]}, 'spec.ports[0].protocol: Unsupported value: "X"'),
        ({"ports": [{"port": 1}, {"port": 2}]}, "spec.ports[0].name: Required value"),
        ({"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]}, "spec.ports[1].name: Duplicate value"),
        ({"sessionAffinity": "Perhaps"}, "spec.sessionAffinity: Unsupported value"),
    ],
    ids=[
        "address",
        "list-alone",
        "list-other",
        "no-name",
        "name-and-address",
        "type",
        "ports",
        "port",
        "protocol",
        "unnamed",
        "names",
        "affinity",
    ],
)
def test_what_makes_no_sense(talk: Talk, name: str, path: str, spec: Json, said: str) -> None:
    """It is refused in the words that people look up."""
    talk.create(path, service(name, **spec)).refused(422, "Invalid", f'Service "{name}" is invalid', said)


def test_without_an_address(talk: Talk, name: str, path: str) -> None:
    """A headless Service has none, and needs no ports."""
    spec = made(talk, path, service(name, clusterIP="None", ports=None))["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4", "IPv6"], "RequireDualStack")
    spec = made(talk, path, service(f"{name}-2", clusterIP="None", selector={"a": "b"}))["spec"]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")


def test_another_name(talk: Talk, name: str, path: str) -> None:
    """An ExternalName has nothing to do with addresses."""
    spec = made(talk, path, service(name, type="ExternalName", externalName="example.com"))["spec"]
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & spec.keys()


class TestFamilies:
    """What becomes of wishes for two families where there is one."""

    def test_preferred(self, talk: Talk, name: str, path: str) -> None:
        """Two if possible: one, and the wish is kept."""
        spec = made(talk, path, service(name, ipFamilyPolicy="PreferDualStack"))["spec"]
        assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "PreferDualStack")
        assert len(spec["clusterIPs"]) == 1

    @pytest.mark.parametrize(
        ("spec", "said"),
        [
            (
                {"ipFamilyPolicy": "RequireDualStack"},
                'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack',
            ),
            ({"ipFamilies": ["IPv6"]}, 'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'),
            ({"ipFamilies": ["IPv4", "IPv6"]}, "when multiple IP families are specified"),
            ({"ipFamilies": ["IPv5"]}, "spec.ipFamilies"),
            ({"ipFamilyPolicy": "Perhaps"}, "spec.ipFamilyPolicy"),
        ],
        ids=["required", "other", "both", "none", "word"],
    )
    def test_refused(self, talk: Talk, name: str, path: str, spec: Json, said: str) -> None:
        """What cannot be had is not promised."""
        talk.create(path, service(name, **spec)).refused(422, "Invalid", said)


class TestChanging:
    """An address is kept as long as its Service needs one."""

    def test_it_cannot_be_changed(self, talk: Talk, name: str, path: str) -> None:
        """Who uses it goes on finding it."""
        made(talk, path, service(name))
        patch = {"spec": {"clusterIP": "10.96.0.99", "clusterIPs": ["10.96.0.99"]}}
        talk.patch(f"{path}/{name}", patch).refused(422, "Invalid", "spec.clusterIPs[0]", "may not change once set")

    def test_it_is_kept_where_it_is_left_out(self, talk: Talk, name: str, path: str) -> None:
        """A manifest does not name it, and applying it again does not take it away."""
        before = made(talk, path, service(name))
        body = service(name, ports=[{"port": 81}])
        body["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
        after = talk.replace(f"{path}/{name}", body).granted()
        assert after["spec"]["clusterIPs"] == before["spec"]["clusterIPs"]
        assert after["spec"]["ports"][0]["port"] == 81
        patched = talk.patch(f"{path}/{name}", {"spec": {"clusterIP": None, "clusterIPs": None}}).granted()
        assert patched == after

    def test_it_is_given_back(self, talk: Talk, name: str, path: str) -> None:
        """A Service that becomes a name has no address any more; another may have it. And back again."""
        address = made(talk, path, service(name))["spec"]["clusterIP"]
        patch: Json = {"spec": {"type": "ExternalName", "externalName": "example.com"}}
        assert "clusterIP" not in talk.patch(f"{path}/{name}", patch).granted()["spec"]
        made(talk, path, service(f"{name}-2", clusterIP=address))
        patch = {"spec": {"type": "ClusterIP", "externalName": None}}
        spec = talk.patch(f"{path}/{name}", patch).granted()["spec"]
        assert ip_address(spec["clusterIP"]) in RANGE
        assert spec["clusterIP"] != address

    def test_a_dry_run_takes_none(self, talk: Talk, name: str, path: str) -> None:
        """It says what would be, and leaves the address to others."""
        body = service(name, clusterIP="10.96.0.87")
        assert talk.create(path, body, dryRun="All").granted(201)["spec"]["clusterIP"] == "10.96.0.87"
        assert made(talk, path, service(f"{name}-2", clusterIP="10.96.0.87"))["spec"]["clusterIP"] == "10.96.0.87"

    def test_it_is_refused_for_another_reason(self, talk: Talk, name: str, path: str) -> None:
        """A Service that is refused takes no address with it."""
        bad = service(name, clusterIP="10.96.0.88", sessionAffinity="Perhaps")
        talk.create(path, bad).refused(422, "Invalid")
        made(talk, path, service(name, clusterIP="10.96.0.88"))

    def test_it_goes_with_its_service(self, talk: Talk, name: str, path: str) -> None:
        """The reply to deleting a Service shows it as it was."""
        before = made(talk, path, service(name))
        gone = talk.delete(f"{path}/{name}").granted()
        assert gone["kind"] == "Service"
        assert gone["spec"] == before["spec"]
        talk.get(f"{path}/{name}").refused(404, "NotFound")


def test_the_first_of_all(talk: Talk) -> None:
    """The API itself is a Service, with the range's first address."""
    spec = talk.get(f"{services('default')}/kubernetes").granted()["spec"]
    assert spec["clusterIP"] == "10.96.0.1"


def test_its_status(talk: Talk, name: str, path: str) -> None:
    """A load balancer tells through /status where it is."""
    made(talk, path, service(name))
    status = {
        "conditions": [
            {"type": "X", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        ]
    }
    told = talk.patch(f"{path}/{name}/status", {"spec": {"ports": []}, "status": status}).granted()
    assert told["status"]["conditions"] == status["conditions"]
    assert told["spec"]["ports"][0]["port"] == 80
