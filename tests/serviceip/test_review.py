"""Questions of the API server, answered from ranges that are kept in memory."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cidrella.core.prefix import Family, Prefix
from cidrella.model.admission import AdmissionRequest, AdmissionResponse
from cidrella.serviceip import review
from cidrella.serviceip.allocator import Allocator
from cidrella.serviceip.ranges import KnownRange, Ranges, RefusedRange
from cidrella.serviceip.review import MEMORY, MalformedError, Reviewer, UnavailableError
from tests.kube.simulated import simulate
from tests.serviceip.store import SMALL, SMALL_IPV6, Store, StoreClient, address, make_ledger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cidrella.core.address import Address
    from cidrella.core.bands import ServiceRange

WITHIN = 10.0


class Office:
    """A desk without watches: two ranges, and whatever else a test says."""

    def __init__(self) -> None:
        self.store = Store()
        self.client = StoreClient(self.store)
        self.kept = (SMALL, SMALL_IPV6)
        for each in self.kept:
            self.store.make(each)
        ledgers = [make_ledger(self.client, each) for each in self.kept]
        self.ledgers = ledgers
        self.allocator = Allocator(lambda: ledgers, below=lambda _: 0)
        known = tuple(KnownRange(each, "ServiceCIDR kubernetes") for each in self.kept)
        self.ranges = Ranges(known, families=(Family.IPV4, Family.IPV6))
        self.holders: dict[str, str] = {}
        self.there: set[str] = set()
        self.freeing: Callable[[Address], Awaitable[bool]] | None = None

    def holder(self, address: Address) -> str:
        return self.holders.get(str(address), "")

    async def exists(self, service: str) -> bool:
        return service in self.there

    async def wait_free(self, address: Address, seconds: float) -> bool:
        assert 0 < seconds < 5
        return await self.freeing(address) if self.freeing else False

    def held(self, service_range: ServiceRange = SMALL) -> list[str]:
        """The addresses that are given."""
        return [str(service_range.address(each)) for each in sorted(self.store.held(service_range))]


def ask(
    spec: dict[str, Any] | None = None,
    old: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    **fields: Any,
) -> AdmissionRequest:
    """A question about a Service `default/web`."""
    named = {"name": "web", "namespace": "default"}
    question = {
        "uid": "1",
        "operation": "CREATE" if old is None else "UPDATE",
        "resource": {"group": "", "version": "v1", "resource": "services"},
        "object": {"metadata": named if metadata is None else metadata, "spec": spec or {}},
        "oldObject": None if old is None else {"metadata": named, "spec": old},
        "name": "web" if metadata is None else None,
        "namespace": "default",
    }
    return msgspec.json.decode(json.dumps({**question, **fields}), type=AdmissionRequest)


def answer(office: Office, *questions: AdmissionRequest) -> list[AdmissionResponse]:
    """The answers, one after the other."""

    async def all_of_it() -> list[AdmissionResponse]:
        reviewer = Reviewer(office)
        return [await reviewer.review(each, WITHIN) for each in questions]

    return simulate(all_of_it())


def patched(response: AdmissionResponse) -> dict[str, Any]:
    """What the patch sets."""
    assert (response.allowed, response.patch_type) == (True, "JSONPatch")
    return {each["path"]: each["value"] for each in json.loads(response.patch or b"")}


def refusal(office: Office, question: AdmissionRequest) -> str:
    """The words of a denial."""
    (response,) = answer(office, question)
    assert not response.allowed
    assert response.status is not None
    assert (response.status.code, response.status.reason) == (422, "Invalid")
    return response.status.message


def untouched(office: Office) -> bool:
    """Whether nothing was given."""
    return not any(office.store.held(each) for each in office.kept)


class TestGiven:
    """Services that get what they need."""

    def test_any_address(self) -> None:
        """B3: one of the dynamic band, in both fields."""
        office = Office()
        (response,) = answer(office, ask())
        assert patched(response) == {"/spec/clusterIP": "10.96.0.17", "/spec/clusterIPs": ["10.96.0.17"]}
        assert (office.held(), response.uid, response.warnings) == (["10.96.0.17"], "1", [])

    def test_both_families(self) -> None:
        """B9: one of each, the default family first."""
        (response,) = answer(Office(), ask({"ipFamilyPolicy": "RequireDualStack"}))
        assert patched(response)["/spec/clusterIPs"] == ["10.96.0.17", "fd00::11"]

    def test_half_of_it(self) -> None:
        """B4, B9: what is written stays, what is missing is given."""
        (response,) = answer(Office(), ask({"ipFamilyPolicy": "PreferDualStack", "clusterIP": "fd00::5"}))
        assert patched(response) == {"/spec/clusterIP": "fd00::5", "/spec/clusterIPs": ["fd00::5", "10.96.0.17"]}

    def test_a_chosen_address(self) -> None:
        """B4: it is taken down in the books, and there is nothing to change in the Service, nor to say."""
        office = Office()
        (response,) = answer(office, ask({"clusterIP": "10.96.0.10"}))
        assert response == AdmissionResponse(uid="1", allowed=True)
        assert office.held() == ["10.96.0.10"]

    def test_a_chosen_address_of_the_dynamic_band(self) -> None:
        """B4: it is given, with a word on where to choose next time, which the API server passes on whole."""
        office = Office()
        (response,) = answer(office, ask({"clusterIP": "10.96.0.40"}))
        (warning,) = response.warnings
        assert warning.startswith("10.96.0.40 is in the dynamic band of 10.96.0.0/26. That works, but ")
        assert "10.96.0.1 to 10.96.0.16 are kept" in warning
        assert len(warning) <= 256
        assert office.held() == ["10.96.0.40"]

    def test_a_chosen_address_where_there_are_no_bands(self) -> None:
        """B11: nothing is said of bands that are switched off."""
        office = Office()
        plain = SMALL._replace(static=0)
        office.ranges = Ranges((KnownRange(plain, "flag"),), families=(Family.IPV4,))
        (response,) = answer(office, ask({"clusterIP": "10.96.0.40"}))
        assert response.warnings == []

    def test_a_second_family(self) -> None:
        """B9: an update that asks for another family gets an address of it, and keeps the first."""
        office = Office()
        old = {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], "ipFamilies": ["IPv4"]}
        (response,) = answer(office, ask({**old, "ipFamilyPolicy": "RequireDualStack"}, old))
        assert patched(response) == {"/spec/clusterIP": "10.96.0.9", "/spec/clusterIPs": ["10.96.0.9", "fd00::11"]}
        assert (office.held(), office.held(SMALL_IPV6)) == ([], ["fd00::11"])

    def test_dry_run(self) -> None:
        """B7: an address is proposed, and nothing is written."""
        office = Office()
        (response,) = answer(office, ask(dryRun=True))
        assert patched(response)["/spec/clusterIP"] == "10.96.0.17"
        assert (office.store.writes, office.held()) == (0, [])

    def test_who_it_is_given_to(self) -> None:
        """B6: the books name the Service; one whose name is still to be made up is like no other."""
        office = Office()
        unnamed = ask(metadata={"generateName": "web-", "namespace": "default"}, uid="0123456789")
        answer(office, ask(), unnamed)
        assert [each.service for each in office.store.recent(SMALL)] == ["default/web", "default/web-*01234567"]

    def test_a_refused_service_asks_again(self) -> None:
        """B6: a Service that the API server refused gets the address it chose when it comes again."""
        office = Office()
        first, second = answer(office, ask({"clusterIP": "10.96.0.10"}), ask({"clusterIP": "10.96.0.10"}, uid="2"))
        assert (first.allowed, second.allowed) == (True, True)


class TestLetThrough:
    """Services that are none of our business."""

    @pytest.mark.parametrize(
        "question",
        [
            ask({"type": "ExternalName"}),
            ask({"clusterIP": "None"}),
            ask({"ipFamilies": ["IPv5"]}),
            ask({"clusterIP": "10.96.0.9"}, {"clusterIP": "10.96.0.9"}),
            ask(operation="DELETE", object=None),
            ask(operation="CONNECT"),
            ask(subResource="status"),
            ask(resource={"group": "", "version": "v1", "resource": "pods"}),
            ask(metadata={"name": "web", "namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"}),
        ],
    )
    def test_as_they_are(self, question: AdmissionRequest) -> None:
        """B9: nothing is given, changed or said."""
        office = Office()
        assert answer(office, question) == [AdmissionResponse(uid="1", allowed=True)]
        assert untouched(office)

    def test_one_that_exists(self) -> None:
        """B6: a name that is taken will be refused by the API server, and costs no address."""
        office = Office()
        office.there = {"default/web"}
        assert answer(office, ask()) == [AdmissionResponse(uid="1", allowed=True)]
        assert untouched(office)

    def test_a_family_whose_range_is_not_used(self) -> None:
        """B2: where Kubernetes has a range that cannot be kept here, it gives the address itself, and that is said."""
        office = Office()
        why = RefusedRange(Prefix.parse("10.0.0.0/8"), "ServiceCIDR kubernetes", "it is larger than a /12")
        office.ranges = Ranges(refused=(why,), families=(Family.IPV4,))
        (response,) = answer(office, ask())
        assert (response.allowed, response.patch) == (True, None)
        (warning,) = response.warnings
        assert "10.0.0.0/8 of ServiceCIDR kubernetes is not used: it is larger than a /12" in warning

    def test_an_address_of_a_range_that_is_not_used(self) -> None:
        """B4: it is not out of range, for Kubernetes may give it."""
        office = Office()
        why = RefusedRange(Prefix.parse("10.96.0.0/16"), "ServiceCIDR more", "it overlaps")
        office.ranges = Ranges(office.ranges.known, (why,), families=(Family.IPV4,))
        inside, outside = answer(office, ask({"clusterIP": "10.96.0.9"}), ask({"clusterIP": "10.96.7.7"}, uid="2"))
        assert (inside.warnings, len(outside.warnings)) == ([], 1)
        assert (outside.allowed, office.held()) == (True, ["10.96.0.9"])

    def test_no_range_that_gives(self) -> None:
        """B9: where a family's ranges are all on their way out, Kubernetes says so."""
        office = Office()
        office.ledgers.clear()
        assert answer(office, ask()) == [AdmissionResponse(uid="1", allowed=True)]


class TestDenied:
    """Services that cannot get what they want."""

    def test_a_taken_address(self) -> None:
        """B4: who has it is said, and what to do."""
        office = Office()
        office.store.edit(SMALL, data=office.store.make(SMALL, held=(9,))["data"])
        office.holders, office.there = {"10.96.0.10": "default/dns"}, {"default/dns"}
        assert refusal(office, ask({"clusterIP": "10.96.0.10"})) == (
            "10.96.0.10 is taken by the Service default/dns; choose another address, or leave out spec.clusterIP to be "
            "given one"
        )

    @pytest.mark.parametrize(
        ("parent", "whose"),
        [("gateways edge/public", " by gateways edge/public"), ("", ""), ("a/b", " by the Service a/b")],
    )
    def test_an_address_that_the_api_server_has_given(self, parent: str, whose: str) -> None:
        """B4: what has an IPAddress object is taken, whoever has it, Service or not."""
        office = Office()
        office.ledgers[:] = [make_ledger(office.client, SMALL, foreign={9: parent})]
        assert refusal(office, ask({"clusterIP": "10.96.0.10"})).startswith(f"10.96.0.10 is taken{whose}; choose")

    def test_an_address_just_given(self) -> None:
        """B4: one whose Service is still on its way is taken, too."""
        office = Office()
        other = {"name": "dns", "namespace": "default"}
        wanted = {"clusterIP": "10.96.0.10"}
        first, second = answer(office, ask(wanted, metadata=other), ask(wanted, uid="2"))
        assert first.allowed
        assert second.status is not None
        assert second.status.message.startswith("10.96.0.10 is taken by the Service default/dns; ")

    def test_an_address_out_of_range(self) -> None:
        """B4: another error than taken; the ranges are named."""
        message = refusal(Office(), ask({"clusterIP": "10.97.0.1"}))
        assert message.startswith("10.97.0.1 is no usable address of a range of Services (10.96.0.0/26); choose one")

    def test_a_full_range(self) -> None:
        """B3: what is full is named, and nothing is lost of the other family (B9)."""
        office = Office()
        office.store.make(SMALL_IPV6, held=tuple(range(SMALL_IPV6.usable)))
        message = refusal(office, ask({"ipFamilyPolicy": "RequireDualStack"}))
        assert message == (
            "no address is free in fd00::/122; delete Services that are not in use, or add a ServiceCIDR"
        )
        assert office.held() == []

    def test_an_address_on_its_way_to_be_free(self) -> None:
        """B4: whoever deletes a Service and makes another with its address at once gets it."""
        office = Office()
        office.store.make(SMALL, held=(9,))
        office.holders = {"10.96.0.10": "default/old"}

        async def freed(wanted: Address) -> bool:
            assert wanted == address("10.96.0.10")
            office.store.make(SMALL)
            await office.ledgers[0].refresh()
            return True

        office.freeing = freed
        (response,) = answer(office, ask({"clusterIP": "10.96.0.10"}))
        assert (response.allowed, office.held()) == (True, ["10.96.0.10"])


class TestNoAnswer:
    """Questions that cannot be answered: the failurePolicy decides."""

    @pytest.mark.parametrize(
        "question",
        [
            ask(object=None),
            ask(object=[]),
            ask({"clusterIPs": "10.96.0.1"}),
            ask(operation="UPDATE"),
            ask(operation="UPDATE", oldObject=7),
        ],
    )
    def test_no_service(self, question: AdmissionRequest) -> None:
        """B9: what is no Service is said to be none."""
        with pytest.raises(MalformedError):
            answer(Office(), question)

    def test_before_the_ranges_are_known(self) -> None:
        """B6: nothing is decided from what is not known yet."""
        office = Office()
        office.ranges = Ranges()
        with pytest.raises(UnavailableError, match="not known yet"):
            answer(office, ask())
        with pytest.raises(UnavailableError, match="not known yet"):
            answer(office, ask({"ipFamilies": ["IPv5"]}))
        assert answer(office, ask({"type": "ExternalName"})) == [AdmissionResponse(uid="1", allowed=True)]

    def test_the_api_is_away(self) -> None:
        """B6: there is no address without a write that was confirmed."""
        office = Office()
        office.client.away = True
        with pytest.raises(UnavailableError, match="connection refused"):
            answer(office, ask())

    def test_the_object_is_missing(self) -> None:
        """B5: nothing is given from a range whose object is not there: the repairer makes it from the Services."""
        office = Office()
        office.store.delete(SMALL)
        with pytest.raises(UnavailableError, match="cannot be given at present"):
            answer(office, ask())

    def test_an_answer_that_comes_too_late(self) -> None:
        """B6: nobody waits for it any more, so what was given is given back."""
        office = Office()
        office.client.latency = lambda: 1.0

        async def all_of_it() -> None:
            reviewer = Reviewer(office)
            with pytest.raises(UnavailableError, match=r"no answer within 2\.5 s"):
                await reviewer.review(ask(), 2.5)
            await reviewer.close()

        simulate(all_of_it())
        assert office.store.writes == 2
        assert untouched(office)

    def test_it_can_be_asked_again(self) -> None:
        """B6: that there was no answer is not remembered."""
        office = Office()
        office.client.away = True

        async def all_of_it() -> AdmissionResponse:
            reviewer = Reviewer(office)
            with pytest.raises(UnavailableError):
                await reviewer.review(ask(), WITHIN)
            office.client.away = False
            return await reviewer.review(ask(), WITHIN)

        assert simulate(all_of_it()).allowed


class TestSameQuestion:
    """A question that comes again."""

    def test_the_same_answer(self) -> None:
        """B6: it gets the same answer, and no second address, also while the first is being looked for."""
        office = Office()

        async def all_of_it() -> list[AdmissionResponse]:
            reviewer = Reviewer(office, clock=asyncio.get_running_loop().time)
            both = await asyncio.gather(reviewer.review(ask(), WITHIN), reviewer.review(ask(), WITHIN))
            return [*both, await reviewer.review(ask(), WITHIN)]

        first, second, third = simulate(all_of_it())
        assert first == second == third
        assert office.held() == ["10.96.0.17"]

    def test_not_for_ever(self) -> None:
        """B6: answers are forgotten, so that a process that runs for months does not grow."""
        office = Office()

        async def all_of_it() -> None:
            reviewer = Reviewer(office, clock=asyncio.get_running_loop().time)
            for number in range(3):
                await reviewer.review(ask(uid=str(number)), WITHIN)
            await asyncio.sleep(MEMORY + 1)
            await reviewer.review(ask(uid="0"), WITHIN)
            assert len(reviewer._answers) == 1

        simulate(all_of_it())
        assert len(office.held()) == 4

    def test_only_so_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """B6: of many the newest are remembered, and of a question without an answer nothing is, asked for or not."""
        monkeypatch.setattr(review, "QUESTIONS_MAX", 2)
        office = Office()

        async def all_of_it() -> None:
            reviewer = Reviewer(office, clock=asyncio.get_running_loop().time)
            office.client.latency = lambda: 1.0
            slow = [asyncio.create_task(reviewer.review(ask(uid=each), 0.5)) for each in "ab"]
            await asyncio.sleep(0.1)
            with pytest.raises(UnavailableError, match="too many questions at once"):
                await reviewer.review(ask(uid="c"), WITHIN)
            await asyncio.gather(*slow, return_exceptions=True)
            await reviewer.close()
            assert (reviewer._under_way, reviewer._answers) == ({}, {})
            for number in range(5):
                await reviewer.review(ask(uid=str(number)), WITHIN)
            assert list(reviewer._answers) == ["3", "4"]

        simulate(all_of_it())
