"""Reading: one object, lists, lists in pages, and lists of what was."""

from __future__ import annotations

import base64
import json

import pytest

from cidrella.apiserver.serving import tokens
from cidrella.apiserver.store.history import GoneError
from cidrella.apiserver.store.store import Store
from tests.apiserver.asking import (
    CRDS,
    LEASES,
    METADATA,
    METADATA_LIST,
    NAMESPACES,
    NODES,
    TABLE,
    WIDGETS,
    Api,
    api,
    crd,
    lease,
    node,
    widget,
)


def fill(ask: Api, count: int = 5) -> None:
    for number in range(count):
        ask.make(NODES, node(f"n{number}", labels={"odd": str(number % 2)}))


class TestOne:
    """GET of an object."""

    def test_its_forms(self) -> None:
        """As it is, its metadata alone, a table, or YAML; and the first of those that are asked for."""
        with api() as ask:
            made = ask.make(NODES, node("a"))
            assert ask("GET", f"{NODES}/a").body == made
            assert ask("GET", f"{NODES}/a", accept=METADATA).body == {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": made["metadata"],
            }
            assert ask("GET", f"{NODES}/a", accept=f"{TABLE},application/json").body["rows"][0]["cells"][0] == "a"
            assert b"\nkind: Node\n" in ask("GET", f"{NODES}/a", accept="application/yaml").text

    def test_what_there_is_not(self) -> None:
        """An object, a part of it, a resource, or a group that is not there."""
        with api() as ask:
            ask.make(CRDS, crd())
            assert ask("GET", f"{NODES}/a").refused(404, "NotFound") == 'nodes "a" not found'
            unserved = "the server could not find the requested resource"
            for path in ("/api/v1/nowhere", f"{NODES}/a/nothing", "/api/v1/namespaces/default/nodes", "/api/v1//nodes"):
                assert ask("GET", path).refused(404, "NotFound") == unserved
            assert ask("GET", f"{WIDGETS}/a/scale").refused(404, "NotFound") == 'widgets.example.com "a" not found'
            for path in ("/apis/nowhere/v1/x", "/apis/example.com/v1/gadgets", "/apis/example.com/v1/widgets/a", "/x"):
                assert (ask("GET", path).code, ask("GET", path).text) == (404, b"404 page not found\n")

    def test_a_version(self) -> None:
        """A state at least as new as a version can be asked for; one that there has not been is not waited for."""
        with api() as ask:
            ask.make(NODES, node("a"))
            ask("GET", f"{NODES}/a?resourceVersion=1").granted()
            refused = ask("GET", f"{NODES}/a?resourceVersion=999").refused(504, "Timeout")
            assert refused.startswith("Timeout: Too large resource version: 999, current: ")
            assert ask("GET", f"{NODES}/a?resourceVersion=x").code == 500

    def test_methods(self) -> None:
        """What cannot be done with a path is not allowed."""
        with api() as ask:
            ask.make(CRDS, crd())
            for method, path in (
                ("POST", f"{NODES}/a"),
                ("PUT", NODES),
                ("PATCH", NODES),
                ("DELETE", f"{NODES}/a/status"),
                ("DELETE", NAMESPACES),
                ("OPTIONS", f"{NODES}/a"),
                ("DELETE", "/apis/coordination.k8s.io/v1/leases"),
            ):
                ask(method, path).refused(405, "MethodNotAllowed")
            assert ask("PUT", WIDGETS).refused(400, "BadRequest") == "name must be provided"
            assert ask("POST", "/apis/example.com/v1/widgets").code == 404


class TestLists:
    """GET of many."""

    def test_their_forms(self) -> None:
        """Items of built-in kinds do not say what they are, custom ones do; there are tables, and metadata alone."""
        with api() as ask:
            fill(ask, 2)
            ask.make(CRDS, crd())
            ask.make(WIDGETS, widget("w"))
            listed = ask("GET", NODES).body
            assert (listed["kind"], listed["apiVersion"]) == ("NodeList", "v1")
            assert [list(each) for each in listed["items"]] == [["metadata", "spec", "status"]] * 2
            custom = ask("GET", WIDGETS).body
            assert (custom["kind"], custom["metadata"]["continue"]) == ("WidgetList", "")
            assert custom["items"][0]["kind"] == "Widget"
            assert [row["cells"][0] for row in ask("GET", NODES, accept=TABLE).body["rows"]] == ["n0", "n1"]
            partial = ask("GET", NODES, accept=METADATA_LIST).body
            assert [each["kind"] for each in partial["items"]] == ["PartialObjectMetadata"] * 2
            assert ask("GET", f"{NODES}?labelSelector=x", accept=METADATA_LIST).body["items"] is None
            assert b"kind: NodeList" in ask("GET", NODES, accept="application/yaml").text
            wide = ask("GET", f"{NODES}?includeObject=Object", accept=TABLE).body["rows"][0]["object"]
            assert (wide["kind"], "spec" in wide) == ("Node", True)

    def test_one_is_not_many(self) -> None:
        """The form for one object is not that of a list, and the other way round."""
        with api() as ask:
            ask.make(NODES, node("a"))
            assert "is a list (*core.NodeList)" in ask("GET", NODES, accept=METADATA).refused(406, "NotAcceptable")
            refused = ask("GET", f"{NODES}/a", accept=METADATA_LIST).refused(406, "NotAcceptable")
            assert "is not a list (*core.Node)" in refused

    def test_selected(self) -> None:
        """By labels and by fields; a selector that makes no sense is refused."""
        with api() as ask:
            fill(ask)
            assert ask("GET", f"{NODES}?labelSelector=odd%3D1").names == ["n1", "n3"]
            assert ask("GET", f"{NODES}?fieldSelector=metadata.name!%3Dn1&labelSelector=odd%3D1").names == ["n3"]
            assert ask("GET", f"{NODES}?fieldSelector=spec.unschedulable%3Dtrue").names == []
            ask("GET", f"{NODES}?labelSelector=-").refused(400, "BadRequest")
            ask("GET", f"{NODES}?fieldSelector=spec.x%3D1").refused(400, "BadRequest")

    def test_in_namespaces(self) -> None:
        """In one, or in all; one that is not there is empty."""
        with api() as ask:
            ask.make(LEASES, lease("a"))
            ask.make(LEASES.replace("default", "kube-system"), lease("b"))
            assert ask("GET", LEASES).names == ["a"]
            assert ask("GET", "/apis/coordination.k8s.io/v1/leases").names == ["a", "b"]
            assert ask("GET", LEASES.replace("default", "nowhere")).names == []


class TestPages:
    """Lists in pages."""

    @pytest.mark.parametrize("path", [NODES, LEASES, "/apis/coordination.k8s.io/v1/leases"])
    def test_all_of_them(self, path: str) -> None:
        """Every object once, as it was when the first page was made, whatever happens meanwhile."""
        with api() as ask:
            sort, where = (node, NODES) if path == NODES else (lease, LEASES)
            for number in range(5):
                ask.make(where, sort(f"n{number}"))
            first = ask("GET", f"{path}?limit=2").body
            assert first["metadata"]["remainingItemCount"] == 3
            ask("DELETE", f"{where}/n3").granted()
            ask.make(where, sort("n9"))
            second = ask("GET", f"{path}?limit=2&continue={first['metadata']['continue']}").body
            third = ask("GET", f"{path}?limit=2&continue={second['metadata']['continue']}").body
            pages = [first, second, third]
            assert [each["metadata"]["name"] for page in pages for each in page["items"]] == [
                f"n{at}" for at in range(5)
            ]
            assert {page["metadata"]["resourceVersion"] for page in pages} == {first["metadata"]["resourceVersion"]}
            assert "continue" not in third["metadata"]

    def test_selected(self) -> None:
        """How many more match is not counted."""
        with api() as ask:
            fill(ask)
            first = ask("GET", f"{NODES}?limit=1&labelSelector=odd%3D1").body["metadata"]
            assert "remainingItemCount" not in first
            rest = ask("GET", f"{NODES}?limit=9&labelSelector=odd%3D1&continue={first['continue']}")
            assert rest.names == ["n3"]

    def test_nothing_selected_follows(self) -> None:
        """It goes on wherever anything follows, selected or not; but not after the only one that may match."""
        with api() as ask:
            fill(ask, 3)
            first = ask("GET", f"{NODES}?limit=1&labelSelector=odd%3D1").body["metadata"]
            rest = ask("GET", f"{NODES}?limit=1&labelSelector=odd%3D1&continue={first['continue']}")
            assert (rest.names, "continue" in rest.body["metadata"]) == ([], False)
            for last in ("labelSelector=odd%3D0&limit=2", "fieldSelector=metadata.name%3Dn1&limit=1"):
                assert "continue" not in ask("GET", f"{NODES}?{last}").body["metadata"]

    def test_what_is_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where the state of the first page is no longer known, a client may go on with what there is."""
        with api() as ask:
            fill(ask)
            token = ask("GET", f"{NODES}?limit=2").body["metadata"]["continue"]
            ask.make(NODES, node("n9"))

            def forgotten(*_: object) -> None:
                raise GoneError(1, 2)

            monkeypatch.setattr(Store, "entries_at", forgotten)
            refused = ask("GET", f"{NODES}?limit=2&continue={token}")
            assert refused.refused(410, "Expired").startswith("The provided continue parameter is too old")
            onward = refused.body["metadata"]["continue"]
            assert ask("GET", f"{NODES}?limit=9&continue={onward}").names == ["n2", "n3", "n4", "n9"]
            told = ask("GET", f"{NODES}?resourceVersion=2&resourceVersionMatch=Exact").refused(410, "Expired")
            assert told == "The resourceVersion for the provided list is too old."

    @pytest.mark.parametrize(
        ("token", "message"),
        [
            ("a=", "illegal base64 data at input byte 1"),
            ("abcde", "illegal base64 data at input byte 4"),
            ("bm9wZQ", "invalid character 'o' in literal null (expecting 'u')"),
            ("W10", "json: cannot unmarshal array into Go value of type storage.continueToken"),
            ({"v": "v9"}, "server does not recognize this encoded version v9"),
            ({"v": "meta.k8s.io/v1", "start": "a"}, "incorrect encoded start resourceVersion"),
            ({"v": "meta.k8s.io/v1", "rv": 1}, "encoded start key empty"),
            ({"v": "meta.k8s.io/v1", "rv": 1, "start": "../a"}, "../a"),
        ],
    )
    def test_what_is_no_token(self, token: object, message: str) -> None:
        """Somebody made it up."""
        text = (
            token
            if isinstance(token, str)
            else base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")
        )
        with api() as ask:
            refused = ask("GET", f"{NODES}?limit=1&continue={text}").refused(400, "BadRequest")
            assert refused.startswith(f"invalid continue token: continue key is not valid: {message}")

    def test_tokens_are_read_back(self) -> None:
        """A token says where to go on, with any letters."""
        assert tokens.parse(tokens.after(7, "a/ä").text()) == tokens.Token(7, "a/ä\0")


class TestVersions:
    """Which state a list is of."""

    def test_exactly(self) -> None:
        """Of a version; or at least as new as one; or, with a limit, of the version that is named."""
        with api() as ask:
            fill(ask, 2)
            then = ask("GET", NODES).body["metadata"]["resourceVersion"]
            ask("DELETE", f"{NODES}/n0").granted()
            assert ask("GET", f"{NODES}?resourceVersion={then}&resourceVersionMatch=Exact").names == ["n0", "n1"]
            assert ask("GET", f"{NODES}?resourceVersion={then}&limit=9").names == ["n0", "n1"]
            for query in ("", "resourceVersionMatch=NotOlderThan", "limit=9&resourceVersionMatch=NotOlderThan"):
                assert ask("GET", f"{NODES}?resourceVersion={then}&{query}").names == ["n1"]
            assert ask("GET", f"{NODES}?resourceVersion=0&limit=1").names == ["n1"]
            ask("GET", f"{NODES}?resourceVersion=999").refused(504, "Timeout")

    @pytest.mark.parametrize(
        ("query", "code", "message"),
        [
            ("resourceVersionMatch=Exact", 422, "resourceVersionMatch is forbidden unless resourceVersion is provided"),
            ("resourceVersionMatch=Exact&resourceVersion=0", 422, '"exact" is forbidden for resourceVersion "0"'),
            ("resourceVersionMatch=X&resourceVersion=1", 422, 'supported values: "Exact", "NotOlderThan", ""'),
            ("resourceVersionMatch=Exact&resourceVersion=1&continue=x", 422, "forbidden when continue is provided"),
            ("sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"),
            ("resourceVersion=1&continue=x", 400, "specifying resource version is not allowed when using continue"),
            ("resourceVersion=x", 400, "invalid resource version: resourceVersion: Invalid value"),
            ("limit=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
            ("limit=9223372036854775808", 400, "value out of range"),
        ],
    )
    def test_what_makes_no_sense(self, query: str, code: int, message: str) -> None:
        """Options that contradict each other, or are none."""
        with api() as ask:
            reply = ask("GET", f"{NODES}?{query}")
            assert (reply.code, message in reply.message) == (code, True), reply.text
