"""How hard the property tests try: chosen by the environment variable HYPOTHESIS_PROFILE.

- `default`: what every run of the tests can afford.
- `ci`: more examples, and the same ones each time, so that a red run can be repeated.
- `mutants`: few examples, the same each time, nothing kept on disk: each of a thousand mutants pays for them.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("default", max_examples=60, stateful_step_count=25, deadline=None)
settings.register_profile("ci", max_examples=300, stateful_step_count=50, deadline=None, derandomize=True)
settings.register_profile(
    "mutants",
    max_examples=20,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
