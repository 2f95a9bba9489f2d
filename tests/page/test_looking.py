"""What the page shows, and how one gets at it with a mouse or a finger."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from cidrella.web.board import News
from tests.page.viewer import chosen, pixel, search, settle, wait_until
from tests.page.worlds import PoolPlan, crowd, of_plans, served, showcase

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.page.site import Site
    from tests.page.viewer import Viewer

PHONE = 360


def scale(page: Page) -> float:
    return float(page.locator("#map").get_attribute("data-scale") or 1)


def wait_scale(page: Page, condition: str) -> None:
    """Wait until the map's scale, `s`, is as wanted."""
    wait_until(page, f"() => {{ const s = Number(document.getElementById('map').dataset.scale); return {condition}; }}")


def middle(page: Page) -> tuple[float, float]:
    box = page.locator("#map").bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def zoom_to(page: Page, text: str) -> None:
    """Fly to the first hit, and wait until that is over."""
    search(page, text)
    page.keyboard.press("Enter")
    wait_scale(page, "s > 1.01")
    settle(page)


class TestWhatIsShown:
    """Everything that the issue of looking asks for is there."""

    def test_figures(self, page: Page) -> None:
        """Nodes, who waits, what is wrong, pools, and how much of each family is used."""
        for name, value in (("nodes", "226"), ("waiting", "4"), ("wrong", "1"), ("pools", "6")):
            expect(page.locator(f"#figure-{name} .value")).to_have_text(value)
        expect(page.locator("#figure-IPv4 .value")).to_have_text("60 %")
        expect(page.locator("#figure-IPv6 .value")).to_have_text("55 %")
        expect(page).to_have_title(re.compile(r"^\(4 waiting\) north-1"))

    def test_pools(self, page: Page) -> None:
        """Each with its share, a bar, and when it runs out; the fullest first; a full one says so, and is red."""
        rows = page.locator("#pools tbody tr")
        expect(rows).to_have_count(6)
        expect(rows.nth(0)).to_contain_text("edge-berlin")
        expect(rows.nth(0).locator(".meter .value")).to_have_text("full")
        red = rows.nth(0).locator(".bar > span")
        blue = rows.nth(2).locator(".bar > span")
        expect(red).to_have_css("background-color", "rgb(179, 38, 30)")
        expect(blue).not_to_have_css("background-color", "rgb(179, 38, 30)")
        expect(rows.nth(1)).to_contain_text("in about 9 hours at 3.4 blocks an hour")
        share = "element => element.getBoundingClientRect().width / element.parentElement.getBoundingClientRect().width"
        assert red.evaluate(share) == pytest.approx(1, abs=0.02)
        assert blue.evaluate(share) == pytest.approx(11 / 16, abs=0.02)

    def test_who_waits_and_why(self, page: Page) -> None:
        """Nodes with the same reason stand together, with what helps; conflicts come first."""
        troubles = page.locator(".trouble")
        expect(troubles).to_have_count(3)
        expect(troubles.nth(0)).to_contain_text("1 node in conflict")
        expect(troubles.nth(0)).to_contain_text("also held by batch-3 (10.136.8.0/22)")
        expect(troubles.nth(1)).to_contain_text("3 nodes waiting")
        expect(troubles.nth(1)).to_contain_text("every pool that applies is full: edge-berlin (no IPv4 /24 left)")
        expect(troubles.nth(1)).to_contain_text("What helps: another pool that applies to it")

    def test_activity(self, page: Page) -> None:
        """Blocks that were given, and events, the newest first; each kind alone if one wants."""
        entries = page.locator(".entry")
        expect(entries.first).to_contain_text("store-51 got 10.144.25.0/25 from ccc/storage")
        page.get_by_label("Events").check()
        expect(entries).to_have_count(3)
        expect(entries.first).to_contain_text("edge-berlin-9")
        page.get_by_label("Blocks").check()
        expect(entries).to_have_count(24)

    def test_services(self, page: Page) -> None:
        """Service ranges with both bands, and who sits where."""
        page.get_by_role("tab", name="Services").click()
        bands = page.locator(".band")
        expect(bands).to_have_count(2)
        expect(bands.nth(0)).to_contain_text("10.96.0.1 \u2013 10.96.1.0")
        expect(bands.nth(0)).to_contain_text("12 of 256")
        expect(bands.nth(1)).to_contain_text("36 of")
        page.locator("#services").get_by_role("button", name="Address").click()
        order = [ipaddress.ip_address(each) for each in page.locator("#services td.mono").all_inner_texts()]
        assert order == sorted(order)
        page.get_by_label("Filter Services by name, address or band").fill("shop/cart")
        expect(page.locator("#services tbody tr")).to_have_count(1)

    def test_nodes(self, page: Page) -> None:
        """All nodes, page by page, filtered and sorted."""
        page.get_by_role("tab", name="Nodes").click()
        rows = page.locator("#nodes tbody tr")
        expect(rows).to_have_count(15)
        expect(page.locator("#nodes .range")).to_have_text("1\u201315 of 226")
        page.locator("#nodes").get_by_role("button", name="Next page").click()
        expect(page.locator("#nodes .range")).to_have_text("16\u201330 of 226")
        page.get_by_label("Filter nodes by name, block, pool or state").fill("10.132.6.")
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text("gpu-7")
        page.get_by_label("Filter nodes by name, block, pool or state").fill("")
        page.locator("#nodes").get_by_role("button", name="State").click()
        expect(rows.nth(0)).to_contain_text("batch-legacy")

    def test_nothing_from_elsewhere(self, page: Page, viewer: Viewer, site: Site) -> None:
        """It works without a network beyond its server: every request goes there."""
        expect(page.locator("#figure-nodes .value")).to_have_text("226")
        assert {urlsplit(url).netloc for url in viewer.requests} == {urlsplit(site.url).netloc}


class TestTheMap:
    """One looks at it, points at it, comes closer."""

    def test_blocks_are_drawn(self, page: Page) -> None:
        """What is pointed at has the colour of its pool, which no other has; what is free has another."""
        zoom_to(page, "gpu-15")
        box = page.locator("#map").bounding_box()
        details = page.locator("#details").bounding_box()
        assert box
        assert details
        x, y = (box["width"] - details["width"]) / 2, box["height"] / 2
        block = pixel(page, x - 20, y + 20)
        page.mouse.move(box["x"] + x, box["y"] + y)
        expect(page.locator("#tooltip strong")).to_have_text("gpu-15")
        swatch = page.locator("#pools tr", has_text="accelerator=nvidia").locator(".swatch")
        assert swatch.evaluate("element => getComputedStyle(element).backgroundColor") == f"rgb{block}"
        colours = page.locator("#pools .swatch").evaluate_all("all => all.map(each => each.style.backgroundColor)")
        assert len(set(colours)) == len(colours) == 6
        page.get_by_role("button", name="Close the details").click()
        zoom_to(page, "10.132.15.9")
        assert pixel(page, x, y) != block

    def test_hover(self, page: Page) -> None:
        """A tooltip says who has what is under the pointer; beside the ranges there is none."""
        zoom_to(page, "worker-88")
        box = page.locator("#map").bounding_box()
        details = page.locator("#details").bounding_box()
        assert box
        assert details
        page.mouse.move(box["x"] + (box["width"] - details["width"]) / 2, box["y"] + box["height"] / 2)
        tooltip = page.locator("#tooltip")
        expect(tooltip).to_contain_text("worker-88")
        expect(tooltip).to_contain_text("10.128.87.0/24")
        expect(tooltip).to_contain_text("pool general")
        page.mouse.move(2, 2)
        expect(tooltip).to_be_hidden()

    def test_click(self, page: Page) -> None:
        """A click chooses, and tells more; then the wheel belongs to the map."""
        x, y = middle(page)
        page.mouse.wheel(0, -300)
        assert scale(page) == 1
        zoom_to(page, "worker-88")
        page.get_by_role("button", name="Close the details").click()
        page.get_by_role("button", name="Show all").click()
        wait_scale(page, "s === 1")
        box = page.locator("#map").bounding_box()
        assert box
        page.mouse.click(box["x"] + 30, box["y"] + 62)
        expect(chosen(page)).not_to_be_empty()
        page.mouse.move(x, y)
        page.mouse.wheel(0, -300)
        wait_scale(page, "s > 1.2")

    def test_the_wheel_scrolls_the_page_until_then(self, page: Page) -> None:
        """Whoever scrolls past the map is not caught by it; with Ctrl the wheel zooms at once."""
        page.mouse.move(*middle(page))
        page.mouse.wheel(0, 200)
        wait_until(page, "window.scrollY > 100")
        assert scale(page) == 1
        page.evaluate("window.scrollTo(0, 0)")
        page.keyboard.down("Control")
        page.mouse.wheel(0, -200)
        page.keyboard.up("Control")
        wait_scale(page, "s > 1.2")

    def test_buttons_and_dragging(self, page: Page) -> None:
        """The buttons zoom; a drag moves, and chooses nothing."""
        page.get_by_role("button", name="Zoom in").click()
        page.get_by_role("button", name="Zoom in").click()
        wait_scale(page, "s > 2.0")
        settle(page)
        x, y = middle(page)
        box = page.locator("#map").bounding_box()
        assert box

        def slanting(right: int, down: int) -> list[tuple[int, int, int]]:
            """The colours along a line, from the middle, or from beside it, down to the right."""
            begin = x - box["x"] + right, y - box["y"] + down
            return [pixel(page, begin[0] + step * 9, begin[1] + step * 5) for step in range(35)]

        before = slanting(0, 0)
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 40, y - 60, steps=5)
        page.mouse.up()
        settle(page)
        assert len(set(before)) > 1
        assert slanting(40, -60) == before
        assert slanting(0, 0) != before
        expect(page.locator("#details")).to_be_hidden()
        page.get_by_role("button", name="Show all").click()
        wait_scale(page, "s === 1")

    def test_pinch(self, viewer: Viewer, site: Site) -> None:
        """Two fingers that part come closer."""
        page = viewer.look(site.url, width=PHONE, height=740, has_touch=True, is_mobile=True)
        page.locator("#map").scroll_into_view_if_needed()
        x, y = middle(page)
        touch = page.context.new_cdp_session(page)
        for kind, apart in (("touchStart", 20), ("touchMove", 40), ("touchMove", 80), ("touchMove", 120)):
            points = [{"x": x - apart, "y": y, "id": 1}, {"x": x + apart, "y": y, "id": 2}]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        wait_scale(page, "s > 2")

    def test_stays_where_it_is_when_ranges_come(self, viewer: Viewer, serve: Callable[..., Site]) -> None:
        """Who looks at something closely still does after a pool has come and all ranges lie elsewhere."""
        state = showcase()
        serving = serve(state)
        page = viewer.look(serving.url)
        zoom_to(page, "edge-oslo-2")
        expect(page.locator("#map-where")).to_have_text("10.140.8.0/21 · edge-oslo")
        page.set_viewport_size({"width": 1100, "height": 800})
        settle(page)
        expect(page.locator("#map-where")).to_have_text("10.140.8.0/21 · edge-oslo")


def swept(page: Page) -> list[str]:
    """What tooltips say along the map's left edge, from the top to the bottom."""
    box = page.locator("#map").bounding_box()
    assert box
    found = []
    for down in range(2, int(box["height"]), 4):
        page.mouse.move(box["x"] + 2, box["y"] + down)
        if page.locator("#tooltip").is_visible():
            found.append(page.locator("#tooltip").inner_text())
    return found


class TestDeepRanges:
    """Ranges of which next to nothing is used, as most are in IPv6: what is used is seen all the same."""

    PLAN = PoolPlan("deep", [("2001:db8::/32", 64)], 40, "node")

    def test_what_is_used_is_seen(self, viewer: Viewer, serve: Callable[..., Site]) -> None:
        """Of four milliards of blocks the first forty can be pointed at, one by one; a strip stands for the rest."""
        page = viewer.look(serve(of_plans([self.PLAN])).url)
        found = swept(page)
        for number, text in ((0, "2001:db8::/64"), (16, "2001:db8:0:10::/64"), (32, "2001:db8:0:20::/64")):
            assert any(each.startswith(f"node-{number}\n{text}") for each in found)
        rest = next(each for each in found if each.startswith("the rest of 2001:db8::/32"))
        assert "4.3 \u00d7 10\u2079 more blocks, all free" in rest
        assert "pool deep" in rest

    def test_the_rest_is_found(self, viewer: Viewer, serve: Callable[..., Site]) -> None:
        """An address that is out of the picture is free, and still in the pool."""
        page = viewer.look(serve(of_plans([self.PLAN])).url)
        expect(search(page, "2001:db8:ffff::1").first.locator(".note")).to_have_text("nobody has it")
        page.keyboard.press("Enter")
        expect(page.locator("#details")).to_contain_text("pool deep")

    def test_grows(self, viewer: Viewer, serve: Callable[..., Site]) -> None:
        """A block that comes far away from the others is seen, beside them: then all of the range is shown."""
        site = serve(of_plans([self.PLAN]))
        page = viewer.look(site.url)
        assert any(each.startswith("the rest of") for each in swept(page))
        site.post(News(nodes=[served("far", ["2001:db8:8000::/64"], "deep")]))
        expect(page.locator("#figure-nodes .value")).to_have_text("41")
        found = swept(page)
        assert not any(each.startswith("the rest of") for each in found)
        assert any(each.startswith("far\n2001:db8:8000::/64") for each in found)


class TestSearch:
    """By node, by pool, by Service, by address."""

    @pytest.mark.parametrize(
        ("text", "title", "note"),
        [
            ("worker-88", "worker-88", "10.128.87.0/24"),
            ("WORKER-88", "worker-88", "10.128.87.0/24"),
            ("10.128.87.13", "worker-88", "10.128.87.0/24"),
            ("10.128.87.0/24", "worker-88", "10.128.87.0/24"),
            ("fd12:3456:789a:57::1", "worker-88", "fd12:3456:789a:57::/64"),
            ("FD12:3456:789A:0057:0000::/80", "worker-88", "fd12:3456:789a:57::/64"),
            ("edge-oslo", "edge-oslo", "10.140.8.0/21"),
            ("shop/cart", "shop/cart", "10.96."),
            ("edge-berlin-10", "edge-berlin-10", "waiting"),
            ("10.132.15.200", "10.132.15.200", "nobody has it"),
        ],
    )
    def test_finds(self, page: Page, text: str, title: str, note: str) -> None:
        """The first hit is what was meant, and Enter leads to it."""
        hits = search(page, text)
        expect(hits.first.locator(".title")).to_have_text(title)
        expect(hits.first.locator(".note")).to_contain_text(note)
        page.keyboard.press("Enter")
        expect(chosen(page)).to_have_text(title)

    def test_leads_there(self, page: Page) -> None:
        """The map flies to a hit: what was found is in view, and chosen."""
        zoom_to(page, "worker-88")
        expect(page.locator("#map-where")).to_have_text("10.128.0.0/16 · general")
        expect(page.locator("#details")).to_contain_text("10.128.87.0/24")
        expect(page.locator("#voice")).to_contain_text("worker-88, 10.128.87.0/24, pool general")

    def test_an_address_that_nobody_has(self, page: Page) -> None:
        """One comes as close as to a block, from where its neighbours are seen, and not to the address alone."""
        zoom_to(page, "worker-88")
        close = scale(page)
        zoom_to(page, "10.128.200.9")
        assert scale(page) == pytest.approx(close, rel=0.01)
        expect(chosen(page)).to_have_text("10.128.200.9")

    def test_the_best_first(self, page: Page) -> None:
        """A name that begins so comes before one that has it in the middle; the shorter before the longer."""
        hits = search(page, "gpu")
        expect(hits.nth(0).locator(".title")).to_have_text("gpu")
        expect(hits.nth(1).locator(".title")).to_have_text("gpu-1")
        expect(page.locator("#hits")).to_contain_text("and 4 more")

    def test_nothing(self, page: Page) -> None:
        """What is nowhere is said to be."""
        hits = search(page, "192.0.2.1")
        expect(page.locator("#hits")).to_have_text("Nothing has that name or address.")
        expect(hits).to_have_count(0)


class TestDetails:
    """What is chosen, in full."""

    def test_explains(self, page: Page) -> None:
        """Every pool, and why a node gets it or not, is a click away."""
        search(page, "worker-88")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Which pools apply, and why").click()
        verdicts = page.locator("#details .verdicts li")
        expect(verdicts).to_have_count(6)
        expect(verdicts.first).to_contain_text("general")

    def test_of_a_pool(self, page: Page) -> None:
        """A pool in the table leads to where it lies."""
        page.locator("#pools").get_by_role("button", name="batch").click()
        expect(chosen(page)).to_have_text("batch")
        expect(page.locator("#details")).to_contain_text("blocks of /22: 11 used, 5 free, 16 in all")
        expect(page.locator("#map-where")).to_have_text("10.136.0.0/18 · batch")


class TestAppearance:
    """Light and dark, wide and narrow, still and moving."""

    def test_follows_the_system(self, viewer: Viewer, site: Site) -> None:
        """Dark where the system is; also what is drawn."""
        light = viewer.look(site.url, color_scheme="light")
        expect(light.locator("body")).to_have_css("background-color", "rgb(245, 246, 248)")
        assert sum(pixel(light, 1, 1)) > 600
        dark = viewer.look(site.url, color_scheme="dark")
        expect(dark.locator("body")).to_have_css("background-color", "rgb(15, 19, 25)")
        assert sum(pixel(dark, 1, 1)) < 200

    def test_can_be_chosen(self, viewer: Viewer, site: Site) -> None:
        """The choice wins over the system, and is still there when one comes back."""
        page = viewer.look(site.url, color_scheme="light")
        toggle = page.locator("#theme")
        expect(toggle).to_have_attribute("aria-label", "Colours: as the system")
        toggle.click()
        toggle.click()
        expect(toggle).to_have_attribute("aria-label", "Colours: dark")
        expect(page.locator("body")).to_have_css("background-color", "rgb(15, 19, 25)")
        wait_until(page, "document.getElementById('map-base').getContext('2d').getImageData(1, 1, 1, 1).data[0] < 60")
        page.reload()
        expect(page.locator("body")).to_have_css("background-color", "rgb(15, 19, 25)")

    @pytest.mark.parametrize("tab", ["Pools", "Nodes", "Services"])
    def test_fits_a_phone(self, viewer: Viewer, site: Site, tab: str) -> None:
        """Nothing is wider than a phone, whichever table is open."""
        page = viewer.look(site.url, width=PHONE, height=740)
        page.get_by_role("tab", name=tab).click()
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
        search(page, "gpu-7")
        page.keyboard.press("Enter")
        expect(page.locator("#details")).to_be_in_viewport()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE

    def test_what_needs_somebody_comes_first_on_a_phone(self, viewer: Viewer, site: Site) -> None:
        """On the first screen of a phone is who waits; on a wide one it comes after the map. Read aloud, too."""
        first = "document.getElementById('attention').compareDocumentPosition(document.getElementById('map-card'))"
        following = 4
        page = viewer.look(site.url, width=PHONE, height=740)
        expect(page.locator(".trouble").first).to_be_in_viewport()
        assert page.evaluate(first) == following
        page.set_viewport_size({"width": 1440, "height": 900})
        expect(page.locator("#side #attention")).to_be_visible()
        assert page.evaluate(first) != following

    def test_ranges_below_each_other_on_a_phone(self, viewer: Viewer, site: Site) -> None:
        """Each range is as wide as a phone, and its blocks are where they are said to be; so after turning it, too."""
        tall = 1600  # so that all of the map can be pointed at
        page = viewer.look(site.url, width=PHONE, height=tall)
        below = ("worker-1\n10.128.0.0/24", "gpu-1\n10.132.0.0/24", "store-1\n10.144.0.0/25")
        for width, names in ((PHONE, below), (740, below[:1]), (PHONE, below)):
            page.set_viewport_size({"width": width, "height": tall})
            settle(page)
            found = swept(page)
            assert [name for name in names if not any(each.startswith(name) for each in found)] == []

    def test_a_crowd_fits_a_phone(self, viewer: Viewer, serve: Callable[..., Site]) -> None:
        """Long names, thousands of nodes and a thousand pools do not make it wider."""
        serving = serve(crowd())
        page = viewer.look(serving.url, width=PHONE, height=740)
        for tab in ("Nodes", "Services", "Pools"):
            page.get_by_role("tab", name=tab).click()
            settle(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
