"""Services get their addresses from a desk, in-process; what they cannot have is refused as a real server does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.apiserver.services.addressing import Addressing
from cidrella.apiserver.words.statuses import StatusError
from cidrella.core.prefix import Family
from cidrella.kube.errors import NoAnswerError
from cidrella.serviceip.ranges import Ranges
from tests.apiserver.kinds import kind, read
from tests.serviceip.store import SMALL, SMALL_IPV6
from tests.serviceip.test_review import Office

if TYPE_CHECKING:
    from cidrella.core.address import Address
    from cidrella.serviceip.allocator import Transaction

Json = dict[str, Any]

SERVICES = kind("services")


class Place:
    """Services, and an office that gives them addresses: always the first that is free of the dynamic band."""

    def __init__(self) -> None:
        self.office = Office()
        self.stored: list[Json] = []
        self.addressing = Addressing(self.office, lambda: self.stored)

    def create(self, name: str = "web", *, dry_run: bool = False, **spec: Any) -> tuple[Json, Transaction]:
        """A new Service, as it would be stored. "" for one without a name."""
        metadata = {"name": name, "namespace": "default"} if name else {"namespace": "default"}
        new = read(SERVICES, metadata=metadata, spec={"ports": [{"port": 80}], **spec})
        SERVICES.strategy.prepare_create(new)
        taken = asyncio.run(self.addressing.admit(new, None, dry_run=dry_run))
        return new, taken

    def update(self, old: Json, **spec: Any) -> Json:
        """A Service after a change of its spec; None takes a field out."""
        new = read(SERVICES, metadata=old["metadata"], spec={**old["spec"], **spec})
        SERVICES.strategy.prepare_update(new, old)
        asyncio.run(self.addressing.admit(new, old, dry_run=False))
        return new

    def refusal(self, **spec: Any) -> StatusError:
        """How a new Service is refused."""
        with pytest.raises(StatusError) as caught:
            self.create(**spec)
        return caught.value


def addresses(service: Json) -> list[str]:
    spec = service["spec"]
    assert spec["clusterIP"] == spec["clusterIPs"][0]
    return list(spec["clusterIPs"])


class TestGiven:
    """What Services come to have."""

    def test_one(self) -> None:
        """A new Service gets an address of the default family, of the dynamic band, and all that goes with it."""
        place = Place()
        service, taken = place.create()
        assert addresses(service) == ["10.96.0.17"]
        assert (service["spec"]["ipFamilies"], service["spec"]["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
        assert [str(each.address) for each in taken.given] == ["10.96.0.17"] == place.office.held()

    def test_two(self) -> None:
        """One that wants both families gets one of each, in the order in which it names them."""
        service, _ = Place().create(ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv6"])
        assert addresses(service) == ["fd00::11", "10.96.0.17"]
        assert service["spec"]["ipFamilies"] == ["IPv6", "IPv4"]

    def test_named(self) -> None:
        """One that names its address gets that very one, and as it wrote it."""
        place = Place()
        service, _ = place.create(clusterIP="10.96.0.5", ipFamilyPolicy="PreferDualStack")
        assert addresses(service) == ["10.96.0.5", "fd00::11"]
        assert place.office.held() == ["10.96.0.5"]
        assert addresses(place.create("v6", clusterIP="FD00::5")[0]) == ["FD00::5"]

    @pytest.mark.parametrize(
        "spec",
        [{"clusterIP": "None"}, {"type": "ExternalName", "externalName": "a.b"}],
    )
    def test_none(self, spec: Json) -> None:
        """One that wants none takes none."""
        place = Place()
        service, taken = place.create(**spec)
        assert taken.given == ()
        assert place.office.held() == []
        assert service["spec"].get("clusterIP", "") == spec.get("clusterIP", "")

    def test_node_ports(self) -> None:
        """Node ports are given as well, that no other Service has; what it has itself it keeps."""
        place = Place()
        taken = [{"port": 80, "nodePort": 30000}]
        service, _ = place.create(type="NodePort", ports=taken)
        place.stored = [service]
        assert place.refusal(name="other", type="NodePort", ports=taken).message == (
            'Service "other" is invalid: spec.ports[0].nodePort: Invalid value: 30000: '
            "provided port is already allocated"
        )
        assert place.update(service, sessionAffinity="ClientIP")["spec"]["ports"][0]["nodePort"] == 30000


class TestGivenBack:
    """What was taken for nothing."""

    def test_revert(self) -> None:
        """What a Service took that is not stored is free again at once."""
        place = Place()
        _, taken = place.create(ipFamilyPolicy="PreferDualStack")
        asyncio.run(taken.revert())
        assert place.office.held() == place.office.held(SMALL_IPV6) == []

    def test_commit(self) -> None:
        """What a Service took that is stored stays."""
        place = Place()
        _, taken = place.create()
        asyncio.run(taken.commit())
        asyncio.run(taken.revert())
        assert place.office.held() == ["10.96.0.17"]

    def test_refused_for_its_ports(self) -> None:
        """One that is refused for a node port has no address."""
        place = Place()
        assert place.refusal(type="NodePort", ports=[{"port": 80, "nodePort": 1}]).code == 422
        assert place.office.held() == []

    def test_dry_run(self) -> None:
        """A dry run shows the address of the range where none is named, as a real server does, and takes nothing."""
        place = Place()
        service, taken = place.create(dry_run=True, ipFamilyPolicy="PreferDualStack")
        assert addresses(service) == ["10.96.0.0", "fd00::"]
        assert addresses(place.create(dry_run=True, clusterIP="10.96.0.5")[0]) == ["10.96.0.5"]
        assert place.office.held() == []
        asyncio.run(taken.revert())
        assert place.office.store.writes == 0


class TestRefused:
    """What Services cannot have."""

    def test_without_a_name(self) -> None:
        """That is told later, when all of it is looked at; what is told here comes without."""
        place = Place()
        assert addresses(place.create("")[0]) == ["10.96.0.17"]
        assert place.refusal(name="", clusterIP="x").message.startswith('Service "" is invalid: spec.clusterIPs[0]: ')
        ports = [{"port": 80, "nodePort": 1}]
        refusal = place.refusal(name="", type="NodePort", ports=ports)
        assert refusal.message.startswith('Service "" is invalid: spec.ports[0].nodePort: ')

    def test_taken(self) -> None:
        """An address that another has."""
        place = Place()
        place.stored = [place.create(clusterIP="10.96.0.5")[0], place.create("headless", clusterIP="None")[0]]
        refusal = place.refusal(name="other", clusterIP="10.96.0.5")
        why = "failed to allocate IP 10.96.0.5: provided IP is already allocated"
        assert refusal.code == 422
        assert refusal.message == f'Service "other" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.5"]: {why}'

    def test_both_or_none(self) -> None:
        """Of two addresses none is taken if one cannot be."""
        place = Place()
        both = ["10.96.0.5", "fd00:1::5"]
        refusal = place.refusal(clusterIP=both[0], clusterIPs=both, ipFamilyPolicy="PreferDualStack")
        why = "failed to allocate IP fd00:1::5: the provided network does not match the current range"
        assert refusal.message.endswith(f'spec.clusterIPs: Invalid value: ["10.96.0.5","fd00:1::5"]: {why}')
        assert place.office.held() == []

    @pytest.mark.parametrize("address", ["1.2.3.4", "10.96.0.0", "10.96.0.63"])
    def test_out_of_range(self, address: str) -> None:
        """An address of no range; a dry run says so in words of its own."""
        place = Place()
        told = (
            f'Service "web" is invalid: spec.clusterIPs: Invalid value: ["{address}"]: failed to allocate IP {address}'
        )
        assert place.refusal(clusterIP=address).message == (
            f"{told}: the provided network does not match the current range"
        )
        assert place.refusal(clusterIP=address, dry_run=True).message == (
            f"{told}: the provided IP ({address}) is not in the valid range. The range of valid IPs is 10.96.0.0/26"
        )

    def test_full(self) -> None:
        """There is none left."""
        place = Place()
        for number in range(SMALL.usable):
            place.create(f"s{number}")
        refusal = place.refusal(name="last")
        why = 'failed to allocate a serviceIP for Service "last": range is full'
        assert (refusal.code, refusal.reason) == (500, "InternalError")
        assert refusal.message == f"Internal error occurred: {why}"
        assert refusal.details == {"causes": [{"message": why}]}

    def test_families(self) -> None:
        """A family that there is none of, and nothing is taken."""
        place = Place()
        place.office.ranges = Ranges(place.office.ranges.known, families=(Family.IPV4,))
        assert place.refusal(ipFamilyPolicy="RequireDualStack").message == (
            'Service "web" is invalid: spec.ipFamilyPolicy: Invalid value: "RequireDualStack": '
            "this cluster is not configured for dual-stack services"
        )
        assert place.office.held() == []

    def test_not_yet(self) -> None:
        """Before the ranges are known, and while they cannot be written, clients are to come again."""
        place = Place()
        place.office.ranges = Ranges(())
        refusal = place.refusal()
        assert (refusal.code, refusal.reason, refusal.details) == (503, "ServiceUnavailable", {"retryAfterSeconds": 1})
        assert place.create(type="ExternalName", externalName="a.b")
        place = Place()

        async def away(*_: object, **__: object) -> Transaction:
            raise NoAnswerError("gone")

        place.office.allocator.allocate = away  # type: ignore[method-assign]
        assert place.refusal().code == 503

    @pytest.mark.parametrize("name", ["other", "web"])
    def test_on_its_way(self, name: str) -> None:
        """An address that no stored Service has is waited for, whatever is known of the Service that had it.

        That may have another one by now, or have the same name: then it is not given a second time over the first.
        """
        place = Place()
        service, taken = place.create(clusterIP="10.96.0.5")
        place.office.holders["10.96.0.5"] = "default/web"
        place.office.there.add("default/web")
        place.stored = [{**service, "spec": {**service["spec"], "clusterIPs": ["10.96.0.6"]}}]
        looks = []

        async def freeing(address: Address) -> bool:
            assert str(address) == "10.96.0.5"
            looks.append(address)
            if len(looks) == 2:
                await taken.revert()
            return len(looks) == 2

        place.office.freeing = freeing
        assert addresses(place.create(name, clusterIP="10.96.0.5")[0]) == ["10.96.0.5"]
        assert len(looks) == 2

    def test_on_its_way_to_another(self) -> None:
        """One that is given to a Service which is stored meanwhile is taken."""
        place = Place()
        service, _ = place.create(clusterIP="10.96.0.5")

        async def storing(_: Address) -> bool:
            place.stored = [service]
            return False

        place.office.freeing = storing
        assert place.refusal(name="other", clusterIP="10.96.0.5").code == 422

    def test_never_free(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is not freed in good time is told to be taken."""
        monkeypatch.setattr("cidrella.apiserver.services.addressing._LETTING_GO", 0.01)
        place = Place()
        place.create(clusterIP="10.96.0.5")
        assert place.refusal(name="other", clusterIP="10.96.0.5").code == 422


class TestUpdates:
    """What becomes of addresses."""

    def test_stays(self) -> None:
        """An address stays for life, and another is not taken."""
        place = Place()
        service, _ = place.create()
        assert addresses(place.update(service, clusterIP=None, clusterIPs=None)) == addresses(service)
        assert place.office.held() == ["10.96.0.17"]

    def test_second_family(self) -> None:
        """A second one comes with the policy, and goes with it: who had it is freed by the books."""
        place = Place()
        service = place.update(place.create()[0], ipFamilyPolicy="PreferDualStack")
        assert addresses(service) == ["10.96.0.17", "fd00::11"]
        assert addresses(place.update(service, ipFamilyPolicy="SingleStack")) == ["10.96.0.17"]

    def test_to_external_name_and_back(self) -> None:
        """An ExternalName that becomes a Service with an address is given one."""
        place = Place()
        service = place.update(place.create()[0], type="ExternalName", externalName="a.b")
        assert "clusterIP" not in service["spec"]
        service = place.update(service, type="ClusterIP", externalName=None, clusterIP="10.96.0.6")
        assert addresses(service) == ["10.96.0.6"]

    def test_on_its_end(self) -> None:
        """One that only waits for its finalizers is given what it lacks, as any other."""
        place = Place()
        service, _ = place.create()
        service["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z"
        changed = place.update(service, ipFamilyPolicy=None, ipFamilies=None)
        assert (changed["spec"]["ipFamilyPolicy"], changed["spec"]["ipFamilies"]) == ("SingleStack", ["IPv4"])
        assert len(addresses(place.update(service, ipFamilyPolicy="PreferDualStack"))) == 2
