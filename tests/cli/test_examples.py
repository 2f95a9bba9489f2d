"""The examples do what they say, and the README shows what they print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from cidrella import __version__

if TYPE_CHECKING:
    from tests.cli.run import Cidrella

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def blocks(cidrella: Cidrella, example: str, at: Path = EXAMPLES) -> dict[str, str]:
    result = cidrella("plan", "-f", at / example, "-o", "json")
    assert result.code == 0, result.err
    return {each["name"]: ",".join(each["podCIDRs"]) for each in json.loads(result.out)["nodes"]}


@pytest.mark.parametrize("example", sorted(each.name for each in EXAMPLES.iterdir()))
def test_example_is_valid(cidrella: Cidrella, example: str) -> None:
    """Every example passes `cidrella validate`."""
    assert cidrella("validate", "-f", EXAMPLES / example).code == 0


def test_add_more_pod_ips(cidrella: Cidrella) -> None:
    """A6, P3: story 1 of KEP-2593. A second pool takes the nodes for which the first has no room; no node notices."""
    found = blocks(cidrella, "add-more-pod-ips.yaml")
    assert [found[f"node-{number}"] for number in (16, 17, 18, 19, 20)] == [
        "10.1.15.0/24",
        "10.2.0.0/24",
        "10.2.1.0/24",
        "10.2.2.0/24",
        "10.2.3.0/24",
    ]


def test_larger_nodes(cidrella: Cidrella) -> None:
    """A1, S1: story 2 of KEP-2593. Blocks of two sizes come from one range, side by side."""
    assert blocks(cidrella, "larger-nodes.yaml") == {
        "usual-1": "10.0.0.0/24",
        "usual-2": "10.0.1.0/24",
        "usual-3": "10.0.2.0/24",
        "large-1": "10.0.4.0/23",
        "usual-4": "10.0.3.0/24",
        "large-2": "10.0.6.0/23",
    }


def test_discontiguous_ranges(cidrella: Cidrella) -> None:
    """S3, S5, pitfall 23: story 3 of KEP-2593. Four ranges of /21 serve 32 nodes, in the order of their numbers."""
    found = blocks(cidrella, "discontiguous-ranges.yaml")
    assert len(set(found.values())) == 32
    assert [found[f"node-{number:02}"] for number in (1, 9, 17, 25, 32)] == [
        "10.8.16.0/24",
        "10.40.0.0/24",
        "172.20.64.0/24",
        "192.168.8.0/24",
        "192.168.15.0/24",
    ]


def test_changed_block_size(cidrella: Cidrella) -> None:
    """A6: story 1 of KEP-20200617. The size of blocks changes over the same range, and nothing overlaps (pitfall 2)."""
    assert blocks(cidrella, "changed-block-size.yaml") == {"node-1": "192.168.0.0/24", "node-3": "192.168.2.0/23"}


def test_families_apart(cidrella: Cidrella) -> None:
    """K3, K4: KEP-2594. IPv4 is chosen by rack and size, IPv6 is the same for all; which no ClusterCIDR can say."""
    assert blocks(cidrella, "families-apart.yaml") == {
        "node-1": "10.64.0.0/25,fd12:3456:789a::/64",
        "node-2": "10.64.0.128/25,fd12:3456:789a:1::/64",
        "node-3": "10.80.0.0/25,fd12:3456:789a:2::/64",
        "node-4": "10.80.1.0/24,fd12:3456:789a:3::/64",
        "node-5": "10.80.0.128/25,fd12:3456:789a:4::/64",
    }
    assert cidrella("convert", "-f", EXAMPLES / "families-apart.yaml").code == 3


@pytest.mark.parametrize("example", ["add-more-pod-ips.yaml", "larger-nodes.yaml", "discontiguous-ranges.yaml"])
def test_converted_examples(cidrella: Cidrella, tmp_path: Path, example: str) -> None:
    """S3, K4: the examples say the same with pools of the other kind, as far as these can say it."""
    path = tmp_path / "converted.yaml"
    path.write_text(cidrella("convert", "-f", EXAMPLES / example).out)
    nodes = [each for each in yaml.safe_load_all((EXAMPLES / example).read_text()) if each["kind"] == "NodeList"]
    path.write_text(path.read_text() + "---\n" + yaml.safe_dump_all(nodes))
    assert "ClusterCIDRConfig" in path.read_text()
    assert blocks(cidrella, path.name, at=tmp_path) == blocks(cidrella, example)


@pytest.mark.parametrize(("page", "least"), [("README.md", 6), ("docs/services.md", 2)])
def test_pages_show_what_the_commands_print(
    cidrella: Cidrella, monkeypatch: pytest.MonkeyPatch, page: str, least: int
) -> None:
    """Each `$ cidrella …` on a page is followed by what the command really prints."""
    monkeypatch.chdir(ROOT)
    text = (ROOT / page).read_text()
    sessions = [part.split("```")[0] for part in text.split("```console\n")[1:]]
    sessions = [each for each in sessions if each.startswith("$ cidrella ")]
    assert len(sessions) >= least
    for session in sessions:
        for command, _, shown in (part.partition("\n") for part in session.split("$ cidrella ")[1:]):
            assert cidrella(*command.split()).out.strip() == shown.strip(), command


def test_picture_in_the_readme_is_current(cidrella: Cidrella) -> None:
    """The picture of the example is what `cidrella map --svg` draws; `make pictures` draws it anew."""
    drawn = cidrella("map", "-f", EXAMPLES / "getting-started", "--svg", "-")
    assert (ROOT / "docs/images/getting-started.svg").read_text() == drawn.out


def test_committed_crds_are_current(cidrella: Cidrella) -> None:
    """C5, B5, K1: the committed copies of the CRDs are what `cidrella crds` prints; `make crds` writes them anew."""
    paths = {
        "clustercidrs.networking.x-k8s.io": "deploy/crds/networking.x-k8s.io_clustercidrs.yaml",
        "clustercidrconfigs.networking.x-k8s.io": "deploy/crds/networking.x-k8s.io_clustercidrconfigs.yaml",
        "rangeallocations.cidrella.dev": "deploy/webhook/crds/cidrella.dev_rangeallocations.yaml",
    }
    committed = [(ROOT / path).read_text() for path in paths.values()]
    assert [cidrella("crds", name).out for name in paths] == committed
    printed = cidrella("crds").out
    assert printed == "".join(committed)
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(printed)] == list(paths)
    assert set((ROOT / "deploy").glob("**/crds/*")) == {ROOT / path for path in paths.values()}


def test_crds_of_an_unknown_name(cidrella: Cidrella) -> None:
    """C5: a name that is none of ours is refused, with those that are."""
    refused = cidrella("crds", "clustercidrs")
    assert refused.code == 2
    assert "there is no definition clustercidrs;" in refused.err
    assert "rangeallocations.cidrella.dev" in refused.err


def test_version(cidrella: Cidrella) -> None:
    """`--version` says which one this is."""
    assert cidrella("--version").out == f"cidrella {__version__}\n"
