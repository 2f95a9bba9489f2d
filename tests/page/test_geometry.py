"""Where blocks are drawn, and how addresses are read: the page's own arithmetic, against Python's."""

from __future__ import annotations

import ipaddress
import random
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.page.viewer import search, settle

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.page.site import Site
    from tests.page.viewer import Viewer


def addresses(count: int) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Some of each family; in many of them long runs of zeros, for those are written in a special way."""
    draw = random.Random(7)
    found: list[ipaddress.IPv4Address | ipaddress.IPv6Address] = [
        ipaddress.ip_address(text) for text in ("::", "::1", "1::", "0.0.0.0", "255.255.255.255", "1:0:0:2:0:0:0:3")
    ]
    for _ in range(count):
        groups = [draw.choice([0, 0, draw.getrandbits(16)]) for _ in range(8)]
        found.append(ipaddress.IPv6Address(sum(group << 16 * at for at, group in enumerate(groups))))
        found.append(ipaddress.IPv4Address(draw.getrandbits(32)))
    return found


def test_addresses(page: Page) -> None:
    """Written as Python writes them, and read in whatever way they are written."""
    wanted = addresses(300)
    script = """async texts => {
        const { parsePrefix } = await import("./static/address.js");
        return texts.map(text => parsePrefix(text).text);
    }"""
    for form in (str, lambda each: each.exploded.upper()):
        found = page.evaluate(script, [form(each) for each in wanted])
        assert found == [f"{each}/{each.max_prefixlen}" for each in wanted]


@pytest.mark.parametrize(
    "text",
    [
        *("", "/", "0x1", "1:2:3", "12345::", "g::", "::1::", "fd00:::", "fd00::/129"),
        *("10.0.0/8", "10.0.0.256", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8/8"),
    ],
)
def test_what_is_no_address(page: Page, text: str) -> None:
    """What is none is read as none."""
    assert page.evaluate("async text => (await import('./static/address.js')).parsePrefix(text)", text) is None


def test_cover(page: Page) -> None:
    """Bands, from a first to a last address, are cut into the fewest prefixes."""
    script = """async pairs => {
        const { cover, parseAddress } = await import("./static/address.js");
        return pairs.map(([first, last]) => {
            const { family, value } = parseAddress(first);
            return cover(family, value, parseAddress(last).value).map(each => each.text);
        });
    }"""
    draw = random.Random(3)
    pairs = [sorted(ipaddress.IPv4Address(draw.getrandbits(32)) for _ in "12") for _ in range(50)]
    pairs.append([ipaddress.IPv4Address("0.0.0.0"), ipaddress.IPv4Address("255.255.255.255")])
    found = page.evaluate(script, [[str(each) for each in pair] for pair in pairs])
    assert found == [[str(each) for each in ipaddress.summarize_address_range(*pair)] for pair in pairs]


@pytest.mark.parametrize(
    ("cidr", "length"),
    [
        ("10.0.0.0/8", 24),
        ("10.0.0.0/16", 24),
        ("10.0.0.0/21", 24),
        ("10.0.0.0/30", 31),
        ("10.0.0.0/24", 24),
        ("10.96.0.0/12", 32),
        ("0.0.0.0/0", 16),
        ("fd00::/48", 64),
        ("fd00::/40", 120),
        ("fd00:1::/108", 128),
    ],
)
@pytest.mark.parametrize("flat", [False, True])
def test_places(page: Page, cidr: str, length: int, flat: bool) -> None:
    """What is apart is drawn apart; what is inside is drawn inside; a point leads back to what is drawn there."""
    network = ipaddress.ip_network(cidr)
    draw = random.Random(5)
    bits = network.max_prefixlen
    prefixes = []
    for _ in range(120):
        size = draw.randint(network.prefixlen, min(bits, network.prefixlen + 46))
        offset = draw.getrandbits(size - network.prefixlen) << (bits - size) if size > network.prefixlen else 0
        prefixes.append(ipaddress.ip_network(f"{network.network_address + offset}/{size}"))
    script = """async ([cidr, length, flat, texts]) => {
        const { parsePrefix } = await import("./static/address.js");
        const { Grid } = await import("./static/grid.js");
        const grid = new Grid(parsePrefix(cidr), length, flat);
        return texts.map(text => {
            const prefix = parsePrefix(text);
            const { x, y, w, h } = grid.place(prefix);
            return [x, y, w, h, grid.at(x + w / 2, y + h / 2, prefix.length).text];
        });
    }"""
    places = page.evaluate(script, [cidr, length, flat, [str(each) for each in prefixes]])
    for prefix, (x, y, w, h, back) in zip(prefixes, places, strict=True):
        assert back == str(prefix)
        assert 0 <= x <= x + w <= 1
        assert 0 <= y <= y + h <= 1
        assert w * h == pytest.approx(prefix.num_addresses / network.num_addresses)
        for other, (ox, oy, ow, oh, _) in zip(prefixes, places, strict=True):
            apart = ox >= x + w or ox + ow <= x or oy >= y + h or oy + oh <= y
            assert apart != prefix.overlaps(other)


@pytest.mark.parametrize(
    ("count", "width", "height"),
    [
        (1, 1400, 500),
        (2, 1400, 500),
        (7, 340, 460),
        (16, 340, 1100),
        (60, 1400, 500),
        (1500, 1400, 500),
        (1500, 340, 460),
    ],
)
def test_layout(page: Page, count: int, width: int, height: int) -> None:
    """Ranges lie apart from each other, and all of them in view, however many there are."""
    script = """async ([count, width, height]) => {
        const { layout } = await import("./static/layout.js");
        const tiles = Array.from({ length: count }, (_, at) => ({ blockBits: (at * 7) % 12 }));
        const cut = Math.ceil(count * 0.7);
        const sections = [tiles.slice(0, cut), tiles.slice(cut)].filter(each => each.length).map(tiles => ({ tiles }));
        layout(sections, width, height);
        return tiles.map(({ box, body }) => [box.x, box.y, box.w, box.h, body.h]);
    }"""
    boxes = page.evaluate(script, [count, width, height])
    for x, y, w, h, body in boxes:
        assert min(x, y, w, h, body) >= 0
        assert x + w <= width + 1e-6
        assert y + h <= height + 1e-6
        assert w == width if width < 640 and count <= 16 else w > 3, "on a phone, a few ranges are as wide as it is"
    ordered = sorted(boxes, key=lambda box: box[0])
    for at, (x, y, w, h, _) in enumerate(ordered):
        for ox, oy, _ow, oh, _ in ordered[at + 1 :]:
            if ox >= x + w:
                break
            assert oy >= y + h or oy + oh <= y


def test_tiles_cover_their_place(page: Page) -> None:
    """However ranges differ in size, most of the place that there is for them is used."""
    script = """async shapes => {
        const { layout } = await import("./static/layout.js");
        return shapes.map(bits => {
            const tiles = bits.map(blockBits => ({ blockBits }));
            layout([{ title: "IPv4", tiles }], 700, 500);
            return tiles.reduce((sum, { box }) => sum + box.w * box.h, 0) / (700 * 500);
        });
    }"""
    shapes = [[20, 2, 8, 0], [8], [8, 8], [16, 4], [8, 8, 2, 2, 2, 0], [3] * 50]
    assert min(page.evaluate(script, shapes)) > 0.65


def texts(page: Page) -> list[tuple[str, float, float, float]]:
    """What is written on the map: each text, where it begins, its height on the screen, and where it ends."""
    page.evaluate("""() => {
        const { fillText } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
            window.written.push([text, x, y, x + this.measureText(text).width]);
            fillText.call(this, text, x, y);
        };
    }""")
    page.evaluate("window.written = []")
    page.locator("#theme").click()  # which has all of it drawn anew
    settle(page)
    found: list[tuple[str, float, float, float]] = [tuple(each) for each in page.evaluate("window.written")]
    return found


@pytest.mark.parametrize("name", ["worker-12", "fd12:3456:789a:b::"])
def test_names_stay_in_view(viewer: Viewer, site: Site, name: str) -> None:
    """However close one is, a range that is in view has its name in view, and no two headings lie on each other."""
    page = viewer.look(site.url, reduced_motion="reduce")
    search(page, name)
    page.keyboard.press("Enter")
    settle(page)
    page.keyboard.press("-")
    settle(page)
    written = texts(page)
    named = [each for each in written if "/" in each[0] and " " not in each[0]]
    assert [each for each in named if each[1] < 0] == []
    headings = sorted((x, end, y) for text, x, y, end in written if text in {"IPv4", "IPv6"} or text.endswith("range"))
    for (_, end, y), (x, _, other) in pairwise(headings):
        assert y != other or end <= x
