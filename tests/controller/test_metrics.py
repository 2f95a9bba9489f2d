"""The series that dashboards show: names, labels, values, and that they go with their pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from cidrella.controller.metrics import GAUGES, Metrics
from cidrella.controller.no_cidr_reason import NoCidrReason
from cidrella.core.cluster import Cluster
from tests.core.build import node, nodes, spec

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "node_ipam_controller_multicidrset_"
V4 = {"clusterCIDR": "10.0.0.0/26", "clusterCIDRName": "dual"}
V6 = {"clusterCIDR": "fd00::/112", "clusterCIDRName": "dual"}


def series(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return dict(_samples(metrics))


def _samples(metrics: Metrics) -> Iterator[tuple[tuple[str, frozenset[tuple[str, str]]], float]]:
    for family in text_string_to_metric_families(generate_latest(metrics.registry).decode()):
        for each in family.samples:
            yield (each.name, frozenset(each.labels.items())), float(each.value)


def test_the_series_of_a_pool() -> None:
    """O1, pitfall 21: counts and histogram by range and name, usage as what is not free; all gone with the pool."""
    cluster, metrics = Cluster(), Metrics()
    metrics.attach(cluster, dict.fromkeys(GAUGES, lambda: 7.0), dict)
    pool = cluster.add_pool(spec("dual", "10.0.0.0/26 /28", "fd00::/112 /120"))
    for decision in cluster.decide_many(nodes(2)):
        metrics.allocated(decision, 0.2)
    cluster.observe(node("found", has="10.0.0.32/28"))
    metrics.released(cluster.uses("n0"))
    found = series(metrics)

    def value(name: str, labels: dict[str, str]) -> float | None:
        return found.get((name, frozenset(labels.items())))

    for labels, usage, most in ((V4, 0.75, 4), (V6, 2 / 256, 256)):
        assert value(f"{PREFIX}cidrs_allocations_total", labels) == 2
        assert value(f"{PREFIX}cidrs_releases_total", labels) == 1
        assert value(f"{PREFIX}usage_cidrs", labels) == usage
        assert value(f"{PREFIX}max_cidrs", labels) == most
        assert value(f"{PREFIX}allocation_tries_per_request_count", labels) == 2
        assert value(f"{PREFIX}allocation_tries_per_request_bucket", labels | {"le": "1.0"}) == 2
        assert value(f"{PREFIX}allocation_tries_per_request_bucket", labels | {"le": "625.0"}) == 2
    assert value("cidrella_node_allocation_seconds_count", {}) == 2
    assert all(value(name, {}) == 7 for name in GAUGES)

    metrics.pool_gone(pool)
    cluster.remove_pool("dual")
    assert not [name for name, labels in series(metrics) if ("clusterCIDRName", "dual") in labels]


def test_requests_are_counted() -> None:
    """O1: requests by verb and code; a watch is no measure of how fast the API is."""
    metrics = Metrics()
    metrics.observe_request("patch", "200", 0.01)
    metrics.observe_request("watch", "200", 300.0)
    found = series(metrics)
    assert found["cidrella_api_requests_total", frozenset({("verb", "patch"), ("code", "200")})] == 1
    assert found["cidrella_api_requests_total", frozenset({("verb", "watch"), ("code", "200")})] == 1
    assert found["cidrella_api_request_seconds_count", frozenset({("verb", "patch")})] == 1
    assert ("cidrella_api_request_seconds_count", frozenset({("verb", "watch")})) not in found


def test_nodes_without_cidr() -> None:
    """O1: how many nodes have no podCIDRs is counted by reason, with a series for each reason."""
    metrics = Metrics()
    counts = dict.fromkeys(NoCidrReason, (0, 0)) | {NoCidrReason.REFUSED: (3, 2)}
    metrics.attach(Cluster(), dict.fromkeys(GAUGES, lambda: 0.0), lambda: counts)
    found = series(metrics)
    for name, expected in (("cidrella_nodes_without_cidr", 3), ("cidrella_nodes_without_cidr_over_a_minute", 2)):
        values = {dict(labels)["reason"]: value for (each, labels), value in found.items() if each == name}
        assert values == {reason.value: expected * (reason is NoCidrReason.REFUSED) for reason in NoCidrReason}
