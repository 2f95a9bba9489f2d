"""Deleting: at once, or when the last finalizer is gone; one, or all that match."""

from __future__ import annotations

import pytest

from tests.apiserver.asking import LEASES, MERGE, NAMESPACES, NODES, TABLE, api, lease, node


class TestOne:
    """DELETE of an object."""

    def test_at_once(self) -> None:
        """It is gone, and the answer says which it was."""
        with api() as ask:
            made = ask.make(LEASES, lease("a"))
            deleted = ask("DELETE", f"{LEASES}/a").granted()
            assert deleted == {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": {
                    "name": "a",
                    "group": "coordination.k8s.io",
                    "kind": "leases",
                    "uid": made["metadata"]["uid"],
                },
            }
            ask("DELETE", f"{LEASES}/a").refused(404, "NotFound")

    def test_finalizers(self) -> None:
        """It is marked once, and goes with the last finalizer, by whatever kind of write; no new ones may come."""
        with api() as ask:
            ask.make(NODES, node("a", finalizers=["example.com/x", "example.com/y"]))
            marked = ask("DELETE", f"{NODES}/a").granted()
            assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
            assert ask("DELETE", f"{NODES}/a").granted() == marked
            added = {"metadata": {"finalizers": ["example.com/x", "example.com/z"]}}
            refused = ask("PATCH", f"{NODES}/a", added, media=MERGE).refused(422, "Invalid")
            assert "no new finalizers can be added if the object is being deleted" in refused
            ask("PATCH", f"{NODES}/a", {"metadata": {"finalizers": ["example.com/x"]}}, media=MERGE).granted()
            last = {"metadata": {"finalizers": None}}
            ask("PATCH", f"{NODES}/a?dryRun=All", last, media=MERGE).granted()
            gone = ask("PATCH", f"{NODES}/a", last, media=MERGE).granted()
            assert "finalizers" not in gone["metadata"]
            ask("GET", f"{NODES}/a").refused(404, "NotFound")

    @pytest.mark.parametrize(
        ("wanted", "message"),
        [
            ({"uid": "x"}, "The object might have been deleted and then recreated"),
            ({"resourceVersion": "x"}, "The object might have been modified"),
        ],
    )
    def test_preconditions(self, wanted: dict[str, str], message: str) -> None:
        """Who means another object, or another state of it, does not delete this one."""
        with api() as ask:
            made = ask.make(NODES, node("a"))["metadata"]
            assert message in ask("DELETE", f"{NODES}/a", {"preconditions": wanted}).refused(409, "Conflict")
            right = {"preconditions": {name: made[name] for name in wanted}}
            ask("DELETE", f"{NODES}/a", right).granted()

    def test_dry_run(self) -> None:
        """By the body or by the query; nothing is deleted, or marked."""
        with api() as ask:
            ask.make(NODES, node("a", finalizers=["example.com/x"]))
            ask.make(NODES, node("b"))
            before = ask.store.version
            assert "deletionTimestamp" in ask("DELETE", f"{NODES}/a?dryRun=All").granted()["metadata"]
            assert ask("DELETE", f"{NODES}/b", {"dryRun": ["All"]}).granted()["status"] == "Success"
            assert ask.store.version == before

    @pytest.mark.parametrize(
        ("options", "code", "message"),
        [
            ({"dryRun": ["X"]}, 422, 'dryRun: Unsupported value: ["X"]'),
            ({"propagationPolicy": "X"}, 422, 'supported values: "Foreground", "Background", "Orphan", "nil"'),
            ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422, "cannot be both set"),
            ({"gracePeriodSeconds": "x"}, 400, "Go struct field DeleteOptions.gracePeriodSeconds of type int64"),
            ({"kind": "Node", "apiVersion": "v1"}, 400, 'no kind "Node" is registered for version "v1"'),
        ],
    )
    def test_options(self, options: dict[str, object], code: int, message: str) -> None:
        """Those that make no sense are refused, before it is looked whether there is anything to delete."""
        with api() as ask:
            reply = ask("DELETE", f"{NODES}/a", options)
            assert (reply.code, message in reply.message) == (code, True), reply.text

    def test_policies(self) -> None:
        """There is no garbage collector: every policy means that the object goes."""
        with api() as ask:
            for policy in ("Foreground", "Background", "Orphan"):
                ask.make(NODES, node("a"))
                ask("DELETE", f"{NODES}/a?propagationPolicy={policy}").granted()
                ask("GET", f"{NODES}/a").refused(404, "NotFound")
            ask("DELETE", f"{NODES}/a?gracePeriodSeconds=x").refused(400, "BadRequest")
            ask("DELETE", f"{NODES}/a", b"{", media="text/plain").refused(415, "UnsupportedMediaType")
            ask("DELETE", f"{NODES}/a", b"{").refused(400, "BadRequest")


class TestMany:
    """DELETE of a collection."""

    def test_those_that_match(self) -> None:
        """The answer is what there was; a limit is kept to."""
        with api() as ask:
            for name in "abcd":
                ask.make(LEASES, lease(name, labels={"old": str(name < "c").lower()}))
            assert ask("DELETE", f"{LEASES}?labelSelector=old%3Dtrue").names == ["a", "b"]
            table = ask("DELETE", f"{LEASES}?limit=1", accept=TABLE).granted()
            assert [row["cells"][0] for row in table["rows"]] == ["c"]
            assert ask("GET", LEASES).names == ["d"]
            ask("DELETE", LEASES, {"preconditions": {"uid": "x"}}).refused(409, "Conflict")


class TestNamespaces:
    """What goes with what is in it."""

    def test_what_is_in_it_goes(self) -> None:
        """A namespace is marked, lets nothing new in, and goes when all that was in it has gone."""
        with api() as ask:
            ask.make(NAMESPACES, {"metadata": {"name": "room"}})
            inside = LEASES.replace("default", "room")
            ask.make(inside, lease("a"))
            ask.make(inside, lease("b", finalizers=["example.com/x"]))
            marked = ask("DELETE", f"{NAMESPACES}/room").granted()
            assert marked["status"] == {"phase": "Terminating"}
            refused = ask("POST", inside, lease("c"))
            assert "because it is being terminated" in refused.refused(403, "Forbidden")
            assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
            ask.rest(0.25)
            assert ask("GET", inside).names == ["b"]
            assert ask("GET", f"{NAMESPACES}/room").code == 200
            ask("PATCH", f"{inside}/b", {"metadata": {"finalizers": None}}, media=MERGE).granted()
            ask.wait(lambda: ask.store.get("namespaces", "room") is None)
            assert ask("GET", inside).names == []

    def test_those_that_stay(self) -> None:
        """Some namespaces cannot be deleted."""
        with api() as ask:
            for name in ("default", "kube-system", "kube-public"):
                refused = ask("DELETE", f"{NAMESPACES}/{name}").refused(403, "Forbidden")
                assert refused.endswith("this namespace may not be deleted")

    def test_after_a_restart(self) -> None:
        """What was marked before goes on going."""
        with api() as ask:
            ask.make(NAMESPACES, {"metadata": {"name": "room"}})
            ask.make(LEASES.replace("default", "room"), lease("a", finalizers=["example.com/x"]))
            ask("DELETE", f"{NAMESPACES}/room").granted()
        with api(ask.store) as again:
            again("DELETE", LEASES.replace("default", "room")).granted()
            patch = {"metadata": {"finalizers": None}}
            again("PATCH", f"{LEASES.replace('default', 'room')}/a", patch, media=MERGE).granted()
            again.wait(lambda: again.store.get("namespaces", "room") is None)
