"""Measure the page in a browser: the second half of `make bench-page`.

`cidrella up` with 5,000 nodes that come and go, over 1,000 pools, and Chromium, which looks at it for some minutes. How
long it takes until everything is drawn and a node is found, what an update costs the page's thread, and whether the tab
grows. Times depend on the machine. What is out of bounds is shown, and fails nothing: a machine has bad days.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import aiohttp
from playwright.async_api import async_playwright, expect
from tests.page.chromium import FLAGS, find_chromium

from bench.core import machine
from bench.page import NODES, POOLS, Viewer, up
from bench.report import Report

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession, Page

MINUTES = 5.0
LOOKS = 5
WARM = 90.0
"""Seconds after which the tab is looked at first: by then everything was done once, and there are forecasts."""
DRAWN, UPDATE, GROWTH = 2.0, 100.0, 1.1
"""What it is held to: seconds until all is there, milliseconds of an update, how large the tab may be at the end."""
_PATIENCE = 60_000
_NAMES = 20
"""Nodes of which one is to be found: some may have gone in the meantime."""
_FOUND = """async names => {
    if (!performance.getEntriesByName("cidrella-drawn").length) return null;
    const box = document.getElementById("search");
    const type = text => {
        box.value = text;
        box.dispatchEvent(new Event("input"));
    };
    const found = names.some(name => {
        type(name);
        return document.querySelector("#hits [role=option] .title")?.textContent === name;
    });
    type("");
    return found ? performance.now() : null;
}"""
_WATCHED = """() => {
    window.longest = 0;
    new PerformanceObserver(tasks => {
        window.longest = Math.max(window.longest, ...tasks.getEntries().map(task => task.duration));
    }).observe({ type: "longtask" });
}"""
"""Of tasks of the page's thread, by the clock; those below 50 ms are not told, and count as none."""


async def first_look(browser: Browser, url: str) -> float:
    """The seconds until a node that is there is found on the page, all of which was drawn before."""
    page = await browser.new_page(viewport={"width": 1440, "height": 900})
    async with aiohttp.ClientSession() as session, session.get(f"{url}/api/v1/nodes") as response:
        names = [each["name"] for each in (await response.json())["nodes"][:_NAMES]]
    await page.goto(url)
    while (taken := await page.evaluate(_FOUND, names)) is None:
        await asyncio.sleep(0.02)
    await page.close()
    return float(taken) / 1000


async def figures_of(session: CDPSession) -> dict[str, float]:
    """What the browser counts about a tab, after it was tidied up."""
    await session.send("HeapProfiler.collectGarbage")
    found = await session.send("Performance.getMetrics")
    return {each["name"]: each["value"] for each in found["metrics"]}


async def watch(page: Page, url: str, minutes: float, report: Report) -> None:
    """Look for some minutes, while nodes come and go."""
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})
    await page.goto(url)
    await expect(page.locator("#link-word")).to_have_text("Live", timeout=_PATIENCE)
    await asyncio.sleep(min(WARM, minutes * 30))
    beside = Viewer()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as client:
        following = asyncio.create_task(beside.follow(client, url))
        before = await figures_of(session)
        await page.evaluate(_WATCHED)
        await asyncio.sleep(minutes * 60)
        longest = await page.evaluate("window.longest")
        after = await figures_of(session)
        following.cancel()
    shown = await page.locator("#figure-nodes .value").inner_text()
    report.figure("nodes at the end", int(shown.replace(",", "")))
    updates = len(beside.versions)
    report.figure("updates", updates)
    spent = (after["TaskDuration"] - before["TaskDuration"]) * 1000
    report.ratio("milliseconds of the page's thread for an update", spent / updates, at_most=UPDATE)
    report.ratio("milliseconds of the longest task of the page's thread (0: below 50)", longest, at_most=UPDATE)
    for name, what in (("JSHeapUsedSize", "heap"), ("Nodes", "elements")):
        unit = 1e6 if what == "heap" else 1
        report.figure(f"{what} at the beginning{' in megabytes' if unit > 1 else ''}", before[name] / unit)
        report.figure(f"{what} at the end{' in megabytes' if unit > 1 else ''}", after[name] / unit)
        report.ratio(f"{what} at the end, of that at the beginning", after[name] / before[name], at_most=GROWTH)


async def measure(options: argparse.Namespace, report: Report) -> None:
    """Look some times, then for long."""
    async with up(options) as (_, url), async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        looks = [await first_look(browser, url) for _ in range(LOOKS)]
        report.ratio("seconds until all is drawn, and a node is found", median(looks), at_most=DRAWN)
        report.figure("the slowest of these, in seconds", max(looks))
        print(f"a browser looks, for {options.minutes:g} minutes", flush=True)
        page = await browser.new_page(viewport={"width": 1440, "height": 900})
        await watch(page, url, options.minutes, report)
        await browser.close()


def main() -> None:
    """Measure, show, and write it down if asked to."""
    parser = argparse.ArgumentParser(description="Measure the page in a browser.")
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--pools", type=int, default=POOLS)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    report = Report(machine())
    asyncio.run(measure(options, report))
    report.show(options.json)


if __name__ == "__main__":
    main()
