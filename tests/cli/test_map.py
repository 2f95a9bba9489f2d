"""`cidrella map`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tests.cli.test_explain import pool
from tests.cli.test_plan import node, nodes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.run import Cidrella

SVG = "{http://www.w3.org/2000/svg}"
CLUSTER = (
    pool("p", "10.0.0.0/22", 8)
    + pool("q", "10.0.0.0/24", 7)
    + nodes(
        node("a", "10.0.0.0/24"),
        node("b", "10.0.0.0/25"),
        node("c"),
        node("far", "172.16.0.0/24"),
    )
)


def test_terminal(cidrella: Cidrella) -> None:
    """N6, A7: the picture shows who holds what, what is free, service ranges and conflicts, without needing colours."""
    result = cidrella("map", "-f", "-", "--service-cluster-ip-range", "10.0.3.0/24", stdin=CLUSTER)
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "10.0.0.0/22  25 % free  p (10.0.0.0/22 by /24), q (10.0.0.0/24 by /25)"
    bar = lines[1]
    assert len(bar) == 100
    assert (bar.count("!"), bar.count("█"), bar.count("·"), bar.count("▒")) == (13, 37, 25, 25)
    assert lines[2:6] == [
        "  ! 10.0.0.0/25  conflict: a, b",
        "  █ 10.0.0.128 - 10.0.1.255  p: a, c",
        "  · 10.0.2.0/24  free",
        "  ▒ 10.0.3.0/24  service range --service-cluster-ip-range",
    ]
    assert lines[7:9] == ["in no range: 1", "  172.16.0.0/24  far"]


def test_terminal_merges_neighbours(cidrella: Cidrella) -> None:
    """Blocks of one pool side by side share a line, and a crowd is counted, not listed."""
    text = pool("p", "10.0.0.0/16", 8) + nodes(*(node(f"n{number}") for number in range(9)))
    result = cidrella("map", "-f", "-", stdin=text)
    assert "  █ 10.0.0.0 - 10.0.8.255  p: n0, n1, n2, n3 and 5 more\n" in result.out
    assert "10.0.0.0/16  96 % free" in result.out


def test_terminal_cuts_what_is_long(cidrella: Cidrella) -> None:
    """A range in hundreds of pieces does not flood the terminal."""
    text = pool("p", "10.0.0.0/16", 8) + nodes(
        *(node(f"n{number}", f"10.0.{2 * number}.0/24") for number in range(100))
    )
    result = cidrella("map", "-f", "-", stdin=text)
    assert "  … and 160 more lines\n" in result.out


def test_nothing_to_draw(cidrella: Cidrella) -> None:
    """Input without any range is said to be so."""
    result = cidrella("map", "-f", "-", stdin=nodes(node("a")))
    assert result.out == "there is neither a pool nor a service range to draw\n"


def test_svg(cidrella: Cidrella, tmp_path: Path) -> None:
    """The SVG is well-formed, covers each range to the pixel, and names holders on hover."""
    path = tmp_path / "map.svg"
    result = cidrella("map", "-f", "-", "--svg", path, "--service-cluster-ip-range", "10.0.3.0/24", stdin=CLUSTER)
    assert (result.code, result.out) == (0, f"wrote {path}\n")
    root = ET.fromstring(path.read_text())
    areas = [each for each in root.iter(f"{SVG}rect") if "area" in each.get("class", "")]
    assert sum(float(each.get("width", "")) for each in areas) == 1000
    titles = [each.text for each in root.iter(f"{SVG}title")]
    assert titles == [
        "10.0.0.0/25\nconflict: a, b",
        "10.0.0.128/25\na\npool p",
        "10.0.1.0/24\nc\npool p",
        "10.0.2.0/24\nfree",
        "10.0.3.0/24\nservice range --service-cluster-ip-range",
    ]


def test_svg_escapes_text(cidrella: Cidrella) -> None:
    """Text from the cluster is never markup."""
    service = (
        "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: s}\nspec: {cidrs: [10.0.0.0/24]}\n---\n"
    )
    hostile = '{metadata: {name: n1, annotations: {"cidrella.dev/pool": "<script>"}}, spec: {podCIDRs: ["<b>&"]}}'
    result = cidrella("map", "-f", "-", "--svg", "-", stdin=service + nodes(hostile))
    ET.fromstring(result.out)
    assert "<script" not in result.out
    assert "<b>" not in result.out


def test_svg_of_a_crowd_stays_small(cidrella: Cidrella) -> None:
    """The SVG grows with what can be seen, not with what is held: 5,000 blocks that are too small to see are merged."""
    text = pool("p", "10.0.0.0/8", 4) + nodes(*(node(f"n{number}") for number in range(5000)))
    result = cidrella("map", "-f", "-", "--svg", "-", stdin=text)
    root = ET.fromstring(result.out)
    titles = [each.text or "" for each in root.iter(f"{SVG}title")]
    assert titles[0].startswith("5000 areas from 10.0.0.0/28 on\np: n0, n1, ")
    assert len(result.out) < 10_000
