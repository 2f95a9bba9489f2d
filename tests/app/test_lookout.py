"""The board is kept true while somebody looks."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
from structlog.testing import capture_logs

from cidrella.app import lookout as module
from cidrella.app.lookout import IN_TURN, Lookout
from cidrella.app.page_rows import node_row
from cidrella.kube.mirror import Change
from cidrella.web import api
from cidrella.web.board import LAST, LINGER, Board
from tests.app.insights import World
from tests.core.build import give, node, nodes, prefix, spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from cidrella.app.surroundings import Surroundings
    from cidrella.core.decision import Node
    from cidrella.web.board import News

FACTS = api.Facts(name="lab", replica="tests", program="cidrella", leading=True, missing=[], remarks=[])
POOL = spec("p", "10.0.0.0/16 /24")


class Around:
    """Surroundings in which nothing is."""

    def __init__(self) -> None:
        self.followed_now = False
        self.fail = False

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        self.followed_now = True
        try:
            yield
        finally:
            self.followed_now = False

    async def look(self, news: News) -> None:
        news.service_ranges = []
        if self.fail:
            raise RuntimeError("out of luck")


class Scene:
    """A lookout on a world, with a clock of its own."""

    def __init__(self, world: World) -> None:
        self.now = 1_800_000_000.0
        self.elapsed = 0.0
        self.world = world
        self.facts = FACTS
        self.board = Board(FACTS, clock=lambda: self.now)
        self.around = Around()
        self.lookout = Lookout(
            world.insight,
            self.board,
            cast("Surroundings", self.around),
            lambda: self.facts,
            clock=lambda: self.now,
            pace=lambda: self.elapsed,
        )

    def wait(self, seconds: float) -> None:
        """Time goes by."""
        self.now += seconds
        self.elapsed += seconds

    async def look(self, rounds: int = 1) -> dict[str, Any]:
        """So many rounds, and what is to be seen then."""
        self.board.look()
        for _ in range(rounds):
            await self.lookout.round()
        shown: dict[str, Any] = json.loads(self.board.state())
        return shown

    def change(self, old: Node | None, new: Node | None) -> None:
        """A node comes, changes or goes, and is told of."""
        if new is not None:
            self.world.see(new)
        elif old is not None:
            self.world.lose(old.name)
        self.lookout.nodes_changed([Change(old, new)])


def play(scenario: Callable[[Scene], Any], *specs: Any, **flags: Any) -> None:
    async def all_of_it() -> None:
        await scenario(Scene(World(*specs, **flags)))

    asyncio.run(all_of_it())


def states(shown: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["state"] for each in shown["nodes"]}


def followed(scene: Scene) -> bool:
    return scene.around.followed_now


def test_everything_is_drawn_at_first() -> None:
    """Nodes, pools, ranges and facts, in one round."""

    async def scenario(scene: Scene) -> None:
        scene.world.see(*[node(f"n{number}", has=f"10.0.{number}.0/24") for number in range(200)])
        scene.world.see(node("late"))
        scene.lookout._begin()
        shown = await scene.look()
        assert len(shown["nodes"]) == 201
        assert states(shown)["late"] == "waiting"
        assert [(each["name"], each["nodes"]) for each in shown["pools"]] == [("p", 200)]
        assert [each["range"] for each in shown["ranges"]] == ["10.0.0.0/16"]
        assert shown["cluster"]["name"] == "lab"

    play(scenario, POOL)


def test_nodes_that_are_told_of() -> None:
    """They are looked at in the next round: come, given blocks, gone."""

    async def scenario(scene: Scene) -> None:
        await scene.look()
        scene.change(None, node("a"))
        assert states(await scene.look()) == {"a": "waiting"}
        give(scene.world.books, node("a"))
        scene.change(node("a"), node("a", has="10.0.0.0/24"))
        shown = await scene.look()
        assert states(shown) == {"a": "served"}
        assert shown["pools"][0]["families"][0]["used"] == 1
        scene.change(node("a", has="10.0.0.0/24"), None)
        shown = await scene.look()
        assert (states(shown), shown["pools"][0]["families"][0]["used"]) == ({}, 0)

    play(scenario, POOL)


def test_what_nobody_told_of_is_seen_in_turn() -> None:
    """A pool around nodes that had none, a neighbour: every node gets its turn, so many in a round."""

    async def scenario(scene: Scene) -> None:
        scene.world.see(*[node(f"n{number:03}", has=f"10.0.{number}.0/24") for number in range(256)])
        scene.world.see(*[node(f"m{number:03}", has=f"10.1.{number}.0/24") for number in range(256)])
        scene.lookout._begin()
        assert set(states(await scene.look()).values()) == {"untracked"}
        scene.world.books.add_pool(spec("p", "10.0.0.0/15 /24"))
        shown = await scene.look()
        assert 0 < list(states(shown).values()).count("served") <= 2 * IN_TURN
        assert set(states(await scene.look(3)).values()) == {"served"}
        scene.world.books.remove_pool("p")
        shown = await scene.look(3)
        assert set(states(shown).values()) == {"untracked"}
        assert (shown["pools"], shown["ranges"]) == ([], [])

    play(scenario)


def test_what_was_missed() -> None:
    """A node that came or went without anybody telling is found when it is its turn."""

    async def scenario(scene: Scene) -> None:
        scene.world.see(node("a"), node("b"))
        scene.lookout._begin()
        await scene.look()
        scene.world.lose("a")
        scene.world.see(node("c"))
        assert set(states(await scene.look(3))) == {"b", "c"}

    play(scenario, POOL)


def test_those_who_wait_are_looked_at_with_each_round() -> None:
    """Why they wait changes as pools do."""

    async def scenario(scene: Scene) -> None:
        scene.world.see(node("late"), *[node(f"n{number}", has=f"10.9.{number}.0/24") for number in range(256)])
        scene.world.see(*[node(f"m{number}", has=f"10.8.{number}.0/24") for number in range(256)])
        scene.world.books.add_pool(spec("others", "10.8.0.0/15 /24", where="nobody=matches"))
        scene.lookout._begin()
        assert (await scene.look(2))["nodes"][0]["reason"] == "no pool applies to it"
        assert "late" not in list(scene.lookout._turns)[:IN_TURN]
        scene.world.books.add_pool(spec("tiny", "10.0.0.0/24 /24"))
        give(scene.world.books, node("first"))
        assert (await scene.look())["nodes"][0]["reason"].startswith("every pool that applies is full: tiny")
        scene.world.books.add_pool(spec("more", "10.1.0.0/24 /24"))
        assert "about to be served" in (await scene.look())["nodes"][0]["reason"]

    play(scenario)


def test_a_round_costs_what_changed() -> None:
    """However many nodes there are, a round looks at those whose turn it is, and makes no change of no change."""

    async def scenario(scene: Scene) -> None:
        scene.world.see(*[node(f"n{number}", has=f"10.{number >> 8}.{number & 255}.0/24") for number in range(3000)])
        scene.lookout._begin()
        await scene.look()
        version = scene.board.history.version
        looked_at = 0

        def count(*arguments: Any) -> api.Node:
            nonlocal looked_at
            looked_at += 1
            return node_row(*arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "node_row", count)
            patch.setattr(module, "pool_row", None)  # nobody asks for one
            await scene.look(4)
        assert 4 * IN_TURN <= looked_at <= 8 * IN_TURN
        assert scene.board.history.version == version

    play(scenario, spec("p", "10.0.0.0/8 /24"))


def test_others_have_their_turn() -> None:
    """A round of thousands is cut into pieces, and what changes in between is not lost."""

    async def scenario(scene: Scene) -> None:
        scene.world.see(*nodes(1000))
        scene.lookout._begin()
        looking = asyncio.ensure_future(scene.look())
        for _ in range(3):
            await asyncio.sleep(0)
        assert not looking.done()
        scene.change(node("n0"), node("n0", has="10.0.9.0/24"))
        scene.change(node("n999"), None)
        await looking
        shown = states(await scene.look())
        assert (shown["n0"], len(shown)) == ("served", 999)

    play(scenario, POOL)


def test_before_everything_is_listed() -> None:
    """N5: what is not known yet is not shown as missing; that it is not, is."""

    async def scenario(scene: Scene) -> None:
        scene.board.look()
        scene.world.listed = False
        scene.facts = api.Facts(
            name="lab", replica="tests", program="cidrella", leading=False, missing=["nodes"], remarks=[]
        )
        scene.change(None, node("a", has="10.0.0.0/24"))
        shown = await scene.look()
        assert (shown["nodes"], shown["cluster"]["missing"]) == ([], ["nodes"])
        scene.world.listed = True
        scene.world.books.add_pool(POOL)
        assert states(await scene.look()) == {"a": "served"}

    play(scenario)


class TestAllocations:
    """What was given and left behind of late, whoever looked on."""

    def test_given_and_released(self) -> None:
        """N1, N8: a node that got blocks, and one that left some; not one that came with them, nor one without."""

        async def scenario(scene: Scene) -> None:
            dual = "10.0.0.0/24,fd00::/64"
            scene.change(None, node("a"))
            scene.change(node("a"), node("a", has=dual, annotation="p"))
            scene.change(node("a", has=dual), node("a", "changed=yes", has=dual))
            scene.change(None, node("b", has="10.0.1.0/24"))
            scene.change(node("a", has=dual, annotation="p,q"), None)
            scene.change(None, node("c"))
            scene.change(node("c"), None)
            scene.change(node("b", has="10.0.1.0/24", annotation="p"), None)
            shown = (await scene.look())["allocations"]
            assert [(each["what"], each["node"], each["blocks"], each["pools"]) for each in shown] == [
                ("given", "a", ["10.0.0.0/24", "fd00::/64"], ["p", "q"]),
                ("released", "a", ["10.0.0.0/24", "fd00::/64"], ["p", "q"]),
                ("released", "b", ["10.0.1.0/24"], ["p"]),
            ]
            assert len((await scene.look())["allocations"]) == 3

        play(scenario, POOL, spec("q", "fd00::/48 /64"))

    def test_blocks_that_a_node_lost_otherwise(self) -> None:
        """N7, N8: another node of the same name; a restored backup; what is in no pool, or cannot be read."""

        async def scenario(scene: Scene) -> None:
            had = node("a", has="10.0.0.0/24")
            scene.change(had, replace(had, uid="another"))
            scene.change(replace(had, uid="another"), replace(had, uid="another", pod_cidrs=()))
            scene.change(node("b"), node("b", has="192.0.2.0/24,rubbish"))
            shown = (await scene.look())["allocations"]
            assert [(each["what"], each["node"], each["pools"]) for each in shown] == [
                ("released", "a", ["p"]),
                ("released", "a", ["p"]),
                ("given", "b", ["", ""]),
            ]

        play(scenario, POOL)

    def test_the_last_ones(self) -> None:
        """They are remembered while nobody looks, so many of them, and told again to who looks later."""

        async def scenario(scene: Scene) -> None:
            for number in range(LAST + 5):
                scene.change(node(f"n{number}"), node(f"n{number}", has=f"10.0.{number}.0/24"))
            assert len((await scene.look())["allocations"]) == LAST
            scene.board.clear()
            scene.lookout._begin()
            assert (await scene.look())["allocations"][-1]["node"] == f"n{LAST + 4}"

        play(scenario, POOL)


class TestSince:
    """Since when a node stands as it does, whether somebody looked or not."""

    def test_nobody_looked(self) -> None:
        """It is since it was first seen, or got its blocks: not since somebody came to look, nor came again."""

        async def scenario(scene: Scene) -> None:
            scene.change(None, node("late"))
            scene.change(None, node("served"))
            scene.wait(60)
            scene.change(node("served"), node("served", "labels=others"))
            scene.change(node("served"), node("served", has="10.0.0.0/24"))
            for _ in range(2):
                scene.wait(3600)
                scene.lookout._begin()
                shown = {each["name"]: each["since"] for each in (await scene.look())["nodes"]}
                assert shown == {"late": "2027-01-15T08:00:00Z", "served": "2027-01-15T08:01:00Z"}
                scene.board.clear()
            explained = scene.lookout.explain("late")
            assert explained is not None
            assert explained.node.since == "2027-01-15T08:00:00Z"

        play(scenario, spec("p", "10.0.0.0/24 /24"))

    def test_it_changed_while_somebody_looked(self) -> None:
        """A neighbour made it a conflict: it is since then, and stays so; another node of that name is new."""

        async def scenario(scene: Scene) -> None:
            scene.change(None, node("a", has="10.0.0.0/24"))
            await scene.look()
            scene.wait(60)
            scene.change(None, node("b", has="10.0.0.0/25"))
            assert {each["since"] for each in (await scene.look())["nodes"]} == {"2027-01-15T08:01:00Z"}
            scene.wait(60)
            assert {each["since"] for each in (await scene.look())["nodes"]} == {"2027-01-15T08:01:00Z"}
            scene.change(node("b", has="10.0.0.0/25"), None)
            assert scene.lookout._stood.keys() == {"a"}
            scene.change(None, node("b", has="10.0.0.0/25"))
            assert (await scene.look())["nodes"][-1]["since"] == "2027-01-15T08:02:00Z"

        play(scenario, POOL)


class TestForecasts:
    """When a pool is full at the rate of late."""

    def test_what_is_not_listed_yet_is_not_free(self) -> None:
        """N5: a process that begins takes nothing for taken that had been before."""

        async def scenario(scene: Scene) -> None:
            scene.world.listed = False
            scene.lookout.sample()
            assert scene.lookout._courses == {}
            scene.world.listed = True
            scene.world.see(*[node(f"n{number}", has=f"10.0.{number}.0/24") for number in range(200)])
            for _ in range(100):
                scene.wait(10)
                scene.lookout.sample()
            assert scene.lookout._forecasts == {}

        play(scenario, POOL)

    def test_a_clock_that_is_set(self) -> None:
        """The pace is not by that one; the date is."""

        async def scenario(scene: Scene) -> None:
            for number in range(60):
                scene.lookout.sample()
                scene.wait(60)
                scene.now += 86_400 if number == 20 else 0
                give(scene.world.books, node(f"n{number}"))
            scene.lookout.sample()
            forecast = scene.lookout._forecasts["p"]
            assert forecast.text == "full in about 3 hours at 60 blocks an hour"
            assert forecast.exhausted_at == "2027-01-16T12:16:00Z"

        play(scenario, POOL)

    def test_growth(self) -> None:
        """It is noted whether somebody looks or not, and shown with the pool."""

        async def scenario(scene: Scene) -> None:
            for number in range(60):
                scene.lookout.sample()
                scene.wait(60)
                give(scene.world.books, node(f"n{number}"))
            scene.lookout.sample()
            (pool,) = (await scene.look())["pools"]
            assert pool["forecast"]["text"] == "full in about 3 hours at 60 blocks an hour"
            assert pool["forecast"]["exhaustedAt"] == "2027-01-15T12:16:00Z"
            scene.wait(4000)
            scene.lookout.sample()
            (pool,) = (await scene.look())["pools"]
            assert pool["forecast"]["text"] == ""

        play(scenario, POOL)

    def test_pools_that_give_nothing(self) -> None:
        """One that is full, or going, does not run out, whatever was said before; nothing is kept of what is gone."""

        async def scenario(scene: Scene) -> None:
            for number in range(3):
                scene.lookout.sample()
                scene.wait(600)
                give(scene.world.books, node(f"n{number}"))
            scene.lookout.sample()
            (pool,) = (await scene.look())["pools"]
            assert pool["forecast"]["text"] == "full in about 10 minutes at 6 blocks an hour"
            give(scene.world.books, node("last"))
            (pool,) = (await scene.look())["pools"]
            assert (pool["state"], pool["forecast"]["text"]) == ("full", "")
            scene.world.books.forget("last")
            scene.world.books.change_pool(replace(tiny, terminating=True))
            (pool,) = (await scene.look())["pools"]
            assert (pool["state"], pool["forecast"]["text"]) == ("terminating", "")
            scene.world.books.remove_pool("p")
            scene.wait(60)
            scene.lookout.sample()
            assert (scene.lookout._courses, scene.lookout._forecasts) == ({}, {})

        tiny = spec("p", "10.0.0.0/22 /24")
        play(scenario, tiny)

    def test_they_do_not_change_all_the_time(self) -> None:
        """Who follows a thousand pools that fill is not told of all of them every few seconds."""

        async def scenario(scene: Scene) -> None:
            told = set()
            for second in range(0, 1200, 10):
                if second % 100 == 0:
                    give(scene.world.books, node(f"n{second}"))
                scene.lookout.sample()
                told.add(scene.lookout._forecasts.get("p"))
                scene.wait(10)
            assert 5 < len(told) <= 20

        play(scenario, POOL)


def test_it_is_drawn_while_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks: nothing is drawn. Somebody does: soon there is something to see, live. Nobody any more: it goes."""
    monkeypatch.setattr(module, "PERIOD", 0.01)
    monkeypatch.setattr(module, "SAMPLING", 0.01)

    async def scenario(scene: Scene) -> None:
        scene.world.see(node("a"))
        running = asyncio.ensure_future(scene.lookout.run())
        await asyncio.sleep(0.05)
        assert not scene.board.filled.is_set()
        assert not followed(scene)
        assert scene.lookout._courses
        scene.change(None, node("b"))
        assert scene.lookout._changed.keys() <= {"a"}
        scene.board.came()
        await asyncio.wait_for(scene.board.filled.wait(), 60)
        assert followed(scene)
        assert states(json.loads(scene.board.state())) == {"a": "waiting", "b": "waiting"}
        version = scene.board.history.version
        scene.change(None, node("c"))
        await asyncio.wait_for(scene.board.history.wait(version), 60)
        assert "c" in states(json.loads(scene.board.state()))
        scene.board.went()
        scene.now += 2 * LINGER
        while scene.board.filled.is_set():
            await asyncio.sleep(0.01)
        assert json.loads(scene.board.state())["nodes"] == []
        assert not followed(scene)
        scene.board.look()
        await asyncio.wait_for(scene.board.filled.wait(), 60)
        assert len(states(json.loads(scene.board.state()))) == 3
        running.cancel()
        await asyncio.wait([running])

    play(scenario, POOL)


def test_whatever_goes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is logged, tried again, and ends nothing."""
    monkeypatch.setattr(module, "PERIOD", 0.01)
    monkeypatch.setattr(module, "_AGAIN", 0.01)

    async def scenario(scene: Scene) -> None:
        scene.around.fail = True
        scene.board.came()
        running = asyncio.ensure_future(scene.lookout.run())
        with capture_logs() as logs:
            while len(logs) < 2:
                await asyncio.sleep(0.01)
        assert {line["event"] for line in logs} == {"the page cannot be kept up for a moment"}
        scene.around.fail = False
        await asyncio.wait_for(scene.board.filled.wait(), 60)
        assert not running.done()
        running.cancel()
        await asyncio.wait([running])

    play(scenario, POOL)


def test_the_controller_is_not_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong with what it tells of nodes is logged, and found out about when it is their turn."""

    async def scenario(scene: Scene) -> None:
        await scene.look()
        monkeypatch.setattr(scene.lookout, "_note", None)
        with capture_logs() as logs:
            scene.change(None, node("a"))
            scene.change(node("a"), node("a", has="10.0.0.0/24"))
        assert [line["event"] for line in logs] == ["the page missed what became of some nodes"]
        assert states(await scene.look(2)) == {"a": "served"}

    play(scenario, POOL)


@pytest.mark.parametrize("seed", range(3))
def test_a_walk(seed: int) -> None:
    """Whatever happens to nodes, pools and ranges, after some rounds the board says what the books say."""

    async def scenario(scene: Scene) -> None:
        rng, world = random.Random(seed), scene.world
        spare = {"q": spec("q", "10.1.0.0/16 /24"), "r": spec("r", "10.0.0.0/15 /25", where="size=big")}
        for _ in range(200):
            name = f"n{rng.randrange(20)}"
            old, has = world.nodes.get(name), f"10.{rng.randrange(3)}.{rng.randrange(9)}.0/24"
            match rng.randrange(5):
                case 0 if old is not None:
                    scene.change(old, None)
                case 1 | 2 if old is None:
                    scene.change(None, node(name, has=rng.choice(["", has])))
                case 3 if old is not None and not old.pod_cidrs:
                    scene.change(old, node(name, has=has))
                case 4:
                    pool = rng.choice([*spare])
                    if pool in world.books.pools:
                        world.books.remove_pool(pool)
                    else:
                        world.books.add_pool(spare[pool])
            if rng.random() < 0.5:
                await scene.look()
        shown = await scene.look(3)
        expected = {
            name: (each.state, each.blocks, each.pools, each.reason)
            for name, seen in world.nodes.items()
            for each in [node_row(world.insight, seen, "", None)]
        }
        found = {
            each["name"]: (each["state"], each["blocks"], each["pools"], each["reason"]) for each in shown["nodes"]
        }
        assert found == expected
        assert {each["name"]: each["nodes"] for each in shown["pools"]} == {
            name: len(world.books.usage(pool).nodes) for name, pool in world.books.pools.items()
        }

    play(scenario, POOL)


def test_service_ranges_of_the_flags() -> None:
    """A7: they are ranges of the map as well."""

    async def scenario(scene: Scene) -> None:
        (only,) = (await scene.look())["ranges"]
        assert (only["range"], only["services"]) == ("10.96.0.0/16", ["10.96.0.0/16"])

    play(scenario, service_ranges=(prefix("10.96.0.0/16"),))
