"""What the pages for operators say is what the program does: flags, metrics, events, links, examples."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from msgspec import Struct
from msgspec.structs import fields

from cidrella.app.settings import table
from cidrella.app.webhook_settings import WebhookSettings
from cidrella.controller.metrics import GAUGES, Metrics
from cidrella.core.bands import Band, ServiceRange
from cidrella.core.cluster import Cluster
from cidrella.core.decision import Reason
from cidrella.core.prefix import Prefix
from cidrella.core.repair import Wrong
from cidrella.model.decode import decode
from cidrella.model.kinds import POOL_KINDS
from cidrella.model.validate import validate_pool
from cidrella.serviceip.metrics import Metrics as ServiceMetrics
from cidrella.serviceip.notices import CORRUPT, REBUILT
from cidrella.web import api
from cidrella.web.board import LAST
from cidrella.web.doors import SESSION, SUSPECTS_MAX
from cidrella.web.series import WebSeries
from cidrella.web.server import API
from cidrella.web.stream import HEARTBEAT, LASTS, STALLED, VIEWERS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cidrella.app.setting import Setting

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
OPERATORS = [
    DOCS / f"{name}.md"
    for name in ("install", "configs", "services", "flags", "metrics", "events", "migration", "page-api")
]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^( *)```yaml\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def test_flags() -> None:
    """F2: the page lists every flag with its default and meaning, as the program itself has them."""
    run, webhook = table(), table(WebhookSettings)
    own = [row for name, row in webhook.items() if row != run.get(name)]
    assert {row.group for row in run.values()} >= {row.group for row in webhook.values() if row not in own}
    parts = [
        "## Flags of `cidrella run`\n",
        *flag_tables(run.values()),
        "## Flags of `cidrella webhook`\n",
        "Beside these, it has those of `cidrella run` on the API server, leader election and operation.\n",
        *flag_tables(own),
    ]
    expected = "\n".join(parts)
    page = (DOCS / "flags.md").read_text()
    assert page.partition("-->\n\n")[2] == expected, f"docs/flags.md should end so:\n\n{expected}"


def test_metrics() -> None:
    """O1, B10: the page has every metric, under its name and type, and no other."""
    rows = re.findall(r"^\| `([a-z_]+)` \| (\w+) \|", (DOCS / "metrics.md").read_text(), re.MULTILINE)
    assert dict(rows) == exposed()


def test_page_api() -> None:
    """The page on the API has every field of every document, every path, and the bounds that there are."""
    text = (DOCS / "page-api.md").read_text()
    documents = [each for each in vars(api).values() if isinstance(each, type) and issubclass(each, Struct)]
    named = {field.encode_name for document in documents for field in fields(document)}
    assert len(documents) >= 20
    assert {name for name in named if f"`{name}`" not in text and f'"{name}"' not in text} == set()
    for path in ("state", "stream", "pools", "nodes", "services", "explain/NODE"):
        assert f"`{API}/{path}`" in text
    words = {2: "two", 10: "ten", 12: "twelve"}
    for said in (
        f"last {LAST} that",
        f"session of {words[int(SESSION / 3600)]} hours",
        f"at most {words[SUSPECTS_MAX]} at a time",
        f"At most {VIEWERS_MAX} can follow",
        f"ends after {words[int(LASTS / 60)]} minutes",
        f"within {words[int(STALLED)]} seconds is cut off",
        f"comes every {HEARTBEAT:g} seconds",
    ):
        assert said in text


class TestAlerts:
    """The alerts are rules that Prometheus can load, on metrics that exist."""

    def test_metrics_exist(self) -> None:
        """Whatever an expression asks for is exposed."""
        names = exposed()
        series = names.keys() | {f"{name}_bucket" for name, kind in names.items() if kind == "histogram"}
        asked = {word for rule in alerts() for word in re.findall(r"\b(?:cidrella|node_ipam)_\w+", rule["expr"])}
        assert asked <= series
        assert len(asked) >= 7

    def test_each_says_what_is_wrong(self) -> None:
        """Somebody is woken by it: how bad it is, how long it has been so, and what it means."""
        for rule in alerts():
            assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
            assert rule["labels"]["severity"] in {"warning", "critical"}
            assert rule["annotations"]["summary"].endswith((".", "?"))
            assert rule["expr"].count("(") == rule["expr"].count(")")


def test_events() -> None:
    """O3, N4, N5, N6, N7, N10, B8: the page says what to do about each event that an object can get, and no other."""
    page = (DOCS / "events.md").read_text()
    nodes, _, rest = page.partition("## On pools")
    pools, _, rest = rest.partition("## On Services")
    services, _, allocations = rest.partition("## On RangeAllocations")
    told = {each.value for each in Reason} - {Reason.NONE.value, Reason.TERMINATING.value}
    assert set(re.findall(r"^\| `(\w+)` \|", nodes, re.MULTILINE)) == told
    assert re.findall(r"^\| `(\w+)` \| [A-Z]", pools, re.MULTILINE)[0] == "Invalid"
    assert re.findall(r"^\| `(\w+)` \|", services, re.MULTILINE) == [each.value for each in Wrong]
    assert re.findall(r"^\| `(\w+)` \|", allocations, re.MULTILINE) == [CORRUPT, REBUILT]


def test_conditions() -> None:
    """P4: the page has the conditions that the rules define, row by row."""
    row = re.compile(r"^\s*\| `(\w+)` \| (True|False) \| `(\w+)` \|", re.MULTILINE)
    assert row.findall((DOCS / "events.md").read_text()) == row.findall((DOCS / "rules.md").read_text())


def test_settings_elsewhere() -> None:
    """O5: the page on installing names what has to be set outside Cidrella."""
    page = (DOCS / "install.md").read_text()
    for setting in ("--allocate-node-cidrs=false", "--detect-local-mode=NodeCIDR", "--max-pods"):
        assert setting in page


def test_bands() -> None:
    """B1, B2: the page on Services has the bands as they are."""
    rows = re.findall(r"^\| ([0-9a-f.:]+/\d+) \| (.*) \|$", (DOCS / "services.md").read_text(), re.MULTILINE)
    assert len(rows) >= 7
    for cidr, rest in rows:
        found = ServiceRange.of(Prefix.parse(cidr))
        cells = [f"{found.usable:,}"]
        for first, end in (found.bounds(Band.STATIC), found.bounds(Band.DYNAMIC)):
            spanned = f"{found.address(first)} \N{EN DASH} {found.address(end - 1)}" if end > first else ""
            cells += [f"{end - first:,}" if end > first else "none", spanned]
        assert [cell.strip() for cell in rest.split("|")] == cells


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path) -> None:
    """Every link within the project leads to a file, and to a heading in it."""
    for link in LINK.findall(page.read_text()):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        found = (page.parent / target) if target else page
        assert found.exists(), link
        if anchor:
            assert anchor in anchors(found), link


@pytest.mark.parametrize("page", OPERATORS, ids=lambda page: page.name)
def test_examples(page: Path) -> None:
    """Every example is YAML, and every pool in one is valid."""
    for block in yaml_blocks(page):
        for document in yaml.safe_load_all(block):
            for kind in POOL_KINDS:
                if document.get("kind") == kind.kind:
                    pool = decode(document, kind.struct)
                    assert not isinstance(pool, list), pool
                    assert validate_pool(pool) == []


def alerts() -> list[dict[str, Any]]:
    """The rules of the page on metrics."""
    (text,) = yaml_blocks(DOCS / "metrics.md")
    (group,) = yaml.safe_load(text)["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def flag_tables(settings: Iterable[Setting]) -> Iterator[str]:
    """The end of docs/flags.md: a table for each group of settings."""
    for group, rows in groupby(settings, key=lambda row: row.group):
        yield f"### {group.value}\n"
        yield "| flag | value | default | |"
        yield "|---|---|---|---|"
        for row in rows:
            value = row.kind.placeholder.replace("|", "\\|")
            default = f"`{row.default}`" if row.default not in {"", "0"} else ""
            yield f"| `{row.flag}` | `{value}` | {default} | {row.help} |"
        yield ""


def exposed() -> dict[str, str]:
    """Every metric that the controller and the webhook expose, by the name of its series, with its type."""
    metrics = Metrics()
    metrics.attach(Cluster(), dict.fromkeys(GAUGES, lambda: 0.0), dict)
    ServiceMetrics(metrics.registry, tuple)
    WebSeries(metrics.registry)
    families = metrics.registry.collect()
    return {f"{each.name}_total" if each.type == "counter" else each.name: each.type for each in families}


def yaml_blocks(page: Path) -> list[str]:
    """The fenced blocks of YAML on a page, unindented."""
    return [re.sub(f"^{indent}", "", text, flags=re.MULTILINE) for indent, text in FENCED.findall(page.read_text())]


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings can be linked to."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}
