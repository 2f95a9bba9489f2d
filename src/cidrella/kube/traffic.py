"""What a client says of its requests, as metrics (O1)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from prometheus_client import Counter, Histogram, disable_created_metrics

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
"""The buckets of times: from what a request takes to what people do not wait for."""

disable_created_metrics()  # type: ignore[no-untyped-call] # a second series for each, of which nobody makes anything


class Traffic:
    """The requests of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        requests = Counter("cidrella_api_requests", "Requests to the API server.", ("verb", "code"), registry=registry)
        seconds = Histogram(
            "cidrella_api_request_seconds",
            "Seconds that requests to the API server took, watches apart.",
            ("verb",),
            buckets=SECONDS,
            registry=registry,
        )
        self._of_code = cache(requests.labels)
        self._of_verb = cache(seconds.labels)

    def observe(self, verb: str, code: str, seconds: float) -> None:
        """A request was answered, or was not."""
        self._of_code(verb, code).inc()
        if verb != "watch":
            self._of_verb(verb).observe(seconds)
