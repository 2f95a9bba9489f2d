"""These tests run on both servers; what does not is listed, with a reason, and the list is true."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.only_kubernetes import ONLY_KUBERNETES, only_kubernetes
from tests.testenv.embedded import Embedded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent


def collected_here(session: pytest.Session) -> Iterator[tuple[str, str, bool]]:
    """The tests of this directory that are collected: file, name, and whether it is for the embedded API."""
    for item in session.items:
        if isinstance(item, pytest.Function) and item.path.parent == HERE:
            parameters = item.callspec.params if hasattr(item, "callspec") else {}
            yield item.path.name, item.originalname, parameters.get("server") is Embedded


def test_nothing_is_left_out_unseen(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    """A test runs on the embedded API as well, or the list says why not; never both."""
    if request.config.option.keyword:
        pytest.skip("only some of the tests are run")
    everything = set(collected_here(request.session))
    embedded = {(file, test) for file, test, on_embedded in everything if on_embedded}
    alone = {(file, test) for file, test, _ in everything} - embedded
    assert not [each for each in alone if not only_kubernetes(*each)], "not on the embedded API, and not in the list"
    assert not [each for each in embedded if only_kubernetes(*each)]
    reasons = Counter(only_kubernetes(*each) for each in alone)
    record_property("on both servers", len(embedded))
    record_property("on Kubernetes alone", len(alone))
    for reason, count in reasons.most_common():
        record_property(reason, count)


@pytest.mark.parametrize("key", ONLY_KUBERNETES)
def test_the_list_is_true(key: str) -> None:
    """What it names is there."""
    file, _, test = key.partition("::")
    assert not test or f"def {test}(" in (HERE / file).read_text()
    assert (HERE / file).exists()
