"""Lists: in order, selected, in parts that belong together, and of a version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.bodies import NODES, POOLS, lease, leases, made, names, node, pool, services, version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.talking import Talk

    Json = dict[str, Any]


@pytest.fixture
def five(talk: Talk, namespace: str) -> str:
    """A namespace with the Leases a to e; where they are."""
    path = leases(namespace)
    for number, each in enumerate("ebdac"):
        body = lease(each)
        body["metadata"]["labels"] = {"letter": each, "number": str(number), **({"vowel": ""} if each in "ae" else {})}
        made(talk, path, body)
    return path


def pages(talk: Talk, path: str, limit: int, **query: str) -> Iterator[Json]:
    """A list in parts, as a client with a limit reads it."""
    more: dict[str, str] = {}
    while True:
        page = talk.get(path, limit=str(limit), **query, **more).granted()
        yield page
        token = page["metadata"].get("continue", "")
        if not token:
            return
        more = {"continue": token}


def test_its_form(talk: Talk, five: str) -> None:
    """A list names its own kind and version, and its objects without repeating theirs, ordered by name."""
    listed = talk.get(five).granted()
    assert (listed["kind"], listed["apiVersion"]) == ("LeaseList", "coordination.k8s.io/v1")
    assert names(listed) == list("abcde")
    assert all("kind" not in each for each in listed["items"])
    assert version(listed) >= max(map(version, listed["items"]))


def test_what_crds_define_says_its_kind(talk: Talk, name: str) -> None:
    """In lists of those each object tells its kind."""
    made(talk, POOLS, pool(name))
    listed = talk.get(POOLS, fieldSelector=f"metadata.name={name}").granted()
    assert (listed["kind"], listed["apiVersion"]) == ("ClusterCIDRList", "networking.x-k8s.io/v1")
    assert [each["kind"] for each in listed["items"]] == ["ClusterCIDR"]


def test_of_nothing(talk: Talk, namespace: str) -> None:
    """An empty list is a list: `items` is there, and there is a version to watch from."""
    listed = talk.get(leases(namespace)).granted()
    assert listed["items"] == []
    assert version(listed) > 0


def test_of_all_namespaces(talk: Talk, name: str, namespace: str) -> None:
    """Without a namespace in the path: all of them, in the order of "namespace/name" as text."""
    other = f"{namespace}-b"
    talk.create("/api/v1/namespaces", {"metadata": {"name": other}}).granted(201)
    for where in (other, namespace):
        body = lease("x")
        body["metadata"]["labels"] = {"test": name}
        made(talk, leases(where), body)
    found = talk.get("/apis/coordination.k8s.io/v1/leases", labelSelector=f"test={name}").granted()["items"]
    assert [each["metadata"]["namespace"] for each in found] == [other, namespace], "- is before /"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("letter=a", "a"),
        ("letter==a", "a"),
        ("letter!=a", "bcde"),
        ("nothing!=a", "abcde"),
        ("letter in (a, c)", "ac"),
        ("letter notin (a,c)", "bde"),
        ("nothing notin (a)", "abcde"),
        ("vowel", "ae"),
        ("!vowel", "bcd"),
        ("vowel=", "ae"),
        ("number>2", "ac"),
        ("number<1", "e"),
        ("vowel,letter!=a", "e"),
        (" letter = a ", "a"),
        ("letter=x", ""),
        ("", "abcde"),
    ],
)
def test_label_selectors(talk: Talk, five: str, selector: str, expected: str) -> None:
    """Every operator, alone and together."""
    assert names(talk.get(five, labelSelector=selector).granted()) == list(expected)


@pytest.mark.parametrize(
    "selector", ["a b", "a in (", "a in b", "=a", "a=b=c", "a,,b", "!", "a=not valid!", "number>x", "a/b/c=d"]
)
def test_label_selectors_that_make_no_sense(talk: Talk, five: str, selector: str) -> None:
    """They are refused, and not taken for one that selects everything."""
    talk.get(five, labelSelector=selector).refused(400, "BadRequest")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=a", "a"),
        ("metadata.name==a", "a"),
        ("metadata.name!=a", "bcde"),
        ("metadata.name!=a,metadata.name!=b", "cde"),
        ("metadata.name=x", ""),
        ("metadata.namespace=nowhere", ""),
    ],
)
def test_field_selectors(talk: Talk, five: str, selector: str, expected: str) -> None:
    """By name and by namespace, of every kind."""
    assert names(talk.get(five, fieldSelector=selector).granted()) == list(expected)


@pytest.mark.parametrize("path", [NODES, POOLS])
def test_fields_that_cannot_be_selected_by(talk: Talk, path: str) -> None:
    """A selector on anything else is refused, and not ignored: kubelets and controllers rely on seeing only theirs."""
    reply = talk.get(path, fieldSelector="spec.nonsense=x")
    reply.refused(400, "BadRequest", "field label not supported: spec.nonsense")
    talk.get(path, fieldSelector="metadata.name").refused(400, "BadRequest", "invalid selector")


def test_nodes_by_whether_they_take_pods(talk: Talk, name: str) -> None:
    """What nodes can be selected by beyond their name."""
    made(talk, NODES, node(f"{name}-1", {"test": name}, unschedulable=True))
    made(talk, NODES, node(f"{name}-2", {"test": name}))
    for value, expected in (("true", f"{name}-1"), ("false", f"{name}-2")):
        selected = talk.get(NODES, labelSelector=f"test={name}", fieldSelector=f"spec.unschedulable={value}")
        assert names(selected.granted()) == [expected]


def test_services_by_their_type(talk: Talk, name: str, namespace: str) -> None:
    """What Services can be selected by."""
    body = {"metadata": {"name": name}, "spec": {"clusterIP": "None"}}
    made(talk, services(namespace), body)
    for selector, count in (
        ("spec.clusterIP=None", 1),
        ("spec.type=ClusterIP", 1),
        ("spec.type=NodePort", 0),
    ):
        assert len(talk.get(services(namespace), fieldSelector=selector).granted()["items"]) == count


class TestInParts:
    """Limit and continue: many objects, some at a time."""

    @pytest.mark.parametrize("limit", [1, 2, 5, 7])
    def test_all_of_them_once(self, talk: Talk, five: str, limit: int) -> None:
        """Together the parts are the list, and each says how many there still are."""
        found = list(pages(talk, five, limit))
        assert [each for page in found for each in names(page)] == list("abcde")
        left = [page["metadata"].get("remainingItemCount", 0) for page in found]
        assert left == [max(0, 5 - limit * (number + 1)) for number in range(len(found))]

    def test_as_it_was_at_the_first(self, talk: Talk, five: str) -> None:
        """What changes in between does not show: a cache built of the parts is one that once was."""
        reading = pages(talk, five, 2)
        first = next(reading)
        made(talk, five, lease("bb"))
        made(talk, five, lease("cc"))
        talk.delete(f"{five}/d").granted()
        talk.patch(f"{five}/c", {"metadata": {"labels": {"changed": "x"}}}).granted()
        rest = list(reading)
        items = [each for page in rest for each in page["items"]]
        assert [each["metadata"]["name"] for each in items] == list("cde")
        assert "changed" not in items[0]["metadata"]["labels"]
        assert {page["metadata"]["resourceVersion"] for page in rest} == {first["metadata"]["resourceVersion"]}
        assert names(talk.get(five).granted()) == ["a", "b", "bb", "c", "cc", "e"]

    def test_with_a_selector(self, talk: Talk, five: str) -> None:
        """As many as asked for are found if there are; how many are left is not told, as nobody counted."""
        found = list(pages(talk, five, 2, labelSelector="letter!=b"))
        assert [names(page) for page in found] == [["a", "c"], ["d", "e"]]
        assert all("remainingItemCount" not in page["metadata"] for page in found)

    def test_tokens_that_are_none(self, talk: Talk, five: str) -> None:
        """A token is what the server gave, and stands for a version already."""
        talk.get(five, limit="2", **{"continue": "nonsense"}).refused(400, "BadRequest", "continue key is not valid")
        token = next(pages(talk, five, 2))["metadata"]["continue"]
        reply = talk.get(five, limit="2", resourceVersion="1", **{"continue": token})
        reply.refused(400, "BadRequest", "specifying resource version is not allowed when using continue")

    def test_a_cache_answers_whole(self, talk: Talk, five: str) -> None:
        """With version 0, any state will do: the list comes in one part, as from a cache."""
        talk.get(five).granted()  # a cache that may be behind has caught up after a list of the latest state
        listed = talk.get(five, limit="2", resourceVersion="0").granted()
        assert names(listed) == list("abcde")


class TestOfAVersion:
    """Lists as they were, or not older than a version."""

    def test_exactly(self, talk: Talk, five: str) -> None:
        """As it was then, though it changed since."""
        then = talk.get(five).granted()["metadata"]["resourceVersion"]
        talk.delete(f"{five}/a").granted()
        listed = talk.get(five, resourceVersion=then, resourceVersionMatch="Exact").granted()
        assert names(listed) == list("abcde")
        assert listed["metadata"]["resourceVersion"] == then

    def test_not_older(self, talk: Talk, five: str) -> None:
        """At least what a client has seen already."""
        then = talk.get(five).granted()["metadata"]["resourceVersion"]
        last = talk.delete(f"{five}/a").granted()
        assert last["status"] == "Success"
        listed = talk.get(five, resourceVersion=then, resourceVersionMatch="NotOlderThan").granted()
        assert version(listed) >= int(then)

    def test_one_that_is_not_yet(self, talk: Talk, five: str) -> None:
        """A client that saw more than this server has asks again later."""
        reply = talk.get(five, resourceVersion="999999999")
        reply.refused(504, "Timeout", "Too large resource version: 999999999")
        assert ("ResourceVersionTooLarge", "") in reply.causes
        assert reply.body["details"]["retryAfterSeconds"] == 1

    @pytest.mark.parametrize(
        "query",
        [
            {"resourceVersionMatch": "Exact"},
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            {"resourceVersionMatch": "Perhaps", "resourceVersion": "1"},
        ],
        ids=["alone", "zero", "word"],
    )
    def test_which_make_no_sense(self, talk: Talk, five: str, query: dict[str, str]) -> None:
        """A way of matching needs a version to match."""
        talk.get(five, **query).refused(422, "Invalid", "resourceVersionMatch")

    def test_which_are_none(self, talk: Talk, five: str) -> None:
        """A version is a number that the server gave."""
        talk.get(five, resourceVersion="x").refused(400, "BadRequest", "invalid resource version")
        talk.get(five, limit="x").refused(400, "BadRequest")
