"""Keyboard alone reaches everything, and a screen reader has a name for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from msgspec.structs import replace
from playwright.sync_api import expect

from cidrella.web.board import News
from tests.page.viewer import PATIENCE, chosen, search, settle, wait_until
from tests.page.worlds import PoolPlan, facts, of_plans, showcase

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.page.site import Site
    from tests.page.viewer import Viewer

SERIOUS = {"serious", "critical"}
STOPS_MAX = 200


@pytest.fixture
def page(viewer: Viewer, site: Site) -> Page:
    # Flights would only make tests wait.
    return viewer.look(site.url, reduced_motion="reduce")


def say(page: Page) -> str:
    """What a screen reader is told."""
    return page.locator("#voice").inner_text()


def press(page: Page, key: str) -> str:
    """Press a key that makes the page say something else; what that is."""
    before = say(page)
    page.keyboard.press(key)
    wait_until(page, "before => document.getElementById('voice').textContent !== before", before)
    return say(page)


def stops(page: Page) -> list[str]:
    """Press Tab until the page is left; where that stops, by id, label or text."""
    script = """() => {
        const at = document.activeElement;
        if (!at || at === document.body) return "";
        const box = at.getBoundingClientRect();
        const seen = box.width > 0 && box.height > 0 ? "" : "UNSEEN ";
        return seen + (at.id || at.getAttribute("aria-label") || at.value || at.textContent);
    }"""
    found: list[str] = []
    page.evaluate("document.activeElement.blur()")
    for _ in range(STOPS_MAX):
        page.keyboard.press("Tab")
        at: str = page.evaluate(script)
        if not at:
            break
        found.append(at)
    return found


class TestTabs:
    """The Tab key."""

    def test_reaches_everything(self, page: Page) -> None:
        """Every control is a stop, in the order in which it is seen, and none of them is invisible."""
        found = stops(page)
        assert not [each for each in found if each.startswith("UNSEEN")]
        in_order = [
            "Skip to the map",
            "search",
            "theme",
            "farther",
            "closer",
            "all",
            "map",
            "tab-pools",
            "Pool",
            "Free",
            "Used",
            "Runs out",
            "edge-berlin",
            "edge-oslo",
            "batch-legacy",
            "edge-berlin-9",
            "bare-7",
            "all",
            "store-51",
            "JSON",
        ]
        rest = iter(found)
        missing = [each for each in in_order if each not in rest]
        assert missing == [], found

    def test_skips_to_the_map(self, page: Page) -> None:
        """The first stop leads past the head."""
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("#map")).to_be_focused()

    def test_every_button_can_be_pressed_with_a_key(self, page: Page) -> None:
        """What looks like a button is one: nothing that reacts to a click is out of the keyboard's reach."""
        script = """() => [...document.querySelectorAll("[role=button], [onclick]")]
            .filter(each => !["BUTTON", "A", "INPUT"].includes(each.tagName)).length"""
        assert page.evaluate(script) == 0

    def test_tables_by_arrows(self, page: Page) -> None:
        """The three tables are tabs: one stop, and arrows from one to the next, around the end."""
        page.locator("#tab-pools").focus()
        right = "ArrowRight"
        for key, tab in ((right, "nodes"), (right, "services"), (right, "pools"), ("End", "services")):
            page.keyboard.press(key)
            expect(page.locator(f"#tab-{tab}")).to_be_focused()
            expect(page.locator(f"#{tab}")).to_be_visible()
        expect(page.locator("#pools")).to_be_hidden()

    def test_focus_survives_a_change(self, viewer: Viewer, serve: Callable[..., Site]) -> None:
        """Who stands on a pool's name still does after that pool has changed."""
        state = showcase()
        serving = serve(state)
        page = viewer.look(serving.url)
        name = page.locator("#pools").get_by_role("button", name="gpu", exact=True)
        name.focus()
        plan = PoolPlan("gpu", [("10.132.0.0/20", 24)], 15, "gpu", "accelerator=nvidia")
        serving.post(News(pools=[plan.pool(16)]))
        expect(page.locator("#pools tr", has_text="accelerator=nvidia")).to_contain_text("full")
        expect(name).to_be_focused()


class TestTheMap:
    """The map, without a mouse and without eyes."""

    def test_block_by_block(self, page: Page) -> None:
        """Arrows walk the blocks in the order of addresses, and each is told."""
        page.locator("#map").focus()
        assert press(page, "ArrowRight").startswith("worker-1, 10.128.0.0/24, pool general")
        assert press(page, "ArrowRight").startswith("worker-2, 10.128.1.0/24, pool general")
        assert press(page, "ArrowLeft").startswith("worker-1, 10.128.0.0/24")
        assert press(page, "End").startswith("worker-")
        assert press(page, "ArrowRight").startswith("gpu-1, 10.132.0.0/24, pool gpu")
        expect(page.locator("#tooltip strong")).to_have_text("gpu-1")
        expect(page.locator("#tooltip")).to_be_in_viewport()
        page.keyboard.press("Tab")
        expect(page.locator("#tooltip")).to_be_hidden()

    def test_every_block(self, page: Page) -> None:
        """Walking on, one comes by every block of every node and every Service, and then stays."""
        page.locator("#map").focus()
        told = {press(page, "ArrowRight")}
        while True:
            before = say(page)
            page.keyboard.press("ArrowRight")
            if (after := say(page)) == before:
                break
            told.add(after)
        names = {each.partition(",")[0] for each in told}
        state = showcase()
        assert {each.name for each in state.nodes if each.blocks} <= names
        assert {each.holder for each in state.services} <= names
        assert len(told) == sum(len(each.blocks) for each in state.nodes) + len(state.services)

    def test_range_by_range(self, page: Page) -> None:
        """Up and down lead from range to range, also to those without a block."""
        page.locator("#map").focus()
        assert press(page, "ArrowDown").startswith("10.128.0.0/16, pool general, 55 % used, 143 blocks in use")
        assert press(page, "ArrowDown").startswith("10.132.0.0/20, pool gpu, 93 % used")
        assert press(page, "ArrowUp").startswith("10.128.0.0/16")

    def test_details(self, page: Page) -> None:
        """Enter tells more, and takes one there; Escape leads back."""
        page.locator("#map").focus()
        press(page, "ArrowRight")
        page.keyboard.press("Enter")
        expect(chosen(page)).to_be_focused()
        expect(chosen(page)).to_have_text("worker-1")
        page.keyboard.press("Tab")
        page.keyboard.press("Escape")
        expect(page.locator("#details")).to_be_hidden()
        expect(page.locator("#map")).to_be_focused()

    def test_zoom(self, page: Page) -> None:
        """Plus, minus and zero; arrows with Shift move what is seen."""
        page.locator("#map").focus()
        for _ in range(3):
            page.keyboard.press("+")
        scale = "Number(document.getElementById('map').dataset.scale)"
        wait_until(page, f"{scale} > 4")
        image = "document.getElementById('map-base').toDataURL()"
        before = page.evaluate(image)
        page.keyboard.press("Shift+ArrowRight")
        wait_until(page, f"before => {image} !== before", before)
        page.keyboard.press("-")
        wait_until(page, f"{scale} < 4")
        page.keyboard.press("0")
        wait_until(page, f"{scale} === 1")

    def test_keys_in_quick_succession(self, viewer: Viewer, site: Site) -> None:
        """Keys that follow each other faster than flights do all count, as they do where nothing flies."""
        scales = []
        for motion in ("reduce", "no-preference"):
            page = viewer.look(site.url, reduced_motion=motion)
            page.locator("#map").focus()
            page.locator("#map").evaluate("""map => {
                for (const key of "+++-++") map.dispatchEvent(new KeyboardEvent("keydown", { key }));
            }""")
            settle(page)
            scales.append(page.locator("#map").get_attribute("data-scale"))
        assert scales[0] == scales[1] == "6.554"


class TestSearch:
    """The search box is a combobox."""

    def test_by_keys_alone(self, page: Page) -> None:
        """A slash leads there, arrows walk the hits, Enter goes to one, and the map has the focus then."""
        page.keyboard.press("/")
        box = page.locator("#search")
        expect(box).to_be_focused()
        page.keyboard.type("gpu-1")
        expect(box).to_have_attribute("aria-expanded", "true")
        expect(box).to_have_attribute("aria-activedescendant", "hit-0")
        page.keyboard.press("ArrowDown")
        expect(box).to_have_attribute("aria-activedescendant", "hit-1")
        expect(page.locator("#hit-1")).to_have_attribute("aria-selected", "true")
        wanted = page.locator("#hit-1 .title").inner_text()
        page.keyboard.press("Enter")
        expect(chosen(page)).to_have_text(wanted)
        expect(page.locator("#map")).to_be_focused()
        expect(box).to_have_attribute("aria-expanded", "false")

    def test_a_slash_in_a_field_is_a_slash(self, page: Page) -> None:
        """Who types a CIDR is not taken elsewhere."""
        search(page, "10.128.87.0")
        page.keyboard.type("/24")
        expect(page.locator("#search")).to_have_value("10.128.87.0/24")


class TestAxe:
    """axe finds no serious problem, however the page looks."""

    @staticmethod
    def problems(page: Page) -> list[str]:
        found = Axe().run(page).response["violations"]
        return [
            f"{each['id']} ({each['impact']}): {each['help']}: {[node['html'] for node in each['nodes'][:3]]}"
            for each in found
            if each["impact"] in SERIOUS
        ]

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("width", [1440, 360])
    def test_the_page(self, viewer: Viewer, site: Site, scheme: str, width: int) -> None:
        """In both schemes, wide and narrow: as it opens, with each table, with details, with hits."""
        page = viewer.look(site.url, width=width, color_scheme=scheme, reduced_motion="reduce")
        assert self.problems(page) == []
        for tab in ("Nodes", "Services"):
            page.get_by_role("tab", name=tab).click()
            assert self.problems(page) == []
        search(page, "batch-legacy")
        assert self.problems(page) == []
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Which pools apply, and why").click()
        page.locator(".verdicts").first.wait_for(timeout=PATIENCE)
        assert self.problems(page) == []

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_a_bad_day(self, viewer: Viewer, serve: Callable[..., Site], scheme: str) -> None:
        """A replica that is not ready, with remarks, and no range, pool or node."""
        unready = replace(facts("north"), missing=["nodes are not listed yet"], remarks=["Services are not shown: 403"])
        page = viewer.look(serve(replace(of_plans([]), cluster=unready)).url, color_scheme=scheme)
        expect(page.locator("#remarks")).to_be_visible()
        assert self.problems(page) == []

    def test_would_find_one(self, page: Page) -> None:
        """That nothing is found says something: a button without a name is found."""
        page.evaluate("document.querySelector('main').append(document.createElement('button'))")
        assert any("button-name" in each for each in self.problems(page))
