"""What dashboards show of Service addresses (B10): the series that Kubernetes has, under our name.

They are made from the ranges that there are when somebody asks, so that those of a range go with it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from cidrella.core.bands import Band

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

    from cidrella.core.prefix import Prefix
    from cidrella.serviceip.ledger import Ledger

_PREFIX: Final = "cidrella_clusterip_allocator"


class Metrics(Collector):
    """The series of the ranges that `ledgers` returns, in a registry that is there already.

    The scope says how an address was asked for: `static` is one that was named, `dynamic` one that was drawn.
    """

    def __init__(self, registry: CollectorRegistry, ledgers: Callable[[], Iterable[Ledger]]) -> None:
        self._ledgers = ledgers
        self._given: Counter[tuple[str, str]] = Counter()
        self._errors: Counter[tuple[str, str]] = Counter()
        registry.register(self)

    def given(self, cidr: Prefix, scope: Band) -> None:
        """An address of a range was given."""
        self._given[str(cidr), scope.value] += 1

    def failed(self, cidrs: Iterable[Prefix], scope: Band) -> None:
        """None of these ranges could give what was asked for."""
        self._errors.update((str(cidr), scope.value) for cidr in cidrs)

    def collect(self) -> Iterator[Metric]:
        """Every series, from what is known now."""
        allocated = GaugeMetricFamily(f"{_PREFIX}_allocated_ips", "Addresses that are given.", labels=("cidr",))
        available = GaugeMetricFamily(f"{_PREFIX}_available_ips", "Addresses that are free.", labels=("cidr",))
        scoped = ("cidr", "scope")
        total = CounterMetricFamily(f"{_PREFIX}_allocation", "Addresses given by this process.", labels=scoped)
        errors = CounterMetricFamily(f"{_PREFIX}_allocation_errors", "Requests that got no address.", labels=scoped)
        for ledger in list(self._ledgers()):  # ranges may come and go meanwhile, on another thread
            cidr = str(ledger.range.cidr)
            if (state := ledger.state) is not None:
                allocated.add_metric((cidr,), state.bitmap.count)
                available.add_metric((cidr,), ledger.range.usable - state.bitmap.count)
            for band in Band:
                total.add_metric((cidr, band.value), self._given[cidr, band.value])
                errors.add_metric((cidr, band.value), self._errors[cidr, band.value])
        yield from (allocated, available, total, errors)
