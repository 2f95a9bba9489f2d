"""The smaller kinds: Leases, Events in both of their groups, Namespaces, ServiceCIDRs, and Pods: there are none."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.bodies import (
    NAMESPACES,
    SERVICE_CIDRS,
    core_events,
    events,
    lease,
    leases,
    made,
    names,
    pods,
    version,
)
from tests.testenv.api import SERVICE_RANGE

if TYPE_CHECKING:
    from tests.conformance.talking import Talk

    Json = dict[str, Any]

TIME = "2026-01-01T00:00:00.123456Z"
LATER = "2026-01-01T00:00:05.000000Z"
HELD: Json = {
    "holderIdentity": "me",
    "leaseDurationSeconds": 15,
    "acquireTime": TIME,
    "renewTime": TIME,
    "leaseTransitions": 0,
}


class TestLeases:
    """Who leads: elections stand on each word of this."""

    def test_taking_and_renewing(self, talk: Talk, name: str, namespace: str) -> None:
        """What is written comes back to the microsecond."""
        body = made(talk, leases(namespace), lease(name, **HELD))
        assert body["spec"] == HELD
        body["spec"]["renewTime"] = LATER
        assert talk.replace(f"{leases(namespace)}/{name}", body).granted()["spec"] == HELD | {"renewTime": LATER}

    def test_of_two_one_is_told(self, talk: Talk, name: str, namespace: str) -> None:
        """Whoever writes on an older version loses, and sees who was faster."""
        path = f"{leases(namespace)}/{name}"
        seen = made(talk, leases(namespace), lease(name, **HELD))
        theirs, mine = deepcopy(seen), deepcopy(seen)
        theirs["spec"]["holderIdentity"] = "they"
        mine["spec"]["renewTime"] = LATER
        talk.replace(path, theirs).granted()
        talk.replace(path, mine).refused(409, "Conflict", f'leases.coordination.k8s.io "{name}"')
        assert talk.get(path).granted()["spec"]["holderIdentity"] == "they"

    def test_letting_go(self, talk: Talk, name: str, namespace: str) -> None:
        """Without a holder, for the next."""
        made(talk, leases(namespace), lease(name, **HELD))
        patch = {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
        spec = talk.patch(f"{leases(namespace)}/{name}", patch).granted()["spec"]
        assert (spec.get("holderIdentity", ""), spec["leaseDurationSeconds"]) == ("", 1)

    @pytest.mark.parametrize(
        ("spec", "said"),
        [
            ({"leaseDurationSeconds": 0}, "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"),
            ({"leaseTransitions": -1}, "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"),
        ],
        ids=["duration", "transitions"],
    )
    def test_what_makes_no_sense(self, talk: Talk, name: str, namespace: str, spec: Json, said: str) -> None:
        """A time is a time."""
        talk.create(leases(namespace), lease(name, **spec)).refused(422, "Invalid", said)

    def test_times_that_are_none(self, talk: Talk, name: str, namespace: str) -> None:
        """Nor can they be read otherwise."""
        talk.create(leases(namespace), lease(name, renewTime="yesterday")).refused(400, "BadRequest", "as a Lease")


class TestEvents:
    """One kind under two names: what is written in one group is read in both."""

    def test_the_newer_in_the_older(self, talk: Talk, name: str, namespace: str) -> None:
        """Who reports today writes the newer one; `kubectl describe` reads the older."""
        made(talk, events(namespace), self._newer(name, namespace))
        found = talk.get(f"{core_events(namespace)}/{name}").granted()
        assert (found["kind"], found["apiVersion"]) == ("Event", "v1")
        assert found["involvedObject"] == {"kind": "Pod", "name": "p", "namespace": namespace, "apiVersion": "v1"}
        assert (found["reason"], found["message"], found["type"]) == ("Why", "What", "Warning")
        assert (found["reportingComponent"], found["reportingInstance"]) == ("example.com/c", "c-1")
        assert (found["action"], found["eventTime"], found["source"]) == ("Do", TIME, {})
        assert (found["firstTimestamp"], found["lastTimestamp"]) == (None, None)

    def test_the_older_in_the_newer(self, talk: Talk, name: str, namespace: str) -> None:
        """And the other way round."""
        made(talk, core_events(namespace), self._older(name, namespace))
        found = talk.get(f"{events(namespace)}/{name}").granted()
        assert (found["kind"], found["apiVersion"]) == ("Event", "events.k8s.io/v1")
        assert (found["regarding"]["name"], found["note"], found["deprecatedCount"]) == ("p", "What", 3)
        assert found["deprecatedSource"] == {"component": "c", "host": "h"}
        assert found["deprecatedLastTimestamp"] == "2026-01-01T00:00:01Z"
        assert found["eventTime"] is None

    def test_they_are_the_same_object(self, talk: Talk, name: str, namespace: str) -> None:
        """Same uid, same version; gone from both when it is deleted in one."""
        one = made(talk, events(namespace), self._newer(name, namespace))
        other = talk.get(f"{core_events(namespace)}/{name}").granted()
        assert other["metadata"]["uid"] == one["metadata"]["uid"]
        assert version(other) == version(one)
        talk.create(core_events(namespace), self._older(name, namespace)).refused(409, "AlreadyExists")
        talk.delete(f"{core_events(namespace)}/{name}").granted()
        talk.get(f"{events(namespace)}/{name}").refused(404, "NotFound")

    def test_either_is_watched(self, talk: Talk, name: str, namespace: str) -> None:
        """A watch in one group tells what is written in the other."""
        start = talk.get(core_events(namespace)).granted()["metadata"]["resourceVersion"]
        with talk.watch(core_events(namespace), resourceVersion=start) as watching:
            made(talk, events(namespace), self._newer(name, namespace))
            kind, told = watching.next()
            assert (kind, told["apiVersion"], told["message"]) == ("ADDED", "v1", "What")

    def test_series(self, talk: Talk, name: str, namespace: str) -> None:
        """What happens again is counted in the event that there is; all else in it stays as it was written."""
        made(talk, events(namespace), self._newer(name, namespace))
        path = f"{events(namespace)}/{name}"
        series = {"count": 2, "lastObservedTime": LATER}
        assert talk.patch(path, {"series": series}).granted()["series"] == series
        assert talk.get(f"{core_events(namespace)}/{name}").granted()["series"] == series
        talk.patch(path, {"note": "Else"}).refused(422, "Invalid", "field is immutable")

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"eventTime": None}, "eventTime: Required value"),
            ({"type": "Odd"}, "type: Invalid value"),
            ({"reportingController": ""}, "reportingController: Required value"),
            ({"reportingInstance": ""}, "reportingInstance: Required value"),
            ({"action": ""}, "action: Required value"),
            ({"reason": ""}, "reason: Required value"),
            ({"note": "x" * 1025}, "message: Invalid value"),
            ({"reason": "x" * 129}, "reason: Invalid value"),
        ],
        ids=["time", "type", "controller", "instance", "action", "reason", "note", "long"],
    )
    def test_what_the_newer_asks_for(self, talk: Talk, name: str, namespace: str, changes: Json, said: str) -> None:
        """It has to be complete."""
        body = self._newer(name, namespace) | changes
        talk.create(events(namespace), body).refused(422, "Invalid", said)

    def test_the_older_lies_where_its_object_does(self, talk: Talk, name: str, namespace: str) -> None:
        """One about an object of another namespace, or of none, is refused, but for `default`."""
        body = self._older(name, "elsewhere")
        talk.create(core_events(namespace), body).refused(422, "Invalid", "involvedObject.namespace: Invalid value")
        body["involvedObject"] = {"kind": "Node", "name": "n"}
        talk.create(core_events(namespace), body).refused(422, "Invalid", "does not match event.namespace")
        made(talk, core_events("default"), body)

    def test_by_what_they_are_about(self, talk: Talk, name: str, namespace: str) -> None:
        """As `kubectl describe` asks for those of one object."""
        made(talk, events(namespace), self._newer(name, namespace))
        for selector, count in (
            (f"involvedObject.name=p,involvedObject.kind=Pod,involvedObject.namespace={namespace}", 1),
            ("involvedObject.name=q", 0),
            ("reason=Why,type=Warning", 1),
            ("reason!=Why", 0),
            ("involvedObject.uid=x", 0),
        ):
            found = talk.get(core_events(namespace), fieldSelector=selector).granted()["items"]
            assert len(found) == count, selector
        assert names(talk.get(events(namespace), fieldSelector="regarding.name=p").granted()) == [name]

    @staticmethod
    def _older(name: str, namespace: str) -> Json:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": namespace},
            "reason": "Why",
            "message": "What",
            "type": "Normal",
            "count": 3,
            "source": {"component": "c", "host": "h"},
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:01Z",
        }

    @staticmethod
    def _newer(name: str, namespace: str) -> Json:
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name},
            "regarding": {"kind": "Pod", "name": "p", "namespace": namespace, "apiVersion": "v1"},
            "reason": "Why",
            "note": "What",
            "type": "Warning",
            "action": "Do",
            "reportingController": "example.com/c",
            "reportingInstance": "c-1",
            "eventTime": TIME,
        }


class TestNamespaces:
    """What objects lie in."""

    def test_a_new_one(self, talk: Talk, name: str) -> None:
        """It is active, and labelled with its name so that it can be selected."""
        body = made(talk, NAMESPACES, {"metadata": {"name": name, "labels": {"a": "b"}}})
        assert body["status"] == {"phase": "Active"}
        assert body["spec"] == {"finalizers": ["kubernetes"]}
        assert body["metadata"]["labels"] == {"a": "b", "kubernetes.io/metadata.name": name}

    def test_those_that_are_always_there(self, talk: Talk) -> None:
        """Everybody expects these."""
        assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= set(
            names(talk.get(NAMESPACES).granted())
        )

    def test_what_is_not_there_holds_nothing(self, talk: Talk, name: str) -> None:
        """Nothing can be put into it; to look is no error."""
        reply = talk.create(leases(name), lease(name))
        reply.refused(404, "NotFound", f'namespaces "{name}" not found')
        assert talk.get(leases(name)).granted()["items"] == []

    def test_once_it_goes(self, talk: Talk, name: str) -> None:
        """Nothing more is put into a namespace that was deleted."""
        made(talk, NAMESPACES, {"metadata": {"name": name}})
        made(talk, leases(name), lease("before"))
        gone = talk.delete(f"{NAMESPACES}/{name}").granted()
        assert gone["status"]["phase"] == "Terminating"
        assert gone["metadata"]["deletionTimestamp"]
        reply = talk.create(leases(name), lease("after"))
        assert reply.code in {403, 404}

    @pytest.mark.parametrize("always", ["default", "kube-system", "kube-public"])
    def test_not_those_that_are_always_there(self, talk: Talk, always: str) -> None:
        """They stay."""
        reply = talk.delete(f"{NAMESPACES}/{always}")
        reply.refused(403, "Forbidden", f'namespaces "{always}" is forbidden: this namespace may not be deleted')

    @pytest.mark.parametrize("wrong", ["a.b", "UPPER", "x" * 64, "-a"], ids=["dot", "upper", "long", "dash"])
    def test_wrong_names(self, talk: Talk, wrong: str) -> None:
        """They are labels of domain names."""
        talk.create(NAMESPACES, {"metadata": {"name": wrong}}).refused(422, "Invalid", "metadata.name: Invalid value")

    def test_all_of_them_at_once(self, talk: Talk) -> None:
        """Not at once: the verb is not there."""
        talk.delete(NAMESPACES).refused(405, "MethodNotAllowed", "the server does not allow this method")


class TestServiceCidrs:
    """The ranges that Services get their addresses from."""

    def test_the_one_of_the_flags(self, talk: Talk) -> None:
        """What the server was started with."""
        found = talk.get(f"{SERVICE_CIDRS}/kubernetes").granted()
        assert found["spec"]["cidrs"] == [SERVICE_RANGE]
        (ready,) = (each for each in found["status"]["conditions"] if each["type"] == "Ready")
        assert ready["status"] == "True"

    @pytest.mark.parametrize(
        ("cidrs", "said"),
        [
            (["nonsense"], "must be a valid CIDR value"),
            (["10.98.0.1/16"], "must not have bits set beyond the prefix length"),
            ([], "spec.cidrs: Required value"),
            (["10.98.0.0/16", "10.99.0.0/16"], "spec.cidrs"),
            (["10.98.0.0/16", "fd98::/112", "fd99::/112"], "spec.cidrs"),
        ],
        ids=["word", "bits", "none", "family", "three"],
    )
    def test_what_makes_no_sense(self, talk: Talk, name: str, cidrs: list[str], said: str) -> None:
        """One range a family, as it is written."""
        talk.create(SERVICE_CIDRS, self._body(name, cidrs)).refused(422, "Invalid", said)

    def test_ranges_stay(self, talk: Talk, name: str) -> None:
        """What may hold addresses is not changed; a second family may be added."""
        made(talk, SERVICE_CIDRS, self._body(name, ["10.98.0.0/24"]))
        path = f"{SERVICE_CIDRS}/{name}"
        talk.patch(path, {"spec": {"cidrs": ["10.98.1.0/24"]}}).refused(422, "Invalid", "spec.cidrs")
        talk.patch(path, {"metadata": {"finalizers": None}}).granted()
        talk.delete(path).granted()
        talk.get(path).refused(404, "NotFound")

    @staticmethod
    def _body(name: str, cidrs: list[str]) -> Json:
        return {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": name},
            "spec": {"cidrs": cidrs},
        }


class TestPods:
    """There are none, and kubectl may ask."""

    def test_lists(self, talk: Talk, namespace: str) -> None:
        """Everywhere, in a namespace, on a node as `kubectl describe node` asks."""
        for path, query in (("/api/v1/pods", {"fieldSelector": "spec.nodeName=n"}), (pods(namespace), {})):
            listed = talk.get(path, **query).granted()
            assert (listed["kind"], listed["items"]) == ("PodList", [])

    def test_one(self, talk: Talk, namespace: str, name: str) -> None:
        """Not there."""
        talk.get(f"{pods(namespace)}/{name}").refused(404, "NotFound", f'pods "{name}" not found')

    def test_a_watch(self, talk: Talk, namespace: str) -> None:
        """Says nothing, until its time is up."""
        with talk.watch(pods(namespace), timeoutSeconds="1") as watching:
            assert list(watching) == []
