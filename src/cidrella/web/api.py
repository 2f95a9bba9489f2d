"""What the page and scripts are told, as JSON: `/api/v1/…`. docs/page-api.md says what each field means.

These are promises: a field may be added, none changes its meaning or goes. Text may come from anybody who can write to
the cluster, and is text: whoever shows it must not take it for markup.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from msgspec import Struct, field

T = TypeVar("T")

COUNT_MAX: Final = (1 << 53) - 1
"""Counts that are larger are given as this: it is what every reader of JSON can hold."""


class Doc(Struct, rename="camel", frozen=True):
    """What all of them have in common."""


class Facts(Doc, frozen=True, kw_only=True):
    """The process that answers, and the cluster that it looks after."""

    name: str
    """The cluster, as far as it has a name; else where its API server is."""
    replica: str
    """The process, by its identity in the election."""
    program: str
    """"cidrella 0.1.0"."""
    leading: bool
    """Whether this replica gives blocks; others only look on."""
    missing: list[str]
    """What keeps it from being ready, in words; empty where it is ready."""
    remarks: list[str]
    """What cannot be shown, or may be out of date, and why: Services that may not be listed."""


class Range(Doc, frozen=True, kw_only=True):
    """A range that no other contains: what the map is made of."""

    range: str
    family: str
    """IPv4 or IPv6, here and everywhere."""
    pools: list[str]
    """The pools that hand out blocks of it, or of parts of it."""
    services: list[str]
    """The service ranges in it."""


class PoolFamily(Doc, frozen=True, kw_only=True):
    """One family of a pool. Counts are of blocks."""

    family: str
    range: str
    block_size: int
    """The length of a block's prefix."""
    total: int
    used: int
    """Those that nodes of the pool touch."""
    free: int
    """Those that could be given now; others may be held by somebody else, or the pool gives nothing."""


class Forecast(Doc, frozen=True, kw_only=True):
    """When a pool is full at the rate of late. Nothing where it does not grow, or too little is known."""

    exhausted_at: str | None = None
    rate_per_hour: float | None = None
    """Blocks."""
    text: str = ""


class Pool(Doc, frozen=True, kw_only=True):
    """A pool, and how it stands."""

    name: str
    kind: str
    """That of its object; "" for the pool of the flags."""
    state: str
    """active, full, terminating, invalid, or pending: it has yet to get its finalizer."""
    message: str
    """The state in a sentence."""
    selector: str
    """As text; "" for a default."""
    families: list[PoolFamily]
    nodes: int
    """Those that use it."""
    utilisation: float
    """The part that somebody holds, 0 to 1; of the family that is fullest."""
    forecast: Forecast


class Node(Doc, frozen=True, kw_only=True):
    """A node, what it holds, and how it stands."""

    name: str
    blocks: list[str]
    """Those that can be read."""
    pools: list[str]
    """For each block, the pool that it counts towards; "" where it is in none."""
    state: str
    """served, pending (being written), waiting, untracked (in no pool), conflict, or unreadable."""
    terminating: bool
    since: str
    """When this process first saw it stand so; while nobody looked, when it came to have these blocks, or none."""
    reason: str
    """Why it waits, or what is wrong, in the words of `cidrella explain`; "" where all is well."""
    help: str
    """What would help; "" where nothing has to."""


class Band(Doc, frozen=True, kw_only=True):
    """A part of a service range. Counts are of addresses."""

    first: str
    last: str
    total: int
    used: int


class ServiceRange(Doc, frozen=True, kw_only=True):
    """A range that Services get their addresses from."""

    range: str
    family: str
    source: str
    """The flag, or the ServiceCIDR."""
    static: Band | None
    """Where people choose addresses; None where a range is too small for two bands, or is not banded."""
    dynamic: Band | None
    """Where addresses are drawn."""
    message: str
    """Why it is not used, or not as it could be; "" where all is well."""


class Service(Doc, frozen=True, kw_only=True):
    """An address that a Service has."""

    address: str
    range: str
    """The service range that it is in; "" for one in none."""
    band: str
    """static, dynamic, or ""."""
    holder: str
    """namespace/name; where several Services have it, all of them, with a comma between."""


class Event(Doc, frozen=True, kw_only=True):
    """Something that was told of a node or a pool."""

    id: str
    """The same event told again, with a higher count, has the same."""
    time: str
    type: str
    """Normal or Warning."""
    reason: str
    """One word."""
    kind: str
    name: str
    """What it is about."""
    note: str
    count: int


class Allocation(Doc, frozen=True, kw_only=True):
    """A node came to have blocks, or left them behind, while this process looked on."""

    time: str
    what: str
    """given or released."""
    node: str
    blocks: list[str]
    pools: list[str]
    """As a node's."""


class State(Doc, frozen=True, kw_only=True):
    """Everything: `GET /api/v1/state`."""

    version: int
    """Changes are numbered; the stream goes on from here."""
    taken: str
    cluster: Facts
    families: list[str]
    """Those in use, IPv4 first."""
    ranges: list[Range]
    pools: list[Pool]
    nodes: list[Node]
    service_ranges: list[ServiceRange]
    services: list[Service]
    events: list[Event]
    """The last ones, the newest last."""
    allocations: list[Allocation]
    """Likewise."""


class Delta(Struct, Generic[T], rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """What changed in a collection."""

    set: list[T] = field(default_factory=list)
    """New, or to be put in place of the one with the same name."""
    gone: list[str] = field(default_factory=list)
    """Names, or addresses of Services."""


class Change(Doc, frozen=True, kw_only=True, omit_defaults=True):
    """What changed: an event of `GET /api/v1/stream`. What is left out did not."""

    version: int
    taken: str
    cluster: Facts | None = None
    families: list[str] | None = None
    ranges: list[Range] | None = None
    """All of them, here and below."""
    service_ranges: list[ServiceRange] | None = None
    pools: Delta[Pool] | None = None
    nodes: Delta[Node] | None = None
    services: Delta[Service] | None = None
    """By address."""
    events: list[Event] | None = None
    """New ones, or known ones told again, by id."""
    allocations: list[Allocation] | None = None
    """New ones."""


class Verdict(Doc, frozen=True, kw_only=True):
    """A pool, as `cidrella explain` judges it for a node."""

    pool: str
    applies: bool
    why: str
    room: bool
    before_next: str
    """The rule that puts it before the next one; "" where there is none."""


class Explanation(Doc, frozen=True, kw_only=True):
    """Why a node has what it has: `GET /api/v1/explain/NODE`."""

    node: Node
    labels: dict[str, str]
    pools: list[Verdict]
    """Those that apply in the order in which they are tried, then the others."""


class Pools(Doc, frozen=True, kw_only=True):
    """`GET /api/v1/pools`."""

    version: int
    pools: list[Pool]


class Nodes(Doc, frozen=True, kw_only=True):
    """`GET /api/v1/nodes`."""

    version: int
    nodes: list[Node]


class Services(Doc, frozen=True, kw_only=True):
    """`GET /api/v1/services`."""

    version: int
    service_ranges: list[ServiceRange]
    services: list[Service]


class Fault(Doc, frozen=True, kw_only=True):
    """What an answer that is no success says."""

    error: str
