"""Which request meets which fault: matching, counting, drawing, in the order of the rules."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.testenv.fault_script import EVERY, Script
from tests.testenv.faults import cut, gone, reset, stall

NODE = "/api/v1/nodes/a"


def hit(script: Script, count: int, method: str = "GET", path: str = NODE) -> list[int]:
    """Send that many equal requests and return the numbers, from 1, of those that met a fault."""
    return [number for number in range(1, count + 1) if script.decide(method, path)]


class TestMatching:
    """A rule is for the requests that its method and its path match."""

    @pytest.mark.parametrize(
        ("method", "path", "matches"),
        [
            (".*", "", True),
            ("PATCH", "", True),
            ("PATCH|PUT", "^/api/v1/nodes", True),
            (".*", "watch=true", True),
            (".*", r"nodes\?.*watch=true&", True),
            ("GET", "", False),
            ("PAT", "", False),
            ("patch", "", False),
            ("PATCH", "^/apis", False),
            ("PATCH", "^/api/v1/nodes$", False),
        ],
    )
    def test_method_and_path(self, method: str, path: str, matches: bool) -> None:
        """The method matches as a whole, the path anywhere in path and query."""
        script = Script()
        rule = script.add(cut(), method=method, path=path)
        assert script.decide("PATCH", "/api/v1/nodes?limit=1&watch=true&x=y") is (rule if matches else None)
        assert rule.seen == rule.hits == int(matches)

    def test_no_rules(self) -> None:
        """Without rules nothing happens."""
        assert hit(Script(), 3) == []


class TestCounting:
    """`nth` counts the requests that a rule matches, from 1, from when it was added."""

    @pytest.mark.parametrize(
        ("nth", "expected"),
        [
            (1, [1]),
            (3, [3]),
            (range(2, 4), [2, 3]),
            (range(1, 100, 3), [1, 4]),
            (range(5, 0, -2), [1, 3, 5]),
            (EVERY, [1, 2, 3, 4, 5, 6]),
        ],
    )
    def test_nth(self, nth: int | range, expected: list[int]) -> None:
        """A number, a range with or without steps, or every one."""
        script = Script()
        rule = script.add(cut(), nth=nth)
        assert hit(script, 6) == expected
        assert (rule.seen, rule.hits) == (6, len(expected))

    def test_others_do_not_count(self) -> None:
        """A request that a rule does not match has no number for it."""
        script = Script()
        script.add(cut(), method="PATCH", nth=2)
        assert hit(script, 2, "GET") == []
        assert hit(script, 1, "PATCH") == []
        assert hit(script, 2, "PATCH", "/other") == [1]

    def test_from_when_it_was_added(self) -> None:
        """What was before a rule does not count for it."""
        script = Script()
        script.decide("GET", NODE)
        script.add(cut(), nth=2)
        assert hit(script, 3) == [2]

    def test_earlier_rules_go_first_and_later_ones_still_count(self) -> None:
        """The first rule that wants a request has it; a later one counts it all the same, but has no hit."""
        script = Script()
        first, second = script.add(cut(), nth=range(2, 4)), script.add(reset(), nth=range(3, 5))
        assert [script.decide("GET", NODE) for _ in range(5)] == [None, first, first, second, None]
        assert (first.seen, first.hits, second.seen, second.hits) == (5, 2, 5, 1)

    def test_no_count_is_lost_between_threads(self) -> None:
        """However many threads ask, every request has one number."""
        script = Script()
        rule = script.add(cut(), nth=range(1, 10_000, 2))
        with ThreadPoolExecutor(8) as threads:
            hits = sum(threads.map(lambda _: script.decide("GET", NODE) is not None, range(2000)))
        assert (rule.seen, rule.hits, hits) == (2000, 1000, 1000)


class TestDrawing:
    """A probability is drawn from the seed."""

    @staticmethod
    def drawn(seed: int, *, before: bool = False, noise: bool = False) -> list[int]:
        """Return which of 200 requests are hit with this seed, beside other rules and other requests."""
        script = Script(seed)
        if before:
            script.remove(script.add(gone()))
        rule = script.add(cut(), path="^/api", probability=0.3)
        if noise:
            script.add(stall(), probability=0.5)
        hits = []
        for number in range(200):
            if noise:
                script.decide("GET", "/other")
            if script.decide("GET", NODE) is rule:
                hits.append(number)
        return hits

    def test_same_seed_same_faults(self) -> None:
        """The same seed gives the same faults again, and about as many as were asked for."""
        assert self.drawn(1) == self.drawn(1)
        assert 30 < len(self.drawn(1)) < 90

    def test_other_seed_other_faults(self) -> None:
        """Another seed gives other faults."""
        assert self.drawn(1) != self.drawn(2)

    def test_rules_do_not_share_draws(self) -> None:
        """What a later rule draws, and requests that a rule does not match, change nothing for it."""
        assert self.drawn(1) == self.drawn(1, noise=True)

    def test_each_rule_has_draws_of_its_own(self) -> None:
        """Two rules of a script do not draw the same."""
        assert self.drawn(1) != self.drawn(1, before=True)

    def test_never_and_always(self) -> None:
        """0 is never and 1 is always."""
        script = Script()
        script.add(cut(), method="GET", probability=0)
        script.add(cut(), method="PUT", probability=1)
        assert (len(hit(script, 100)), len(hit(script, 100, "PUT"))) == (0, 100)

    def test_with_nth(self) -> None:
        """Where both are given both must agree, and the draws are those of the same requests without nth."""
        without = self.drawn(1)
        script = Script(1)
        script.add(cut(), path="^/api", probability=0.3, nth=range(101, 201))
        assert [number - 1 for number in hit(script, 200)] == [number for number in without if number >= 100]


class TestChanging:
    """Rules come and go."""

    def test_remove(self) -> None:
        """A rule that was removed does nothing, and the others go on counting."""
        script = Script()
        first, second = script.add(cut()), script.add(reset(), nth=2)
        assert script.decide("GET", NODE) is first
        script.remove(first)
        assert script.decide("GET", NODE) is second
        with pytest.raises(ValueError, match="not in list"):
            script.remove(first)

    def test_equal_rules_are_not_the_same(self) -> None:
        """Of two rules that say the same, the one that is removed goes."""
        script = Script()
        first, second = script.add(cut()), script.add(cut())
        script.remove(second)
        assert script.decide("GET", NODE) is first

    def test_clear(self) -> None:
        """All rules go at once."""
        script = Script()
        script.add(cut())
        script.add(reset())
        script.clear()
        assert hit(script, 2) == []

    @pytest.mark.parametrize("nth", [0, -1, range(3), range(2, 2), range(3, -2, -1)])
    def test_numbers_that_no_request_has(self, nth: int | range) -> None:
        """Requests are counted from 1; a rule that could never fit, or only seemingly, is refused."""
        with pytest.raises(ValueError, match="counts from 1"):
            Script().add(cut(), nth=nth)

    @pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan")])
    def test_odd_probabilities(self, probability: float) -> None:
        """A probability is between 0 and 1."""
        with pytest.raises(ValueError, match="between 0 and 1"):
            Script().add(cut(), probability=probability)
