"""The terms of a repairer: who may free, and who may not any more."""

from __future__ import annotations

import pytest

from cidrella.serviceip.errors import DeposedError
from cidrella.serviceip.tenure import Tenure
from tests.kube.simulated import simulate
from tests.serviceip.store import SMALL, Store, StoreClient, make_ledger


def test_a_term_is_written_into_the_object() -> None:
    """B6: each term is another, and is what the object says from then on."""

    async def scenario() -> None:
        store = Store()
        store.make(SMALL)
        tenure = Tenure(lambda: True, "me")
        ledger = make_ledger(StoreClient(store))
        terms = set()
        for _ in range(2):
            tenure.begin()
            await tenure.appoint(ledger)
            assert (await ledger.refresh()).repairer == tenure.term
            terms.add(tenure.term)
            tenure.require(tenure.term)
        assert len(terms) == 2
        assert all(term.startswith("me/") for term in terms)

    simulate(scenario())


def test_a_lease_that_has_run_out_by_the_clock() -> None:
    """B6: one that was asleep for longer than its lease writes no term and frees nothing, before anybody tells it."""

    async def scenario() -> None:
        store = Store()
        store.make(SMALL)
        leads = True
        tenure = Tenure(lambda: leads, "me")
        tenure.begin()
        tenure.take_up()
        on = [tenure.on]
        leads = False
        on.append(tenure.on)
        assert on == [True, False]
        with pytest.raises(DeposedError):
            tenure.require(tenure.term)
        with pytest.raises(DeposedError):
            await tenure.appoint(make_ledger(StoreClient(store)))
        assert store.objects["10.96.0.0-26"]["repairer"] == "term-1"

    simulate(scenario())


def test_the_end_of_a_term() -> None:
    """B6: what was planned in one term is not done in the next, nor when there is none."""

    async def scenario() -> None:
        tenure = Tenure(lambda: True, "me")
        with pytest.raises(DeposedError):
            tenure.require("")
        tenure.begin()
        earlier = tenure.term
        tenure.take_up()
        tenure.lay_down()
        assert not tenure.on
        with pytest.raises(DeposedError):
            tenure.require(earlier)
        tenure.begin()
        with pytest.raises(DeposedError):
            tenure.require(earlier)

    simulate(scenario())
