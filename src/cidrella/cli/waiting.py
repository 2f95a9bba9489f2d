"""Why a node of a cluster still waits although there is something for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.cli.age import duration
from cidrella.core.decision import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.app.live import LeaseLook
    from cidrella.app.planning import Explanation


def remarks(report: Explanation, lease: LeaseLook) -> Iterator[str]:
    """What there is to say beyond the decision, a line each; nothing of a node that has a block or can have none."""
    if report.would_get is None:
        return
    gift = f"{', '.join(map(str, report.would_get.blocks))} from {' and '.join(report.would_get.pool_names)}"
    if report.decision.reason is Reason.UNINITIALIZED:
        yield f"with the labels that it has, it would get {gift}"
        return
    if report.unguarded:
        yield f"it would get {gift} once {_those(report)} its finalizer, which the controller installs (P1)"
    else:
        yield f"it would get {gift}"
    if report.others_waiting:
        some = "another node waits" if report.others_waiting == 1 else f"{report.others_waiting} other nodes wait"
        yield f"{some}, too, and may be served before it"
    yield _told_holder(lease)


def _those(report: Explanation) -> str:
    """The pools without a finalizer, named only where others have theirs."""
    assert report.would_get is not None
    if len(report.would_get.pool_names) == 1:
        return "that pool has"
    if report.unguarded == report.would_get.pool_names:
        return "each of them has"
    return f"{', '.join(report.unguarded)} has"


def _told_holder(lease: LeaseLook) -> str:
    """Who holds the Lease, and what that means for nodes that wait."""
    if lease.unknown:
        return f"who holds the Lease {lease.name} cannot be told: {lease.unknown}"
    if lease.holder is None:
        return f"no controller holds the Lease {lease.name}: nobody is there to serve it"
    identity, renewed, expired = lease.holder
    when = "" if renewed is None else f", renewed {duration(renewed)} ago"
    if expired:
        return f"{identity} held the Lease {lease.name}{when}: it ran out, and nobody is there to serve the node"
    return f"{identity} holds the Lease {lease.name}{when}, and should serve it at any moment"
