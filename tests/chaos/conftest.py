"""What the tests of the checker begin with."""

from __future__ import annotations

import pytest

from tests.chaos.story import Story


@pytest.fixture
def story() -> Story:
    """A pool of eight, and a node that has the first of them."""
    made = Story()
    made.pool("pool", ipv4="10.0.0.0/21")
    made.serve("a", "pool", "10.0.0.0/24")
    return made
