"""The contract is kept: every rule and pitfall of docs/rules.md is pinned by a test, or is owed to named later work.

How a test says what it pins. The docstring of a test (a function ``test_*``, a class ``Test*``, a Hypothesis rule-based
state machine) or of its module names the ids, each written out:

- a rule by its letter and number as a word of its own. A range from one id to another names neither of them, and
  nothing between; what is part of a longer word, of a host name or of an IPv6 address is no id;
- a pitfall as ``pitfall`` and one number, the word again for each further one. The plural names nothing.

So a docstring cannot claim by accident, or by the dozen, what its test does not show. This file only talks about ids
and pins none: it is left out of the scan, though not of the demand for docstrings.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parent
PAGE: Final = TESTS.parent / "docs" / "rules.md"

# What no test can show yet, and the piece of work that will. An id leaves this list with the first test that names it.
OWED: Final[Mapping[str, str]] = {}

# Two digits at most: a lint code such as S311, or a machine type such as A100, is not meant as a rule.
RULE_BULLET: Final = re.compile(r"^- \*\*([ACSNPFOBK][1-9][0-9]?)\*\* ", re.MULTILINE)
PITFALL_ROW: Final = re.compile(r"^\| (pitfall [1-9][0-9]?) \|", re.MULTILINE)
# Any number, so that a slip (N0, N11) is seen. Joined by a hyphen, a dash, a dot or a colon to what is before or after
# it, it is the end of a range, part of a name or part of an address.
RULE_NAMED: Final = re.compile(r"(?<![\w:.\-\u2013])([ACSNPFOBK][0-9]{1,2})(?!\w|[.:\-\u2013]\w|\.\.|::)")
PITFALL_NAMED: Final = re.compile(r"\bpitfall\s+([0-9]+)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Documented:
    """A place in a test file that can carry a docstring: the module, a test class or a test function."""

    where: str
    docstring: str
    is_function: bool


def ids_of_page(page: str) -> list[str]:
    """Return the ids that the page defines, in its order: rules from bullets, pitfalls from table rows."""
    return RULE_BULLET.findall(page) + PITFALL_ROW.findall(page)


def ids_named(text: str) -> set[str]:
    """Return the ids that a docstring names, whether the page has them or not."""
    return set(RULE_NAMED.findall(text)) | {f"pitfall {int(number)}" for number in PITFALL_NAMED.findall(text)}


def documented(source: str, path: str) -> Iterator[Documented]:
    """Yield the module, the test classes and the test functions of a test file, in no particular order."""
    tree = ast.parse(source, path)
    yield Documented(path, ast.get_docstring(tree) or "", is_function=False)
    machines = {"RuleBasedStateMachine"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not machines.isdisjoint(map(_last_name, node.bases)):
            machines.add(node.name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_test = node.name.startswith("test_")
        elif isinstance(node, ast.ClassDef):
            is_test = node.name.startswith("Test") or node.name in machines
        else:
            continue
        if is_test:
            where = f"{path}:{node.lineno} {node.name}"
            yield Documented(where, ast.get_docstring(node) or "", is_function=not isinstance(node, ast.ClassDef))


def _last_name(base: ast.expr) -> str:
    """Return ``Machine`` for ``Machine`` and for ``stateful.Machine``, and nothing for what is not a name."""
    if isinstance(base, ast.Attribute):
        return base.attr
    return base.id if isinstance(base, ast.Name) else ""


def where_named(places: Iterable[Documented]) -> dict[str, list[str]]:
    """Return, for each id that is named, the places that name it."""
    named: defaultdict[str, list[str]] = defaultdict(list)
    for place in places:
        for identifier in ids_named(place.docstring):
            named[identifier].append(place.where)
    return dict(named)


def in_order(ids: Iterable[str]) -> list[str]:
    """Sort ids for people: rules before pitfalls, B2 before B10."""
    return sorted(ids, key=lambda identifier: (identifier.startswith("pitfall"), *_split(identifier)))


def _split(identifier: str) -> tuple[str, int]:
    """Return an id's letter (or the word and the space) and its number."""
    word = identifier.rstrip("0123456789")
    return word, int(identifier.removeprefix(word))


def owed_lines(owed: Mapping[str, str]) -> list[str]:
    """Return one line per piece of work, with what it owes: runs of neighbours shortened to first..last."""
    return [
        f"owed to {work}: {', '.join(_runs(identifier for identifier in owed if owed[identifier] == work))}"
        for work in dict.fromkeys(owed.values())
    ]


def _runs(ids: Iterable[str]) -> Iterator[str]:
    """Yield neighbours with one letter and consecutive numbers as one word, and the others as they are."""
    parts = [_split(identifier) for identifier in in_order(ids)]
    for _, run in groupby(enumerate(parts), key=lambda entry: (entry[1][0], entry[1][1] - entry[0])):
        (word, first), *rest = (part for _, part in run)
        yield f"{word}{first}..{word.removeprefix('pitfall ')}{rest[-1][1]}" if rest else f"{word}{first}"


def every_place() -> Iterator[Documented]:
    """Yield what can carry a docstring in all test files of the project."""
    for path in sorted(TESTS.rglob("test_*.py")):
        yield from documented(path.read_text(encoding="utf-8"), path.relative_to(TESTS.parent).as_posix())


@pytest.fixture(scope="module")
def page() -> str:
    """Return the text of docs/rules.md."""
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def places() -> list[Documented]:
    """Return all that can carry a docstring, in all test files, this one included."""
    return list(every_place())


@pytest.fixture(scope="module")
def named(places: list[Documented]) -> dict[str, list[str]]:
    """Return the ids that tests name, and where. This file, which only talks about ids, is left out."""
    this_file = Path(__file__).relative_to(TESTS.parent).as_posix()
    return where_named(place for place in places if not place.where.startswith(this_file))


class TestTheContract:
    """The page, the tests and the list of what is owed agree."""

    def test_every_id_is_pinned_or_owed(self, page: str, named: dict[str, list[str]]) -> None:
        """No rule and no pitfall is forgotten: a test names it, or a piece of later work owes it."""
        missing = in_order(set(ids_of_page(page)) - named.keys() - OWED.keys())
        assert not missing, f"{len(missing)} ids that no test names and nobody owes: {', '.join(missing)}"

    def test_nothing_is_owed_that_is_pinned(self, named: dict[str, list[str]]) -> None:
        """A debt that is paid leaves the list, so that the list stays true."""
        stale = [
            f"{identifier} ({', '.join(named[identifier])})" for identifier in in_order(OWED.keys() & named.keys())
        ]
        assert not stale, f"in OWED although tests name them: {'; '.join(stale)}"

    def test_no_test_names_an_unknown_id(self, page: str, named: dict[str, list[str]]) -> None:
        """A docstring names ids that exist; a word that only looks like one has to be written differently."""
        unknown = in_order(named.keys() - set(ids_of_page(page)))
        report = "; ".join(f"{identifier} ({', '.join(named[identifier])})" for identifier in unknown)
        assert not unknown, f"named by tests but not in docs/rules.md: {report}"

    def test_nothing_unknown_is_owed(self, page: str) -> None:
        """What is owed is on the page."""
        assert in_order(OWED.keys() - set(ids_of_page(page))) == []

    def test_every_test_has_a_docstring(self, places: list[Documented]) -> None:
        """Every test function says in words what it holds the code to."""
        silent = [place.where for place in places if place.is_function and not place.docstring.strip()]
        assert not silent, "tests without a docstring:\n" + "\n".join(silent)

    def test_what_is_owed_is_shown(self, record_property: Callable[[str, object], None]) -> None:
        """Each run of the tests prints what it does not show, a line for each piece of work that owes."""
        lines = owed_lines(OWED)
        assert len(lines) == len(set(OWED.values()))
        for line in lines:
            record_property("rules without a test", line)


class TestThePage:
    """docs/rules.md is in the form that the tests above rely on."""

    def test_ids_are_unique_and_without_gaps(self, page: str) -> None:
        """The ids of a letter, and those of the pitfalls, count from 1: a bullet out of form would leave a gap."""
        numbers: defaultdict[str, list[int]] = defaultdict(list)
        for identifier in ids_of_page(page):
            word, number = _split(identifier)
            numbers[word].append(number)
        assert [*numbers] == [*"ACSNPFOBK", "pitfall "]
        assert numbers == {word: [*range(1, len(found) + 1)] for word, found in numbers.items()}

    def test_ids_mentioned_exist(self, page: str) -> None:
        """Where a rule or a pitfall refers to another, that one exists."""
        assert in_order(ids_named(page) - set(ids_of_page(page))) == []


class TestReadingThePage:
    """Ids are taken from where they are defined, not from where they are mentioned."""

    def test_bullets_and_rows(self) -> None:
        """A bullet that starts with a bold id defines a rule, a row that starts with a pitfall defines that."""
        page = (
            "# A1\n- **A1** One, see **A2**.\n  - **A3** inner\n- **B10** Ten.\n\n| id |\n|---|\n| pitfall 7 | A2 |\n"
        )
        assert ids_of_page(page) == ["A1", "B10", "pitfall 7"]

    @pytest.mark.parametrize(
        "line", ["- A1 plain", "* **A1** star", "- **A1**: colon", "- **A01** zero", "- **Z1** letter"]
    )
    def test_other_shapes_define_nothing(self, line: str) -> None:
        """A bullet in any other form is not taken for a rule."""
        assert ids_of_page(line) == []


class TestReadingDocstrings:
    """Ids are whole words, written out one by one."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("A1", {"A1"}),
            ("Blocks are aligned (A2), and `A3`, **N10**.", {"A2", "A3", "N10"}),
            ("S4: all or nothing; S5/S6.", {"S4", "S5", "S6"}),
            ("A1's last clause\nN9.", {"A1", "N9"}),
            ("Slips are seen: S9, N11, A0.", {"S9", "N11", "A0"}),
            ("Against pitfall 3, pitfall 16 and\n    pitfall 27.", {"pitfall 3", "pitfall 16", "pitfall 27"}),
            ("Pitfall 99 (N2)", {"pitfall 99", "N2"}),
        ],
    )
    def test_named(self, text: str, expected: set[str]) -> None:
        """Punctuation around an id does not hide it."""
        assert ids_named(text) == expected

    @pytest.mark.parametrize(
        "text",
        [
            "IPv4 and IPv6, CIDRs, K8s, v1, a1",
            "from A1-A9, C1\u2013C3 or N1..N10",
            "node-B1, B1-node, pool_A1, a.B2.c",
            "fd00:A1::/64, A1::, FD00:B1:C2::",
            "KEP-2593, S311, A100, D1, 0xA1",
            "pitfalls 3 and 16, the pitfall, pitfall3",
        ],
    )
    def test_not_named(self, text: str) -> None:
        """Ranges, plurals, names, addresses and other codes name nothing."""
        assert ids_named(text) == set()


class TestReadingTestFiles:
    """Docstrings count where they belong to a test."""

    SOURCE = '''
"""Module: A1."""
from hypothesis import stateful

def helper():
    """Not a test: A2."""

def test_plain():
    """Plain: A3."""
    """Not a docstring: A4."""
    # nor a comment: A5

async def test_async(): ...

class TestGroup:
    """Group: S1."""

    def test_method(self):
        """Method: S2 and S1."""

    def helper(self):
        """Not a test: S3."""

class Machine(stateful.RuleBasedStateMachine):
    """Machine: N1."""

class Narrower(Machine):
    """Narrower: N2."""

class Other(make()):
    """Not a test: N3."""
'''

    def test_where_ids_are_named(self) -> None:
        """Of modules, test functions, test classes and state machines, not of helpers; with the line to look at."""
        assert where_named(documented(self.SOURCE, "t.py")) == {
            "A1": ["t.py"],
            "A3": ["t.py:8 test_plain"],
            "S1": ["t.py:15 TestGroup", "t.py:18 test_method"],
            "S2": ["t.py:18 test_method"],
            "N1": ["t.py:24 Machine"],
            "N2": ["t.py:27 Narrower"],
        }

    def test_a_missing_docstring_is_empty(self) -> None:
        """A test function without a docstring is yielded like the others, with nothing in it."""
        silent = [place.where for place in documented(self.SOURCE, "t.py") if place.is_function and not place.docstring]
        assert silent == ["t.py:13 test_async"]


class TestReporting:
    """Lists are sorted and shortened for people."""

    def test_in_order(self) -> None:
        """Numbers count as numbers, and pitfalls follow rules."""
        assert in_order(["pitfall 10", "S1", "pitfall 9", "B10", "B2"]) == [
            "B2",
            "B10",
            "S1",
            "pitfall 9",
            "pitfall 10",
        ]

    def test_owed_lines(self) -> None:
        """One line for each piece of work, neighbours drawn together."""
        owed = {
            "F2": "this",
            "F1": "this",
            "F3": "this",
            "O3": "this",
            "pitfall 5": "this",
            "pitfall 4": "this",
            "B1": "that",
        }
        assert owed_lines(owed) == ["owed to this: F1..F3, O3, pitfall 4..5", "owed to that: B1"]

    def test_nothing_owed(self) -> None:
        """When all is paid there is nothing to say."""
        assert owed_lines({}) == []
