"""Text from the cluster is never markup, wherever it comes from and wherever it shows."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import pytest
from playwright.sync_api import expect

from cidrella.web import api
from cidrella.web.board import News
from tests.page.site import Site
from tests.page.viewer import PATIENCE, chosen, search
from tests.page.worlds import showcase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

    from tests.page.viewer import Viewer

BAD = '<img src=x onerror="window.harmed=1"><script>window.harmed=2</script><b>bold</b>'
PAGE = files("cidrella.web") / "page"
READS_MARKUP = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "createContextualFragment",
    "DOMParser",
    "setHTML",
    "srcdoc",
    "eval(",
    "new Function",
)


def poisoned() -> api.State:
    """A state in which every text that somebody could have written is markup, and some that nobody could."""
    state = showcase()
    replace = msgspec.structs.replace
    nodes = [
        replace(state.nodes[0], name=f"a{BAD}", pools=[BAD, BAD]),
        api.Node(
            name="garbage",
            blocks=[BAD],
            pools=[BAD],
            state="unreadable",
            terminating=True,
            since=BAD,
            reason=f"podCIDRs cannot be read: {BAD}",
            help=BAD,
        ),
        replace(state.nodes[1], state=BAD),
    ]
    pool = replace(
        state.pools[0],
        name=BAD,
        kind=BAD,
        selector=BAD,
        message=BAD,
        forecast=api.Forecast(exhausted_at=BAD, rate_per_hour=1.0, text=BAD),
    )
    invalid = replace(pool, name=f"invalid {BAD}", state="invalid", families=[])
    ranges = [replace(each, pools=[BAD if name == "general" else name for name in each.pools]) for each in state.ranges]
    return replace(
        state,
        cluster=replace(state.cluster, name=BAD, replica=BAD, program=BAD, missing=[BAD], remarks=[BAD]),
        ranges=ranges,
        nodes=nodes,
        pools=[pool, invalid, *state.pools[1:]],
        service_ranges=[replace(state.service_ranges[0], source=BAD, message=BAD)],
        services=[replace(each, holder=f"ns/{BAD}") for each in state.services],
        events=[
            api.Event(id=BAD, time=BAD, type=BAD, reason=BAD, kind=BAD, name=BAD, note=f"note {BAD}", count=2),
            api.Event(
                id="2", time="2026-01-01T00:00:00Z", type="Normal", reason=BAD, kind="Node", name=BAD, note=BAD, count=1
            ),
        ],
        allocations=[api.Allocation(time=BAD, what="given", node=BAD, blocks=[BAD], pools=[BAD])],
    )


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site(poisoned()) as serving:
        yield serving


def assert_unharmed(page: Page) -> None:
    """Nothing ran, and nothing became an element."""
    assert page.evaluate("window.harmed") is None
    assert page.locator("img[src=x], main b, main script, header b, header script").count() == 0


def test_everywhere(viewer: Viewer, site: Site) -> None:
    """In the head, the figures, the tables, the troubles, the activity: it is shown as it was written."""
    page = viewer.look(site.url)
    for place in ("#cluster", "#not-ready", "#remarks", "#program", "#pools", "#troubles", "#entries"):
        expect(page.locator(place)).to_contain_text(BAD)
    expect(page.locator("#troubles")).to_contain_text(f"podCIDRs cannot be read: {BAD}")
    expect(page.locator("#entries")).to_contain_text(f"note {BAD}")
    page.get_by_role("tab", name="Nodes").click()
    expect(page.locator("#nodes")).to_contain_text(f"a{BAD}")
    page.get_by_role("tab", name="Services").click()
    expect(page.locator("#services")).to_contain_text(f"ns/{BAD}")
    expect(page.locator("#services .remark").first).to_contain_text(BAD)
    assert_unharmed(page)


@pytest.mark.parametrize(
    ("text", "title"),
    [("a<img", f"a{BAD}"), ("garbage", "garbage"), ("invalid <", f"invalid {BAD}"), ("ns/", f"ns/{BAD}")],
)
def test_where_it_is_found(viewer: Viewer, site: Site, text: str, title: str) -> None:
    """In hits, in the details, in what is told to a screen reader, in a tooltip, in an explanation."""
    page = viewer.look(site.url, reduced_motion="reduce")
    expect(search(page, text).first.locator(".title")).to_have_text(title)
    page.keyboard.press("Enter")
    expect(chosen(page)).to_have_text(title)
    expect(page.locator("#voice")).to_contain_text(title)
    if page.get_by_role("button", name="Which pools apply, and why").count():
        page.get_by_role("button", name="Which pools apply, and why").click()
        expect(page.locator("#details .verdicts").first).to_contain_text(BAD)
    box = page.locator("#map").bounding_box()
    assert box
    for step in range(1, 12):
        page.mouse.move(box["x"] + box["width"] * step / 20, box["y"] + box["height"] * step / 12)
    assert_unharmed(page)


def test_what_comes_later(viewer: Viewer, serve: Callable[..., Site]) -> None:
    """What a change brings is text as well."""
    serving = serve(showcase())
    page = viewer.look(serving.url)
    event = api.Event(
        id="x", time="2999-01-01T00:00:00Z", type="Normal", reason="Told", kind="Node", name="n", note=BAD, count=1
    )
    serving.post(News(events=[event]))
    expect(page.locator("#entries")).to_contain_text(BAD)
    assert_unharmed(page)


def test_from_right_to_left(viewer: Viewer, serve: Callable[..., Site]) -> None:
    """What is written from right to left turns itself around, and nothing beside it."""
    serving = serve(showcase())
    page = viewer.look(serving.url)
    event = api.Event(
        id="x", time="2999-01-01T00:00:00Z", type="Normal", reason="Told", kind="\u202eodd", name="b", note="", count=2
    )
    serving.post(News(events=[event]))
    entry = page.locator(".entry").first
    expect(entry).to_contain_text("(2 times)")
    places = [entry.locator(each).bounding_box() for each in ("bdi:nth-of-type(1)", "bdi:nth-of-type(2)", ".under")]
    lefts = [each["x"] for each in places if each]
    assert lefts == sorted(lefts)
    assert len(lefts) == 3


def test_would_be_seen(viewer: Viewer, site: Site) -> None:
    """That nothing was harmed says something: the same text as markup makes an element, though it may run nothing."""
    page = viewer.look(site.url)
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text, timeout=PATIENCE):
        page.evaluate("text => { document.querySelector('main').innerHTML = text; }", BAD)
    assert page.locator("main b").count() == 1
    assert page.evaluate("window.harmed") is None, "the content security policy keeps even that from running"
    viewer.close()
    viewer.errors.clear()  # of the policy's complaints


def test_nothing_reads_markup() -> None:
    """No file of the page has a way to make markup of text, nor script or style within HTML."""
    for file in PAGE.iterdir():
        text = file.read_text(encoding="utf-8")
        if file.name.endswith(".js"):
            assert [word for word in READS_MARKUP if word in text] == [], file.name
        if file.name.endswith(".html"):
            assert " style=" not in text
            assert " on" not in text.replace(" on ", " "), "no handler within HTML"
            assert "<style" not in text
            assert text.count("<script") == text.count('<script type="module"')


def test_every_module_is_fetched_at_once() -> None:
    """Each module is named in the page's head: none is found only when another has come."""
    head = (PAGE / "index.html").read_text(encoding="utf-8")
    modules = {each.name for each in PAGE.iterdir() if each.name.endswith(".js")}
    assert {name for name in modules if f'"static/{name}"' not in head} == set()
