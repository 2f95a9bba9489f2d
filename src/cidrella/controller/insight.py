"""What a controller shows to those who only look. They must change none of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cidrella.core.cluster import Cluster
    from cidrella.core.decision import Node
    from cidrella.model.flags import IpamFlags
    from cidrella.model.reading import SeenPool
    from cidrella.model.serviceip import SeenServiceCIDR


@dataclass(frozen=True, slots=True)
class Insight:
    """The books, and the objects that they are made from. All of it changes while one looks."""

    books: Cluster
    nodes: Mapping[str, Node]
    pools: Mapping[str, SeenPool]
    """The objects; the books may have a pool of the flags beside them."""
    service_ranges: Mapping[str, SeenServiceCIDR]
    flags: IpamFlags
    identity: str
    leads: Callable[[], bool]
    listed: Callable[[], bool]
    """Whether everything was seen once: before, a node's blocks may seem to be in no pool."""
    missing: Callable[[], list[str]]
    """What keeps the controller from being ready."""
    may_wait: Callable[[str], bool]
    """Whether a node may still wait for its cloud provider, by its name (N10)."""
