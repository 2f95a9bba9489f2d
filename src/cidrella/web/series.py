"""What is counted of those who look (O1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class WebSeries:
    """The series of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.viewers = Gauge("cidrella_web_viewers", "Those who follow changes on the page.", registry=registry)
        self.dropped = Counter(
            "cidrella_web_viewers_dropped",
            "Those who were cut off because they did not read what they had asked for.",
            registry=registry,
        )
        self.refused = Counter(
            "cidrella_web_credentials_refused", "Wrong tokens and passwords that were shown.", registry=registry
        )
