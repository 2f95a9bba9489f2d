"""What the API server asks the webhook about, by the rules of `deploy/webhook`, and what it does not.

Another webhook listens in the place of ours: it is the API server's part that is looked at.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.listener import Listener
from tests.real.site import eventually
from tests.real.webhook import apply_webhook
from tests.testenv.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.testenv.client import Client, Json

RANGES = "10.96.0.0/24,fd00:96::/112"
SERVICES = "/api/v1/namespaces/default/services"
SYSTEM_SERVICES = "/api/v1/namespaces/kube-system/services"
SINGLE = {"ipFamilyPolicy": "SingleStack"}
REQUIRED = {"ipFamilyPolicy": "RequireDualStack"}
PREFERRED = {"ipFamilyPolicy": "PreferDualStack"}


@dataclass(frozen=True)
class Asked:
    """A cluster, and what its API server asks about."""

    admin: Client
    listener: Listener

    def about(self, act: object) -> list[str]:
        """Forget; the caller has acted by then. What was asked since the last time, as words."""
        del act
        heard = [f"{each['operation']} {each.get('name', '')}" for each in self.listener.heard]
        self.listener.heard.clear()
        return heard

    def create(self, name: str, **spec: Any) -> Json:
        return self.admin.create(SERVICES, service(name, **spec))

    def patch(self, name: str, **spec: Any) -> Json:
        return self.admin.patch(f"{SERVICES}/{name}", {"spec": spec})


def service(name: str, **spec: Any) -> Json:
    """A Service with one port."""
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A dual-stack API server of its own."""
    with Cluster.temporary(flags={"service-cluster-ip-range": RANGES}) as running:
        yield running


@pytest.fixture(scope="module")
def asked(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """The listener, in the place of the webhook."""
    ca = base64.b64encode(cluster.authority.certificate.read_bytes()).decode()
    with Listener(cluster.authority.server("listener")) as listener:
        apply_webhook(cluster, tmp_path_factory.mktemp("overlay"), listener.url, ca)
        dry = {"dryRun": "All"}
        eventually(lambda: bool(cluster.admin.create(SERVICES, service("first"), **dry) and listener.heard))
        listener.heard.clear()
        yield Asked(cluster.admin, listener)


def test_new_services_are_asked_about(asked: Asked) -> None:
    """Every new one that gets an address; neither headless ones nor names."""
    assert asked.about(asked.create("plain")) == ["CREATE plain"]
    assert asked.about(asked.create("static", clusterIP="10.96.0.9")) == ["CREATE static"]
    assert asked.about(asked.create("port", type="NodePort")) == ["CREATE port"]
    assert asked.about(asked.create("headless", clusterIP="None")) == []
    assert asked.about(asked.create("name", type="ExternalName", externalName="example.com")) == []
    body = {"metadata": {"generateName": "made-"}, "spec": {"ports": [{"port": 80}]}}
    assert asked.about(asked.admin.create(SERVICES, body)) == ["CREATE "]  # it has no name yet


def test_a_dry_run_is_asked_about_as_such(asked: Asked) -> None:
    """B7: the webhook is told that nothing is to be changed."""
    asked.admin.create(SERVICES, service("tried"), dryRun="All")
    (heard,) = asked.listener.heard
    assert heard["dryRun"] is True
    asked.listener.heard.clear()


def test_changes_that_need_no_address(asked: Asked) -> None:
    """Labels, ports, selectors, status, and going: the API server asks nobody."""
    asked.about(asked.create("calm"))
    path = f"{SERVICES}/calm"
    assert asked.about(asked.admin.patch(path, {"metadata": {"labels": {"a": "b"}}})) == []
    assert asked.about(asked.patch("calm", ports=[{"port": 81}], selector={"a": "b"})) == []
    assert asked.about(asked.patch("calm", type="LoadBalancer")) == []
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
    assert asked.about(asked.admin.patch(f"{path}/status", status)) == []
    kept = asked.admin.get(path)
    assert asked.about(asked.admin.replace(path, kept)) == []
    bare = service("calm")  # as an old client puts it: neither addresses nor families
    bare["metadata"]["resourceVersion"] = kept["metadata"]["resourceVersion"]
    assert asked.about(asked.admin.replace(path, bare)) == []
    assert asked.about(asked.admin.delete(path)) == []


def test_to_a_name_and_back(asked: Asked) -> None:
    """An address is wanted on the way back, and not by one that becomes headless."""
    asked.about(asked.create("there"))
    name = {"type": "ExternalName", "externalName": "example.com"}
    assert asked.about(asked.patch("there", **name)) == []
    assert asked.about(asked.patch("there", type="ClusterIP", externalName=None)) == ["UPDATE there"]
    assert asked.about(asked.patch("there", **name)) == []
    assert asked.about(asked.patch("there", type="ClusterIP", externalName=None, clusterIP="None")) == []


def test_from_one_family_to_two_and_back(asked: Asked) -> None:
    """However the second is asked for, it is asked about; giving it back is not."""
    asked.about(asked.create("one"))
    for spec in (REQUIRED, PREFERRED, {**REQUIRED, "ipFamilies": ["IPv4", "IPv6"]}):
        assert asked.about(asked.patch("one", **spec)) == ["UPDATE one"]
        assert asked.about(asked.patch("one", selector={"a": str(len(spec))})) == []
        assert asked.about(asked.patch("one", **SINGLE)) == []


def test_families_that_are_not_said(asked: Asked) -> None:
    """A PUT that says nothing of families goes by those from before, and is asked about where they want a second."""
    made = asked.create("few", **SINGLE)
    asked.about(made)
    assert asked.about(asked.admin.patch(f"{SERVICES}/few", {"spec": PREFERRED}, dryRun="All")) == ["UPDATE few"]
    bare = service("few", clusterIP=made["spec"]["clusterIP"])
    assert asked.about(asked.admin.replace(f"{SERVICES}/few", bare)) == []


def test_headless_ones_stay_out_of_it(asked: Asked) -> None:
    """A headless Service is never asked about, with both families or one."""
    asked.about(asked.create("bodyless", clusterIP="None", **SINGLE))
    assert asked.about(asked.patch("bodyless", **REQUIRED)) == []
    assert asked.about(asked.admin.replace(f"{SERVICES}/bodyless", service("bodyless", **REQUIRED))) == []


def test_services_that_must_not_wait(asked: Asked) -> None:
    """The API server's own, and the one that leads to the webhook."""
    path = f"{SERVICES}/kubernetes"
    assert asked.about(asked.admin.patch(path, {"metadata": {"labels": {"a": "b"}}, "spec": PREFERRED})) == []
    own = asked.admin.get(f"{SYSTEM_SERVICES}/cidrella-webhook")
    asked.admin.delete(f"{SYSTEM_SERVICES}/cidrella-webhook")
    again = {"metadata": {"name": "cidrella-webhook"}, "spec": {"ports": own["spec"]["ports"]}}
    assert asked.about(asked.admin.create(SYSTEM_SERVICES, again)) == []
    elsewhere = asked.admin.create(SERVICES, service("cidrella-webhook"))
    assert asked.about(elsewhere) == ["CREATE cidrella-webhook"]
