"""States of clusters for the page to show: one as people have them, and one as large as it gets."""

from __future__ import annotations

import ipaddress
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cidrella.core.decision import Decision, Outcome, Reason
from cidrella.core.explain import remedy
from cidrella.web import api

NOW = datetime.now(UTC).replace(microsecond=0)
FULL = "every pool that applies is full: {} (no IPv4 /24 left)"


def ago(**span: float) -> str:
    """A time in the past, as the API writes it."""
    return (NOW - timedelta(**span)).strftime("%Y-%m-%dT%H:%M:%SZ")


def help_for(reason: Reason, *, tried: int = 1) -> str:
    """What helps, in the words that the real thing has for it."""
    return remedy(Decision("", Outcome.WAITING, (), (), reason, "", tried))


def served(name: str, blocks: list[str], pool: str, state: str = "served") -> api.Node:
    """A node that has blocks."""
    return api.Node(
        name=name,
        blocks=blocks,
        pools=[pool if state != "untracked" else ""] * len(blocks),
        state=state,
        terminating=False,
        since=ago(hours=3),
        reason="",
        help="",
    )


def waiting(name: str, reason: str, *, minutes: float = 4, state: str = "waiting", tried: int = 1) -> api.Node:
    """A node that has none."""
    return api.Node(
        name=name,
        blocks=[],
        pools=[],
        state=state,
        terminating=False,
        since=ago(minutes=minutes),
        reason=reason,
        help=help_for(Reason.NOT_AVAILABLE, tried=tried),
    )


@dataclass
class PoolPlan:
    """A pool: what it gives, and how much of that is given. Several nodes a block would be too many."""

    name: str
    ranges: list[tuple[str, int]]
    """Each a range and the length of its blocks."""
    nodes: int
    prefix: str
    selector: str = ""
    kind: str = "ClusterCIDR"
    forecast: api.Forecast = field(default_factory=api.Forecast)

    def blocks(self, number: int) -> list[str]:
        """Those of its node with a number, from 0."""
        return [nth(cidr, length, number) for cidr, length in self.ranges]

    def pool(self, used: int) -> api.Pool:
        """How it stands with so many nodes."""
        families = [_family(cidr, length, used) for cidr, length in self.ranges]
        full = any(each.free == 0 for each in families)
        return api.Pool(
            name=self.name,
            kind=self.kind,
            state="full" if full else "active",
            message="It has no block left." if full else "It can give blocks.",
            selector=self.selector,
            families=families,
            nodes=used,
            utilisation=max((each.total - each.free) / each.total for each in families),
            forecast=self.forecast,
        )


def nth(cidr: str, length: int, number: int) -> str:
    """The block of a range with a number, without making all of them."""
    network = ipaddress.ip_network(cidr)
    address = network.network_address + (number << (network.max_prefixlen - length))
    return f"{address}/{length}"


def _family(cidr: str, length: int, used: int) -> api.PoolFamily:
    network = ipaddress.ip_network(cidr)
    total = min(1 << (length - network.prefixlen), api.COUNT_MAX)
    family = f"IPv{network.version}"
    return api.PoolFamily(
        family=family, range=cidr, block_size=length, total=total, used=min(used, total), free=max(total - used, 0)
    )


def facts(name: str) -> api.Facts:
    """A replica that leads."""
    return api.Facts(
        name=name, replica="cidrella-7d9f_0c4d", program="cidrella 0.1.0", leading=True, missing=[], remarks=[]
    )


def ranges_of(pools: list[api.Pool], services: list[api.ServiceRange]) -> list[api.Range]:
    """The ranges of pools and Services, of which here none contains another."""
    found = {
        family.range: api.Range(range=family.range, family=family.family, pools=[pool.name], services=[])
        for pool in pools
        for family in pool.families
    }
    found |= {
        each.range: api.Range(range=each.range, family=each.family, pools=[], services=[each.range])
        for each in services
    }
    return sorted(found.values(), key=lambda each: (each.family, ipaddress.ip_network(each.range)))


def service_range(cidr: str, static: int, taken: Counter[str]) -> api.ServiceRange:
    """A range of Services whose first so many addresses are the static band."""
    network = ipaddress.ip_network(cidr)
    first, last = network.network_address, network.broadcast_address
    end = network.num_addresses - 1
    return api.ServiceRange(
        range=cidr,
        family=f"IPv{network.version}",
        source="--service-cluster-ip-range",
        static=api.Band(first=str(first + 1), last=str(first + static), total=static, used=taken["static"]),
        dynamic=api.Band(
            first=str(first + static + 1), last=str(last - 1), total=end - static - 1, used=taken["dynamic"]
        ),
        message="",
    )


def services_in(cidr: str, static: int, names: list[str], seed: int) -> list[api.Service]:
    """Services with addresses: every fourth of them in the static band."""
    network = ipaddress.ip_network(cidr)
    draw = random.Random(seed)
    low = draw.sample(range(2, static), len(names))
    high = draw.sample(range(static + 1, min(network.num_addresses - 2, 1 << 20)), len(names))
    return [
        api.Service(
            address=str(network.network_address + (low[at] if at % 4 == 0 else high[at])),
            range=cidr,
            band="static" if at % 4 == 0 else "dynamic",
            holder=name,
        )
        for at, name in enumerate(names)
    ]


def showcase() -> api.State:
    """A cluster of some hundred nodes: two families, a pool that is nearly full, one that is, some who wait."""
    soon = api.Forecast(
        exhausted_at=(NOW + timedelta(hours=9)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        rate_per_hour=3.4,
        text="in about 9 hours at 3.4 blocks an hour",
    )
    plans = [
        PoolPlan("general", [("10.128.0.0/16", 24), ("fd12:3456:789a::/56", 64)], 143, "worker"),
        PoolPlan("gpu", [("10.132.0.0/20", 24)], 15, "gpu", "accelerator=nvidia", forecast=soon),
        PoolPlan("edge-berlin", [("10.140.0.0/21", 24)], 8, "edge-berlin", "site=berlin"),
        PoolPlan("edge-oslo", [("10.140.8.0/21", 24)], 3, "edge-oslo", "site=oslo"),
        PoolPlan("batch", [("10.136.0.0/18", 22)], 11, "batch", "pool=batch"),
        PoolPlan("ccc/storage", [("10.144.0.0/19", 25)], 41, "store", "role in (storage)", "ClusterCIDRConfig"),
    ]
    draw = random.Random(4)
    nodes: list[api.Node] = []
    for plan in plans:
        spread = int(plan.nodes * 1.25) if plan.name in {"general", "ccc/storage"} else plan.nodes
        nodes += [
            served(f"{plan.prefix}-{number + 1}", plan.blocks(number), plan.name)
            for number in sorted(draw.sample(range(spread), plan.nodes))
        ]
    reason = FULL.format("edge-berlin")
    nodes += [waiting(f"edge-berlin-{9 + at}", reason, minutes=4 + at) for at in range(3)]
    nodes.append(waiting("bare-7", "no pool applies to it", minutes=31, tried=0))
    conflict = "also held by batch-3 (10.136.8.0/22)"
    clash = served("batch-legacy", ["10.136.8.0/22"], "batch", "conflict")
    nodes.append(
        api.Node(
            name=clash.name,
            blocks=clash.blocks,
            pools=clash.pools,
            state="conflict",
            terminating=False,
            since=ago(days=2),
            reason=conflict,
            help=help_for(Reason.CONFLICT),
        )
    )
    names = [f"shop/{name}" for name in ("cart", "web", "search", "orders", "stock", "mail", "login", "pay")]
    names += [f"team-{at % 7}/svc-{at}" for at in range(40)]
    services = services_in("10.96.0.0/20", 256, names, 1)
    ranges = [service_range("10.96.0.0/20", 256, Counter(each.band for each in services))]
    pools = [plan.pool(plan.nodes) for plan in plans]
    given = [each for each in nodes if each.state == "served"][-24:]
    allocations = [_given(each, minutes=40 - at * 1.6) for at, each in enumerate(given)]
    events = [
        _warning(ago(days=2), "CIDRConflict", "batch-legacy", conflict),
        _warning(ago(minutes=31), "CIDRNotAvailable", "bare-7", "no pool applies to it", count=12),
        _warning(ago(minutes=4), "CIDRNotAvailable", "edge-berlin-9", reason, count=2),
    ]
    return api.State(
        version=0,
        taken=ago(),
        cluster=facts("north-1"),
        families=["IPv4", "IPv6"],
        ranges=ranges_of(pools, ranges),
        pools=pools,
        nodes=nodes,
        service_ranges=ranges,
        services=services,
        events=events,
        allocations=allocations,
    )


def _warning(time: str, reason: str, node: str, note: str, *, count: int = 1) -> api.Event:
    return api.Event(
        id=f"{reason} {node}",
        time=time,
        type="Warning",
        reason=reason,
        kind="Node",
        name=node,
        note=note,
        count=count,
    )


def _given(node: api.Node, *, minutes: float) -> api.Allocation:
    return api.Allocation(time=ago(minutes=minutes), what="given", node=node.name, blocks=node.blocks, pools=node.pools)


def crowd(nodes: int = 5000, pools: int = 1000) -> api.State:
    """As many nodes and pools as the page has to bear: some pools full, some nodes waiting, half of it dual-stack."""
    plans = [plan_of_crowd(number, nodes // pools) for number in range(pools)]
    made = [
        served(f"node-{number:04}-{at}.rack-{number}.example.com", plan.blocks(at), plan.name)
        for number, plan in enumerate(plans)
        for at in range(plan.nodes)
    ]
    made += [waiting(f"late-{number:04}", FULL.format(plans[number % 40].name)) for number in range(nodes - len(made))]
    states = [plan.pool(plan.nodes) for plan in plans]
    names = [f"team-{at % 50}/svc-{at}" for at in range(200)]
    services = services_in("172.20.0.0/16", 256, names, 2)
    ranges = [service_range("172.20.0.0/16", 256, Counter(each.band for each in services))]
    return api.State(
        version=0,
        taken=ago(),
        cluster=facts("crowd"),
        families=["IPv4", "IPv6"],
        ranges=ranges_of(states, ranges),
        pools=states,
        nodes=made,
        service_ranges=ranges,
        services=services,
        events=[_warning(ago(minutes=at), "CIDRNotAvailable", f"late-{at:04}", "it is full") for at in range(100)],
        allocations=[_given(each, minutes=at) for at, each in enumerate(made[:100])],
    )


def plan_of_crowd(number: int, nodes: int) -> PoolPlan:
    ranges = [(f"10.{number // 64}.{number % 64 * 4}.0/22", 25)]
    if number % 2:
        ranges.append((f"fd00:{number:x}::/56", 64))
    taken = 8 if number % 25 == 0 else nodes - (number % 6 == 1)
    return PoolPlan(f"rack-{number:04}", ranges, taken, "node", f"rack={number}")


def of_plans(plans: list[PoolPlan]) -> api.State:
    """Nothing but pools and their nodes, as they are planned."""
    pools = [plan.pool(plan.nodes) for plan in plans]
    nodes = [
        served(f"{plan.prefix}-{number}", plan.blocks(number), plan.name)
        for plan in plans
        for number in range(plan.nodes)
    ]
    ranges = ranges_of(pools, [])
    return api.State(
        version=0,
        taken=ago(),
        cluster=facts("planned"),
        families=sorted({each.family for each in ranges}),
        ranges=ranges,
        pools=pools,
        nodes=nodes,
        service_ranges=[],
        services=[],
        events=[],
        allocations=[],
    )
