"""From kube-controller-manager's own allocator to Cidrella, back, and forth again: `make migration`.

Not among the tests that are always run, for kube-controller-manager takes minutes to build where it is not there yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.site import POOL_ANNOTATION
from tests.testenv.binaries import find
from tests.testenv.nodes import NODES, assert_no_overlap, create_nodes, pod_cidrs
from tests.testenv.processes import Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.real.site import Site
    from tests.testenv.client import Json

MANAGER = "kube-controller-manager"
SIZES = {"10.1.0.0/16": "/25", "fd00:1::/48": "/64"}


@pytest.mark.parametrize("ranges", [["10.1.0.0/16", "fd00:1::/48"], ["fd00:1::/48", "10.1.0.0/16"]])
def test_there_and_back_again(site: Site, ranges: list[str]) -> None:
    """F1, F4, N2: with the same flags nothing changes for any node, old or new, whoever allocates."""
    flags = [f"--cluster-cidr={','.join(ranges)}", "--node-cidr-mask-size-ipv4=25", "--node-cidr-mask-size-ipv6=64"]
    manager = Process(
        MANAGER,
        [
            find([MANAGER])[MANAGER],
            f"--kubeconfig={site.cluster.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            "--controllers=node-ipam-controller",
            "--allocate-node-cidrs=true",
            *flags,
        ],
        site.directory / "manager.log",
    )
    multi = site.replica(*flags).process
    old_way = site.replica("--cidr-allocator-type=RangeAllocator", *flags).process
    given: dict[str, list[str]] = {}
    try:
        for phase, process in enumerate((manager, multi, manager, old_way, manager, multi)):
            process.start()
            given = serve(site, given, f"p{phase}", lambda process=process: process.tail(5))  # type: ignore[misc]
            process.stop()
    finally:
        manager.stop()
    for blocks in given.values():
        assert ["/" + block.partition("/")[2] for block in blocks] == [SIZES[each] for each in ranges]
    named = {each["metadata"]["name"] for each in site.admin.items(NODES) if _pool(each)}
    assert named == {name for name in given if name.startswith(("p1", "p5"))}


def _pool(node: Json) -> str:
    """The pool that a node's annotation names, as it does where the multi-range allocator served it."""
    return str(node["metadata"].get("annotations", {}).get(POOL_ANNOTATION, ""))


def serve(
    site: Site, given: dict[str, list[str]], prefix: str, explain: Callable[[], str], count: int = 15
) -> dict[str, list[str]]:
    """Nodes come, and are served; those that were there before keep what they have. What all have now."""
    names = [f"{prefix}-{number}" for number in range(count)]
    create_nodes(site.admin, names)
    try:
        site.wait_served(*names, seconds=60)
    except TimeoutError as error:
        raise AssertionError(explain()) from error
    nodes = site.admin.items(NODES)
    assert_no_overlap(nodes)
    now = pod_cidrs(nodes)
    assert given.items() <= now.items()
    return now
