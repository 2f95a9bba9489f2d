"""The life of a CRD: made, used, refused where it is wrong, changed, and gone with all that it defined."""

from __future__ import annotations

import time
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.bodies import CRDS, await_kind, crd, made, names
from tests.conformance.talking import TABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conformance.talking import Reply, Talk

    Json = dict[str, Any]

SIZE = {"size": {"type": "integer", "minimum": 1}}


@pytest.fixture
def group(name: str) -> str:
    """A group of this test's own."""
    return f"{name}.example.com"


@pytest.fixture
def widgets(talk: Talk, group: str) -> str:
    """A kind that is served; where its objects are."""
    made(talk, CRDS, crd("widgets", group, properties=SIZE))
    path = f"/apis/{group}/v1/widgets"
    await_kind(talk, path)
    return path


def widget(group: str, name: str, **spec: object) -> Json:
    """An object of the kind."""
    return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def eventually(ask: Callable[[], Reply], code: int) -> Reply:
    """A CRD takes a moment until it counts."""
    deadline = time.monotonic() + 20
    while (reply := ask()).code != code:
        assert time.monotonic() < deadline, f"{reply.code}: {reply.text}"
        time.sleep(0.05)
    return reply


def conditions(definition: Json) -> dict[str, tuple[str, str]]:
    """Status and reason of each; the server writes them a moment after the object."""
    found = definition["status"].get("conditions") or []
    return {each["type"]: (each["status"], each["reason"]) for each in found}


def schema_of(definition: Json) -> Json:
    """That of its first version."""
    found: Json = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


class TestItsLife:
    """From the first to the last."""

    def test_made(self, talk: Talk, group: str) -> None:
        """What is not said of its names is made up, and when it is served its conditions say so."""
        body = made(talk, CRDS, crd("widgets", group, properties=SIZE))
        expected = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
        assert body["spec"]["names"] == expected
        assert body["spec"]["conversion"] == {"strategy": "None"}
        assert body["status"]["storedVersions"] == ["v1"]
        path = f"{CRDS}/widgets.{group}"
        deadline = time.monotonic() + 20
        wanted = {"NamesAccepted": ("True", "NoConflicts"), "Established": ("True", "InitialNamesAccepted")}
        while (told := conditions(talk.get(path).granted())) != wanted:
            assert time.monotonic() < deadline, told
            time.sleep(0.02)
        assert talk.get(path).granted()["status"]["acceptedNames"] == expected

    def test_used(self, talk: Talk, widgets: str, group: str) -> None:
        """Its objects live as all others do."""
        first = made(talk, widgets, widget(group, "a", size=3))
        assert (first["spec"], first["metadata"]["generation"]) == ({"size": 3}, 1)
        changed = talk.patch(f"{widgets}/a", {"spec": {"size": 4}}).granted()
        assert (changed["spec"], changed["metadata"]["generation"]) == ({"size": 4}, 2)
        talk.create(widgets, widget(group, "b", size=0)).refused(422, "Invalid", "spec.size: Invalid value: 0")
        listed = talk.get(widgets).granted()
        assert (listed["kind"], names(listed)) == ("WidgetList", ["a"])
        table = talk("GET", widgets, accept=TABLE).granted()
        assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Age"]
        found = talk.get(f"/apis/{group}/v1").granted()["resources"]
        assert [each["name"] for each in found] == ["widgets"]

    def test_without_a_status_of_its_own(self, talk: Talk, widgets: str, group: str) -> None:
        """Where the CRD does not ask for /status, there is none."""
        made(talk, widgets, widget(group, "a"))
        assert talk.get(f"{widgets}/a/status").code == 404

    def test_gone(self, talk: Talk, widgets: str, group: str) -> None:
        """With it go all objects of the kind, and the kind itself; and it may come again, empty."""
        made(talk, widgets, widget(group, "a"))
        talk.delete(f"{CRDS}/widgets.{group}").granted()
        eventually(lambda: talk.get(f"{CRDS}/widgets.{group}"), 404)
        eventually(lambda: talk.get(widgets), 404)
        eventually(lambda: talk.get(f"/apis/{group}"), 404)
        made(talk, CRDS, crd("widgets", group, properties=SIZE))
        await_kind(talk, widgets)
        assert talk.get(widgets).granted()["items"] == []

    def test_it_waits_for_its_objects(self, talk: Talk, widgets: str, group: str) -> None:
        """An object with a finalizer keeps its CRD until somebody takes that off."""
        body = widget(group, "a")
        body["metadata"]["finalizers"] = ["example.com/guard"]
        made(talk, widgets, body)
        path = f"{CRDS}/widgets.{group}"
        gone = talk.delete(path).granted()
        assert gone["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        deadline = time.monotonic() + 20
        while "deletionTimestamp" not in talk.get(f"{widgets}/a").granted()["metadata"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        told = talk.get(path).granted()
        assert told["metadata"]["deletionTimestamp"]
        reply = talk.create(widgets, widget(group, "b"))
        assert reply.code in {403, 405}, "nothing new while it goes"
        talk.patch(f"{widgets}/a", {"metadata": {"finalizers": None}}).granted()
        eventually(lambda: talk.get(path), 404)


class TestChanging:
    """Another schema counts for what is written from then on."""

    def test_a_new_field(self, talk: Talk, widgets: str, group: str) -> None:
        """A field that is added is kept from now on, with its default for what was there before."""
        made(talk, widgets, widget(group, "old", size=1))
        path = f"{CRDS}/widgets.{group}"
        body = talk.get(path).granted()
        schema_of(body)["properties"]["spec"]["properties"]["color"] = {"type": "string", "default": "red"}
        assert talk.replace(path, body).granted()["metadata"]["generation"] == 2
        deadline = time.monotonic() + 20
        while talk.get(f"{widgets}/old").granted()["spec"].get("color") != "red":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert made(talk, widgets, widget(group, "new", color="blue"))["spec"]["color"] == "blue"

    def test_a_rule_that_comes_later(self, talk: Talk, widgets: str, group: str) -> None:
        """What was there before may stay as it is; what is written has to follow."""
        made(talk, widgets, widget(group, "old", size=1))
        path = f"{CRDS}/widgets.{group}"
        rules = [{"rule": "self.size > 5", "message": "too small"}]
        steps = [{"op": "add", "path": _SPEC + "/x-kubernetes-validations", "value": rules}]
        talk.patch(path, steps, "application/json-patch+json").granted()
        reply = eventually(lambda: talk.create(widgets, widget(group, "new", size=2), dryRun="All"), 422)
        reply.refused(422, "Invalid", "spec: Invalid value:", "too small")
        talk.patch(f"{widgets}/old", {"metadata": {"labels": {"a": "b"}}}).granted()
        talk.patch(f"{widgets}/old", {"spec": {"size": 2}}).refused(422, "Invalid", "too small")

    def test_a_version_that_comes_and_goes(self, talk: Talk, widgets: str, group: str) -> None:
        """Objects are served in every version that there is, and not in one that is no longer."""
        made(talk, widgets, widget(group, "a", size=1))
        path = f"{CRDS}/widgets.{group}"
        body = talk.get(path).granted()
        second = deepcopy(body["spec"]["versions"][0]) | {"name": "v2", "storage": False}
        body["spec"]["versions"].append(second)
        body = talk.replace(path, body).granted()
        other = f"/apis/{group}/v2/widgets/a"
        found = eventually(lambda: talk.get(other), 200).body
        assert (found["apiVersion"], found["spec"]) == (f"{group}/v2", {"size": 1})
        body = talk.get(path).granted()
        body["spec"]["versions"][1]["served"] = False
        talk.replace(path, body).granted()
        eventually(lambda: talk.get(other), 404)
        talk.get(f"{widgets}/a").granted()

    def test_what_cannot_be_changed(self, talk: Talk, widgets: str, group: str) -> None:
        """How its objects are stored and named is for good."""
        assert talk.get(widgets).code == 200
        path = f"{CRDS}/widgets.{group}"
        for field, change in (
            ("spec.scope", {"scope": "Namespaced"}),
            ("spec.names.kind", {"names": {"kind": "Other", "listKind": "OtherList"}}),
            ("spec.group", {"group": "other.example.com"}),
        ):
            talk.patch(path, {"spec": change}).refused(422, "Invalid", field)

    def test_to_one_that_is_wrong(self, talk: Talk, widgets: str, group: str) -> None:
        """A change that does not compile is refused, and what was there still counts."""
        path = f"{CRDS}/widgets.{group}"
        steps = [{"op": "add", "path": _SPEC + "/x-kubernetes-validations", "value": [{"rule": "self.nothing > 5"}]}]
        talk.patch(path, steps, "application/json-patch+json").refused(422, "Invalid", "undefined field 'nothing'")
        made(talk, widgets, widget(group, "a", size=1))


_SPEC = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"

RULES = {
    "syntax": ({"rule": "self.size > "}, "compilation failed: ERROR: <input>:1:13: Syntax error"),
    "field": ({"rule": "self.nothing > 1"}, "compilation failed: ERROR: <input>:1:5: undefined field 'nothing'"),
    "function": ({"rule": "nothing(self.size)"}, "undeclared reference to 'nothing'"),
    "number": ({"rule": "self.size"}, "cel expression must evaluate to a bool"),
    "types": ({"rule": "self.size == 'a'"}, "found no matching overload for '_==_' applied to '(int, string)'"),
    "argument": ({"rule": "isCIDR(self.size)"}, "found no matching overload for 'isCIDR' applied to '(int)'"),
    "empty": ({"rule": ""}, "rule: Required value: rule is not specified"),
    "message": ({"rule": "self.size > 1", "messageExpression": "nothing()"}, "undeclared reference to 'nothing'"),
    "message-type": (
        {"rule": "self.size > 1", "messageExpression": "self.size"},
        "messageExpression must evaluate to a string",
    ),
    "lines": ({"rule": "self.size > 1", "message": "a\nb"}, "must not contain line breaks"),
    "reason": ({"rule": "self.size > 1", "reason": "Perhaps"}, 'reason: Unsupported value: "Perhaps"'),
    "path": ({"rule": "self.size > 1", "fieldPath": ".nothing"}, "fieldPath: Invalid value"),
}


@pytest.mark.parametrize("case", RULES)
def test_rules_that_do_not_compile(talk: Talk, group: str, case: str) -> None:
    """A rule that cannot be understood rejects the CRD: none is silently skipped."""
    rule, said = RULES[case]
    body = crd("widgets", group, properties=SIZE, **{"x-kubernetes-validations": [rule]})
    field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]"
    talk.create(CRDS, body).refused(422, "Invalid", field, said)
    talk.get(f"{CRDS}/widgets.{group}").refused(404, "NotFound")


RULES_THAT_DO = [
    "isCIDR('10.0.0.0/8') && cidr('10.0.0.0/8').containsIP('10.1.2.3') && !isIP('x')",
    "ip('10.0.0.1').family() == 4 && ip.isCanonical('10.0.0.1') && string(ip('::1')) == '::1'",
    "cidr('10.1.0.0/16').masked() == cidr('10.1.0.0/16') && cidr('10.1.0.0/16').prefixLength() == 16",
    "cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16')) && cidr('10.1.0.0/16').ip().isLoopback() == false",
    "!has(self.size) || self.size < 10 && [1, 2].exists(x, x == 2) && 'abc'.matches('^a.c$')",
    "'%s-%d'.format(['a', 1]) == 'a-1' && 'a,b'.split(',').size() == 2 && 'A'.lowerAscii() == 'a'",
    "has(self.size) ? self.size >= 1 : true",
]


def test_rules_that_do(talk: Talk, group: str) -> None:
    """What Kubernetes has for addresses, and the common library, is there and works."""
    rules = [{"rule": each} for each in RULES_THAT_DO]
    made(talk, CRDS, crd("widgets", group, properties=SIZE, **{"x-kubernetes-validations": rules}))
    path = f"/apis/{group}/v1/widgets"
    await_kind(talk, path)
    made(talk, path, widget(group, "a", size=2))


def _change(**fields: object) -> Callable[[Json], None]:
    return lambda body: body["spec"].update(fields)


def _of_schema(**fields: object) -> Callable[[Json], None]:
    return lambda body: schema_of(body).update(fields)


def _of_version(**fields: object) -> Callable[[Json], None]:
    return lambda body: body["spec"]["versions"][0].update(fields)


def _of_spec(**fields: object) -> Callable[[Json], None]:
    return lambda body: schema_of(body)["properties"]["spec"]["properties"].update(fields)


WRONG: dict[str, tuple[Callable[[Json], None], str]] = {
    "name": (lambda body: body["metadata"].update(name="a.b"), 'must be spec.names.plural+"."+spec.group'),
    "group": (_change(group="nodots"), "should be a domain with at least one dot"),
    "scope": (_change(scope="Perhaps"), 'spec.scope: Unsupported value: "Perhaps"'),
    "kind": (lambda body: body["spec"]["names"].update(kind="a b"), "spec.names.kind: Invalid value"),
    "no-version": (_change(versions=[]), "must have exactly one version marked as storage version"),
    "no-storage": (_of_version(storage=False), "must have exactly one version marked as storage version"),
    "no-schema": (_of_version(schema=None), "spec.versions[0].schema.openAPIV3Schema: Required value"),
    "root": (_of_schema(type="string"), "openAPIV3Schema.type: Invalid value"),
    "type": (_of_spec(x={"type": "perhaps"}), "properties[x].type"),
    "no-type": (_of_spec(x={}), "properties[x].type: Required value: must not be empty for specified object fields"),
    "no-items": (_of_spec(x={"type": "array"}), "properties[x].items: Required value: must be specified"),
    "pattern": (_of_spec(x={"type": "string", "pattern": "("}), "must be a valid regular expression, but isn't"),
    "default": (_of_spec(x={"type": "string", "default": 5}), "properties[x].default: Invalid value"),
    "keys": (
        _of_spec(x={"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}),
        "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
    ),
    "both": (
        lambda body: schema_of(body)["properties"]["spec"].update(additionalProperties={"type": "string"}),
        "additionalProperties and properties are mutual exclusive",
    ),
    "unique": (_of_schema(uniqueItems=True), "uniqueItems cannot be set to true"),
    "column": (
        _of_version(additionalPrinterColumns=[{"name": "a", "type": "perhaps", "jsonPath": ".x"}]),
        "must be one of boolean,date,integer,number,string",
    ),
    "column-path": (
        _of_version(additionalPrinterColumns=[{"name": "a", "type": "string", "jsonPath": "x["}]),
        "must be a simple json path starting with .",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_crd(talk: Talk, group: str, case: str) -> None:
    """It is refused at once, and not found out when it is used."""
    change, said = WRONG[case]
    body = crd("widgets", group, properties=deepcopy(SIZE))
    change(body)
    talk.create(CRDS, body).refused(422, "Invalid", said)
    talk.get(f"{CRDS}/widgets.{group}").refused(404, "NotFound")


def test_groups_that_are_protected(talk: Talk) -> None:
    """What belongs to Kubernetes needs somebody's approval."""
    body = crd("widgets", "a.k8s.io", properties=SIZE)
    talk.create(CRDS, body).refused(422, "Invalid", "metadata.annotations[api-approved.kubernetes.io]: Required value")


def test_names_that_are_taken(talk: Talk, group: str, widgets: str) -> None:
    """A second CRD cannot have another's short name: it is made, and not served, and says why."""
    assert talk.get(widgets).code == 200
    body = crd("gadgets", group)
    body["spec"]["names"]["singular"] = "widget"
    made(talk, CRDS, body)
    deadline = time.monotonic() + 20
    while True:
        told = conditions(talk.get(f"{CRDS}/gadgets.{group}").granted())
        if told.get("NamesAccepted") == ("False", "SingularConflict"):
            break
        assert time.monotonic() < deadline, told
        time.sleep(0.05)
    assert told["Established"][0] == "False"
    assert talk.get(f"/apis/{group}/v1/gadgets").code == 404
