"""No logic is written twice for the kinds of pools: what goes over all of them cannot know the name of one.

A name counts in any spelling, in code as in text: a message or a docstring that speaks of one kind where both are meant
is wrong as well. The tests themselves may name kinds.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cidrella.model.kinds import POOL_KINDS

SOURCE = Path(__file__).parents[1] / "src" / "cidrella"
ADAPTER = "app/converting.py"
"""The one module above the model that is about the difference: it says pools of one kind as pools of the other."""
CONFIG = re.compile(r"cluster_?cidr_?config(?!Allocator)|\bccc\b", re.IGNORECASE)
EITHER = re.compile(r"ClusterCIDR|CLUSTER_CIDR(?!_FLAG)|clustercidrs?|POOLS_PATH|\bccc?/")


def naming(pattern: re.Pattern[str]) -> set[str]:
    """The modules that name a kind, as paths below the package."""
    modules = SOURCE.rglob("*.py")
    return {each.relative_to(SOURCE).as_posix() for each in modules if pattern.search(each.read_text())}


def test_the_patterns_find_every_kind() -> None:
    """K5: whatever a kind is called, by people, by the API or by kubectl, is found."""
    for kind in POOL_KINDS:
        for name in (kind.kind, kind.plural, kind.resource, kind.path):
            assert EITHER.search(name), name
            assert bool(CONFIG.search(name)) == kind.optional, name
        assert not kind.prefix or (CONFIG.search(kind.pool_name("x")) and EITHER.search(kind.pool_name("x")))


def test_one_kind_is_named_only_where_kinds_are_told_apart() -> None:
    """K5: the model knows the kinds, one adapter goes between them, and the command line speaks to people."""
    named = {each for each in naming(CONFIG) if each.split("/")[0] not in {"model", "cli"}}
    assert named == {ADAPTER}


@pytest.mark.parametrize("layer", ["controller", "core", "kube", "web"])
def test_nothing_that_knows_pools_knows_a_kind(layer: str) -> None:
    """K5, P6: the layers that work on pools name no kind at all, neither this one nor that."""
    assert not {each for each in naming(EITHER) if each.split("/")[0] == layer}
