"""Why a node has no podCIDRs, in a word for dashboards."""

from __future__ import annotations

from enum import Enum
from typing import Final

LONG: Final = 60.0
"""Seconds without podCIDRs after which an operator should know of a node."""


class NoCidrReason(Enum):
    """The label `reason` of the gauges of nodes without podCIDRs."""

    PENDING = "Pending"
    """It is about to be served."""
    FULL = "Full"
    """Every pool that matches it is full."""
    NO_MATCHING_POOL = "NoMatchingPool"
    TERMINATING = "Terminating"
    """The node is being deleted (N8)."""
    WAITING_FOR_CLOUD_PROVIDER = "WaitingForCloudProvider"
    """The cloud provider may still add labels that choose its pool (N10)."""
    REFUSED = "Refused"
    """The API server refused the last write."""
    UNKNOWN_OUTCOME = "UnknownOutcome"
    """A write was sent, by this leader or by another, and its outcome is not known."""
    HELD = "Held"
    """A block that may still be written to it is held, and no pool can give it another."""
    RECORD_FULL = "RecordFull"
    """The record of writes in the Lease has no room for another."""
    API_UNREACHABLE = "APIUnreachable"
