"""Why a node of a cluster still waits although there is something for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.cli.age import duration
from cidrella.core.decision import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cidrella.app.live import LeaseLook
    from cidrella.app.planning import Explanation


def remarks(report: Explanation, leases: Sequence[LeaseLook]) -> Iterator[str]:
    """What there is to say beyond the decision, a line each; nothing of a node that has a block or can have none."""
    if report.would_get is None:
        return
    gift = f"{', '.join(map(str, report.would_get.blocks))} from {' and '.join(report.would_get.pool_names)}"
    if report.decision.reason is Reason.UNINITIALIZED:
        yield f"with the labels that it has, it would get {gift}"
        if leases and not any(each.holder is not None and not each.holder.expired for each in leases):
            yield from _told_holders(leases)
        return
    if report.unguarded:
        yield f"it would get {gift} once {_those(report)} its finalizer, which the controller installs (P1)"
    else:
        yield f"it would get {gift}"
    if report.others_waiting:
        some = "another node waits" if report.others_waiting == 1 else f"{report.others_waiting} other nodes wait"
        yield f"{some}, too, and may be served before it"
    yield from _told_holders(leases)


def _those(report: Explanation) -> str:
    """The pools without a finalizer, named only where others have theirs."""
    assert report.would_get is not None
    if len(report.would_get.pool_names) == 1:
        return "that pool has"
    if report.unguarded == report.would_get.pool_names:
        return "each of them has"
    return f"{', '.join(report.unguarded)} has"


def _told_holders(leases: Sequence[LeaseLook]) -> Iterator[str]:
    """Which controller runs, and what that means for nodes that wait.

    One may hold the Lease of the election, or the heartbeat Lease, without an election. A Lease that is not held is no
    news where the other one is.
    """
    held = [each for each in leases if each.holder is not None and not each.holder.expired]
    known = held or [each for each in leases if each.unknown or each.holder is not None]
    if not known:
        yield f"no controller holds the Lease {' or '.join(each.name for each in leases)}: none is running"
    yield from map(_told_holder, known)


def _told_holder(lease: LeaseLook) -> str:
    """The holder of a Lease that is held, or was, or why that is not known."""
    if lease.holder is None:
        return f"cannot read the holder of the Lease {lease.name}: {lease.unknown}"
    identity, renewed = lease.holder.identity, lease.holder.renewed
    when = "" if renewed is None else f", renewed {duration(renewed)} ago"
    if lease.holder.expired:
        return f"{identity} held the Lease {lease.name}{when}: the Lease has expired, its controller is not running"
    return f"{identity} holds the Lease {lease.name}{when}, and should serve it at any moment"
