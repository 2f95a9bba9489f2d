"""Service addresses from the webhook, on a dual-stack API server with `deploy/webhook`: given, chosen, kept, freed.

The API server's own allocator has the same bands, so an address proves nothing about who gave it. What the webhook put
into each request is in the audit log, and that is what is compared.
"""

from __future__ import annotations

import base64
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.real.conftest import KEPT_LOGS, Kubectl
from tests.real.site import eventually
from tests.real.webhook import CONFIGURATION, EVENTS, SERVICES, WebhookSite, offset, service
from tests.testenv.client import ApiError
from tests.testenv.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.testenv.client import Json

IPV4, IPV6 = "10.96.0.0/20", "fd00:96::/112"
STATIC = 256
"""Addresses in the static band of each: 4,096 / 16, and 256 at the most (B1)."""
REQUIRED: Json = {"ipFamilyPolicy": "RequireDualStack"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[WebhookSite]:
    """Yield a cluster of its own, and the webhook in it with two replicas."""
    failed_before = request.session.testsfailed
    directory = tmp_path_factory.mktemp("webhook")
    flags = {"service-cluster-ip-range": f"{IPV4},{IPV6}"}
    with Cluster.temporary(flags=flags) as cluster, WebhookSite(cluster, directory) as made:
        made.run(2)
        yield made
        if request.session.testsfailed > failed_before:
            cluster.copy_logs(KEPT_LOGS)
            made.copy_logs(KEPT_LOGS)


@pytest.fixture
def kubectl(site: WebhookSite) -> Kubectl:
    """Return the administrator's kubectl."""
    return Kubectl(site.cluster.kubectl_path, site.cluster.kubeconfig)


def refused(act: Callable[[], object]) -> str:
    """The words in which something is refused."""
    with pytest.raises(ApiError) as caught:
        act()
    return caught.value.message


def scope_of(address: str) -> str:
    """The band of an address, by its place in its range."""
    return "static" if offset(address, IPV6 if ":" in address else IPV4) < STATIC else "dynamic"


class TestMany:
    """Many at a time, from many clients."""

    def test_a_thousand_at_once(self, site: WebhookSite, tmp_path: Path) -> None:
        """B3, B6: all from the dynamic band, no two the same, each as the webhook said; from kubectl and the API.

        Eight are under way at any time, and each may take long: on a machine that is slow, the API server would give
        addresses of its own.
        """
        site.configure(timeoutSeconds=30)
        try:
            self.create_all(site, tmp_path)
        finally:
            site.configure(timeoutSeconds=5)

    def create_all(self, site: WebhookSite, tmp_path: Path) -> None:
        """Create them, and look at what each got."""
        before = sum(each.given("dynamic") for each in site.replicas)
        files = [self.write(tmp_path / f"{n}.yaml", range(100 * n, 100 * (n + 1))) for n in range(4)]
        command: list[str | Path] = [site.cluster.kubectl_path, "--kubeconfig", site.cluster.kubeconfig, "create", "-f"]
        clients = [subprocess.Popen([*command, each], stdout=subprocess.PIPE, text=True) for each in files]
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda number: site.create(f"many-{number}"), range(400, 1000)))
        said = [client.communicate(timeout=300)[0] for client in clients]
        assert [client.returncode for client in clients] == [0, 0, 0, 0]
        assert sum(text.count(" created") for text in said) == 400
        held = {name: held for name, held in site.addresses().items() if name.startswith("default/many-")}
        patched = site.patched()
        assert len(held) == 1000
        assert {name: [each] for name, each in held.items()} == {name: patched.get(name) for name in held}
        assert len({address for (address,) in held.values()}) == 1000
        assert {scope_of(address) for (address,) in held.values()} == {"dynamic"}
        assert sum(each.given("dynamic") for each in site.replicas) - before >= 1000
        site.wait_books()

    def write(self, path: Path, numbers: range) -> Path:
        """A file of Services."""
        path.write_text(yaml.safe_dump_all(service(f"many-{number}") for number in numbers))
        return path

    def test_replicas_killed_under_load(self, site: WebhookSite) -> None:
        """B6, B8: whatever is killed at whatever moment, no address is given twice, and none is lost for long.

        While no replica is there, the API server's own allocator gives addresses; the books have them in the end.
        """
        over = threading.Event()
        made: dict[str, list[str]] = {}
        odd: list[str] = []

        def load(worker: int) -> None:
            number = 0
            while not over.is_set():
                name = f"load-{worker}-{number}"
                try:
                    made[name] = site.create(name)
                except ApiError as error:
                    odd.append(error.message)
                    continue
                number += 1
                if number % 3 == 0:
                    site.delete(name)
                    del made[name]

        with ThreadPoolExecutor(8) as threads:
            loads = [threads.submit(load, worker) for worker in range(8)]
            for victims in ([0], [1], [0, 1], [1], [0, 1]):
                time.sleep(0.4)
                for each in victims:
                    site.replicas[each].process.kill()
                time.sleep(0.4)
                for each in victims:
                    site.replicas[each].process.start()
                for each in victims:
                    site.replicas[each].wait_ready()
            over.set()
            for done in loads:
                done.result()
        held = site.addresses()
        assert {f"default/{name}": addresses for name, addresses in made.items()} == {
            name: addresses for name, addresses in held.items() if name.startswith("default/load-")
        }
        given = [address for addresses in held.values() for address in addresses]
        assert len(given) == len(set(given))
        patched = site.patched()
        alone = [name for name in made if f"default/{name}" not in patched]
        assert alone, "the webhook was never away"
        assert len(made) - len(alone) > len(made) / 4, "the webhook was hardly there"
        # A draw may meet an address that the API server's own allocator gave a moment before; rarely, in 3,838.
        assert all("already allocated" in each for each in odd), odd[:5]
        assert len(odd) <= len(made) / 20
        site.wait_asked()
        site.wait_books()


class TestChosen:
    """Addresses that people choose."""

    def test_is_the_one_the_service_gets(self, site: WebhookSite) -> None:
        """B4: in the static band, and in the dynamic one with a word of warning."""
        assert site.create("chosen", clusterIP="10.96.0.10") == ["10.96.0.10"]
        assert site.create("chosen-high", clusterIP="10.96.9.10") == ["10.96.9.10"]
        assert {"10.96.0.10", "10.96.9.10"} <= site.booked()
        six = {"ipFamilies": ["IPv6"], "clusterIP": "fd00:96::10"}
        assert site.create("chosen-six", **six) == ["fd00:96::10"]
        assert "fd00:96::10" in site.booked()

    def test_taken_and_out_of_range_are_told_apart(self, site: WebhookSite, kubectl: Kubectl) -> None:
        """B4: in kubectl's words: who has it; which ranges there are."""
        site.create("first", clusterIP="10.96.0.20")
        second = kubectl("create", "-f", "-", stdin=yaml.safe_dump(service("second", clusterIP="10.96.0.20")))
        assert second.returncode == 1
        assert "10.96.0.20 is taken by the Service default/first" in second.stderr
        beyond = kubectl("create", "-f", "-", stdin=yaml.safe_dump(service("second", clusterIP="10.99.0.20")))
        assert beyond.returncode == 1
        assert "10.99.0.20" in beyond.stderr
        assert IPV4 in beyond.stderr
        assert "taken" not in beyond.stderr

    def test_can_be_asked_for_again_after_a_mistake(self, site: WebhookSite) -> None:
        """B4: a Service that was refused for its port gets its address the second time; nobody else does meanwhile."""
        for number in range(5):
            name, address = f"typo-{number}", f"10.96.0.{30 + number}"
            assert "spec.ports[0].port" in refused(
                lambda: site.create(name, clusterIP=address, ports=[{"port": 99_999}])  # noqa: B023 - called at once
            )
            assert site.create(name, clusterIP=address) == [address]
            assert "is taken" in refused(lambda: site.create("other", clusterIP=address))  # noqa: B023

    def test_goes_with_the_name_when_it_is_replaced(self, site: WebhookSite, kubectl: Kubectl) -> None:
        """B4, B8: deleted and made anew in one go, again and again, and the bit stays where it is."""
        text = yaml.safe_dump(service("replaced", clusterIP="10.96.0.40"))
        assert kubectl("create", "-f", "-", stdin=text).returncode == 0
        for _ in range(3):
            replaced = kubectl("replace", "--force", "-f", "-", stdin=text)
            assert (replaced.returncode, replaced.stderr) == (0, "")
        for _ in range(20):
            site.delete("replaced")
            assert site.create("replaced", clusterIP="10.96.0.40") == ["10.96.0.40"]
        site.wait_books()
        site.delete("replaced")
        eventually(lambda: "10.96.0.40" not in site.booked())

    def test_is_free_for_another_name_soon(self, site: WebhookSite) -> None:
        """B4: release follows the watch."""
        site.create("leaving", clusterIP="10.96.0.50")
        site.delete("leaving")
        eventually(lambda: "10.96.0.50" not in site.booked(), 5)
        assert site.create("coming", clusterIP="10.96.0.50") == ["10.96.0.50"]


class TestShapes:
    """Types and families."""

    def test_headless_and_names_need_nothing(self, site: WebhookSite) -> None:
        """Neither changes anything in the books."""
        site.wait_books()
        before = site.booked()
        assert site.create("headless", clusterIP="None") == ["None"]
        assert site.create("name", type="ExternalName", externalName="example.com", ports=[]) == []
        assert site.booked() <= before
        assert [site.writes_for(name) for name in ("headless", "name")] == [0, 0]

    def test_from_a_name_to_an_address_and_back(self, site: WebhookSite) -> None:
        """B3, B8: an address of the webhook's on the way there, given back on the way back."""
        external = {"type": "ExternalName", "externalName": "example.com"}
        assert site.create("changing", **external) == []
        for turn in range(1, 4):
            (address,) = site.patch("changing", type="ClusterIP", externalName=None)
            assert site.patched()["default/changing"][-1] == [address]
            assert len(site.patched()["default/changing"]) == turn
            assert address in site.booked()
            assert site.patch("changing", **external) == []
            eventually(lambda: address not in site.booked(), 5)  # noqa: B023 - called at once

    def test_without_a_name_of_its_own(self, site: WebhookSite) -> None:
        """B3: one whose name is made up by the API server gets an address all the same, and gives it back."""
        before = sum(each.given("dynamic") for each in site.replicas)
        body = {"metadata": {"generateName": "made-"}, "spec": {"ports": [{"port": 80}]}}
        made = site.admin.create(SERVICES, body)
        assert sum(each.given("dynamic") for each in site.replicas) - before == 1
        assert made["spec"]["clusterIP"] in site.booked()
        site.delete(made["metadata"]["name"])
        eventually(lambda: made["spec"]["clusterIP"] not in site.booked(), 5)

    def test_both_families_at_once(self, site: WebhookSite) -> None:
        """B9: one of each, the first as asked, all from the webhook; chosen ones, too."""
        shapes: dict[str, Json] = {
            "dual": REQUIRED,
            "dual-six": {**REQUIRED, "ipFamilies": ["IPv6", "IPv4"]},
            "preferred": {"ipFamilyPolicy": "PreferDualStack"},
            "single-six": {"ipFamilies": ["IPv6"]},
        }
        for name, spec in shapes.items():
            held = site.create(name, **spec)
            families = ["IPv6" if ":" in each else "IPv4" for each in held]
            assert families == spec.get("ipFamilies", ["IPv4", "IPv6"])
            assert {scope_of(each) for each in held} == {"dynamic"}
            assert site.patched()[f"default/{name}"] == [held]
            assert set(held) <= site.booked()
        both = ["10.96.0.60", "fd00:96::60"]
        assert site.create("dual-chosen", **REQUIRED, clusterIP=both[0], clusterIPs=both) == both
        assert set(both) <= site.booked()

    def test_from_one_family_to_two_and_back(self, site: WebhookSite) -> None:
        """B9: the second comes from the webhook, and is given back; the first stays."""
        (first,) = site.create("growing")
        for _ in range(2):
            held = site.patch("growing", **REQUIRED)
            assert held[0] == first
            assert site.patched()["default/growing"][-1] == held
            assert set(held) <= site.booked()
            assert site.patch("growing", ipFamilyPolicy="SingleStack") == [first]
            eventually(lambda: held[1] not in site.booked(), 5)  # noqa: B023 - called at once
        assert first in site.booked()

    def test_both_or_none(self, site: WebhookSite) -> None:
        """B9: where one of two cannot be had, the other is not taken either."""
        site.create("in-the-way", clusterIP="10.96.0.70")
        site.wait_books()
        both = ["10.96.0.70", "fd00:96::70"]
        assert "10.96.0.70 is taken" in refused(
            lambda: site.create("half", **REQUIRED, clusterIP=both[0], clusterIPs=both)
        )
        assert "fd00:96::70" not in site.booked()
        assert site.create("whole", ipFamilies=["IPv6"], clusterIP="fd00:96::70") == ["fd00:96::70"]


def test_a_dry_run_changes_nothing(site: WebhookSite, kubectl: Kubectl) -> None:
    """B7: it shows an address, refuses what would be refused, and writes nothing into the books, not for a moment."""
    site.wait_books()
    before = site.booked()
    dry = ("create", "--dry-run=server", "-o", "yaml", "-f", "-")
    for spec in ({}, REQUIRED, {"clusterIP": "10.96.0.80"}):
        tried = kubectl(*dry, stdin=yaml.safe_dump(service("tried", **spec)))
        assert tried.returncode == 0, tried.stderr
        shown = yaml.safe_load(tried.stdout)["spec"]
        assert shown["clusterIP"] == spec.get("clusterIP", shown["clusterIP"])
        assert len(shown["clusterIPs"]) == 1 + (spec is REQUIRED)
    taken = kubectl(*dry, stdin=yaml.safe_dump(service("tried", clusterIP="10.96.0.1")))
    assert "10.96.0.1 is taken by the Service default/kubernetes" in taken.stderr
    assert site.booked() <= before
    assert site.writes_for("tried") == 0
    site.create("tried")
    assert site.writes_for("tried") > 0


class TestAway:
    """What happens while nobody answers."""

    def test_ignore(self, site: WebhookSite) -> None:
        """B8: the API server gives an address of its own; who comes back puts it into the books and says so."""
        site.wait_books()
        site.kill()
        (address,) = site.create("orphan")
        assert "default/orphan" not in site.patched()
        assert 'apiserver_admission_webhook_fail_open_count{name="services.cidrella.dev"' in site.metrics()
        assert address not in site.booked()
        site.restart()
        eventually(lambda: address in site.booked(), explain=site.replicas[0].process.tail)
        assert address in refused(lambda: site.create("late", clusterIP=address))
        eventually(lambda: "ClusterIPNotAllocated" in self.reasons(site, "orphan"))

    def test_fail(self, site: WebhookSite, kubectl: Kubectl) -> None:
        """With failurePolicy Fail nobody gets an address, everything that needs none goes on, and all is well after."""
        site.create("steady")
        site.configure(failurePolicy="Fail")
        try:
            site.kill()
            eventually(lambda: "failed calling webhook" in self.words(site))
            new = kubectl("create", "-f", "-", stdin=yaml.safe_dump(service("hopeful")))
            assert new.returncode == 1
            assert 'failed calling webhook "services.cidrella.dev"' in new.stderr
            assert site.create("no-address", clusterIP="None") == ["None"]
            site.patch("steady", selector={"a": "b"})
            site.delete("steady")
            site.restart()
            assert site.create("hopeful") == site.patched()["default/hopeful"][-1]
        finally:
            site.configure(failurePolicy="Ignore")

    def reasons(self, site: WebhookSite, name: str) -> list[str]:
        """Our events on a Service, in its own namespace. Kubernetes' own repair loop has the same reasons."""
        ours = [each for each in site.admin.items(EVENTS) if each["reportingController"] == "cidrella.dev/services"]
        return [each["reason"] for each in ours if each["regarding"]["name"] == name]

    def words(self, site: WebhookSite) -> str:
        """Why a Service would be refused now; nothing if it would not."""
        try:
            site.admin.create(SERVICES, service("would-be"), dryRun="All")
        except ApiError as error:
            return error.message
        return ""


def test_replicas_share_certificates_of_their_own_making(site: WebhookSite) -> None:
    """One CA for all, which is the one in the configuration, whoever comes and goes; all for the Service's name."""
    before = bundle(site)
    for replica in site.replicas:
        replica.certificate(before)
    site.replicas[0].process.kill()
    site.replicas[0].process.start()
    site.wait_asked()
    site.replicas[0].certificate(before)
    assert bundle(site) == before


def bundle(site: WebhookSite) -> str:
    """The CA that the API server believes."""
    (webhook,) = site.admin.get(CONFIGURATION)["webhooks"]
    return base64.b64decode(webhook["clientConfig"]["caBundle"]).decode()


def test_nothing_was_denied(site: WebhookSite) -> None:
    """In all of this, the webhook asked for nothing that `deploy/webhook` does not allow."""
    assert site.forbidden() == []
    for replica in site.replicas:
        assert "Traceback" not in replica.log.read_text()
