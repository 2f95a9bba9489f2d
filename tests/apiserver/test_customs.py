"""Custom resources: definitions from their creation to their end, and what is served for them."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.apiserver.customs import customs
from cidrella.model.crd import crds

if TYPE_CHECKING:
    from collections.abc import Callable

    from cidrella.apiserver.resource import Resource

    Json = dict[str, Any]

RESOURCE = customs.definition_resource()
NOW, LATER = "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"
SCHEMA = "spec.validation.openAPIV3Schema"
RULES = "x-kubernetes-validations"


def written(plural: str = "things", schema: Json | None = None, **names: object) -> Json:
    """A definition as a client sends it, with a status of its own for its objects."""
    root = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or root}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": plural, "kind": plural[:-1].capitalize(), **names},
            "scope": "Cluster",
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


def read(raw: Json) -> Json:
    """A definition as far as the server has read it."""
    crd: Json = json.loads(json.dumps(raw))
    RESOURCE.schema.prune(crd)
    assert RESOURCE.strategy.read(crd) == ""
    return crd


def made(raw: Json) -> Json:
    """A definition that was created, and is not served yet."""
    crd = read(raw)
    RESOURCE.strategy.prepare_create(crd)
    return crd


def served(raw: Json | None = None, others: tuple[Json, ...] = ()) -> Json:
    """A definition that was accepted, if it was."""
    crd = made(raw or written())
    assert RESOURCE.strategy.validate_create(crd) == []
    customs.accept(crd, others, NOW)
    return crd


def faults(raw: Json) -> list[str]:
    """What is wrong with a definition, in short."""
    return [str(each) for each in RESOURCE.strategy.validate_create(made(raw))]


def conditions(crd: Json) -> dict[str, tuple[str, str, str]]:
    """Of a definition, by type."""
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in crd["status"]["conditions"]}


@pytest.mark.parametrize("name", crds())
def test_our_own(name: str) -> None:
    """K1, B5: the definitions that Cidrella brings are taken as they are, with all their rules, and served."""
    crd = served(crds()[name])
    (resource,) = customs.resources_of(crd)
    assert f"{resource.plural}.{resource.group}" == name
    assert [each.name for each in resource.columns][-1] == "Age"


def test_what_is_not_said_is_made_up() -> None:
    """Names follow from the kind; a new one has an empty status, in which its first version is stored."""
    crd = made({**written(), "status": {"storedVersions": ["v9"]}})
    assert crd["spec"]["names"] == {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    assert crd["spec"]["conversion"] == {"strategy": "None"}
    names = {"plural": "", "kind": ""}
    assert crd["status"] == {"conditions": None, "acceptedNames": names, "storedVersions": ["v1"]}
    assert crd["metadata"]["generation"] == 1
    assert not customs.is_established(crd)


def test_established() -> None:
    """Accepting it sets names and conditions at once; a second time there is nothing to do."""
    crd = served()
    assert customs.is_established(crd)
    assert conditions(crd) == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    assert crd["status"]["acceptedNames"] == crd["spec"]["names"]
    assert not customs.accept(crd, [], LATER)


@pytest.mark.parametrize(
    ("names", "reason", "used"),
    [
        ({"shortNames": ["th"]}, "ShortNamesConflict", "th"),
        ({"shortNames": ["others", "things"]}, "ShortNamesConflict", "things"),
        ({"singular": "thing"}, "SingularConflict", "thing"),
        ({"kind": "Thing", "listKind": "MoreThings"}, "KindConflict", "Thing"),
        ({"listKind": "ThingList"}, "ListKindConflict", "ThingList"),
    ],
)
def test_names_that_are_taken(names: Json, reason: str, used: str) -> None:
    """One whose names another of its group has is not served, and says which; when they are free, it is."""
    first = served(written(shortNames=["th"]))
    second = served(written("others", **names), (first,))
    assert not customs.is_established(second)
    assert conditions(second) == {
        "NamesAccepted": ("False", reason, f'"{used}" is already in use'),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }
    assert customs.accept(second, [], LATER)
    assert customs.is_established(second)
    assert {each["lastTransitionTime"] for each in second["status"]["conditions"]} == {LATER}


def test_one_that_is_served_stays_so() -> None:
    """A name that is lost later on does not end it."""
    first, second = served(written(shortNames=["th"])), served(written("others"))
    second["spec"]["names"]["shortNames"] = ["th"]
    customs.accept(second, [first], LATER)
    assert customs.is_established(second)
    assert conditions(second)["NamesAccepted"][0] == "False"
    assert "shortNames" not in second["status"]["acceptedNames"]


def _set(*path: str | int, to: object) -> Callable[[Json], None]:
    def change(crd: Json) -> None:
        there: Any = crd
        for each in path[:-1]:
            there = there[each]
        there[path[-1]] = to

    return change


VERSION = ("spec", "versions", 0)
WRONG: dict[str, tuple[Callable[[Json], None], str]] = {
    "no scope": (_set("spec", "scope", to=""), "spec.scope: Required value"),
    "another scope": (
        _set("spec", "scope", to="World"),
        'spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced"',
    ),
    "no kind": (_set("spec", "names", "kind", to=""), "spec.names.kind: Required value"),
    "the kind of lists": (
        _set("spec", "names", "listKind", to="Thing"),
        'spec.names.listKind: Invalid value: "Thing": kind and listKind may not be the same',
    ),
    "no versions": (
        _set("spec", "versions", to=[]),
        "spec.versions: Invalid value: []: must have exactly one version marked as storage version",
    ),
    "no schema": (_set(*VERSION, "schema", to={}), "spec.versions[0].schema.openAPIV3Schema: Required value"),
    "a schema that says nothing": (
        _set(*VERSION, "schema", "openAPIV3Schema", to={}),
        f"{SCHEMA}.type: Required value: must not be empty at the root",
    ),
    "a field of which nothing is said": (
        _set(*VERSION, "schema", "openAPIV3Schema", "properties", to={"x": None}),
        f"{SCHEMA}.properties[x].type: Required value: must not be empty for specified object fields",
    ),
    "a rule that says nothing": (
        _set(*VERSION, "schema", "openAPIV3Schema", "x-kubernetes-validations", to=[None]),
        f"{SCHEMA}.x-kubernetes-validations[0].rule: Required value: rule is not specified",
    ),
    "a schema for text": (
        _set(*VERSION, "schema", "openAPIV3Schema", to={"type": "string"}),
        f'{SCHEMA}.type: Invalid value: "string": must be object at the root',
    ),
    "a schema of no type that there is": (
        _set(*VERSION, "schema", "openAPIV3Schema", to={"type": "x"}),
        f'{SCHEMA}.type: Unsupported value: "x": '
        'supported values: "array", "boolean", "integer", "number", "object", "string"',
    ),
    "a schema for text with a status": (
        lambda crd: crd["spec"]["versions"][0].update(
            schema={"openAPIV3Schema": {"type": "string"}}, subresources={"status": {}}
        ),
        f'{SCHEMA}.type: Invalid value: "string": only "object" is allowed as the type at the root of the schema '
        "if the status subresource is enabled",
    ),
    "a column of no type": (
        _set(*VERSION, "additionalPrinterColumns", to=[{"name": "A", "jsonPath": ".a"}]),
        "spec.additionalPrinterColumns[0].type: Required value: must be one of boolean,date,integer,number,string",
    ),
    "a column from nowhere": (
        _set(*VERSION, "additionalPrinterColumns", to=[{"name": "A", "type": "string", "jsonPath": "a"}]),
        'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json path starting with .',
    ),
    "a field to select by": (
        _set(*VERSION, "selectableFields", to=[{"jsonPath": ".spec.b"}]),
        'spec.selectableFields[0].jsonPath: Invalid value: ".spec.b": '
        "is an invalid path: does not refer to a valid field",
    ),
    "converting": (
        _set("spec", "conversion", to={"strategy": "Webhook"}),
        "spec.conversion.strategy: Forbidden: webhooks that convert are not known here",
    ),
    "scaling": (
        _set(*VERSION, "subresources", to={"scale": {"specReplicasPath": ".a", "statusReplicasPath": ".b"}}),
        "spec.subresources.scale: Forbidden: this subresource is not known here",
    ),
    "a group of Kubernetes": (
        lambda crd: (crd["spec"].update(group="a.k8s.io"), crd["metadata"].update(name="things.a.k8s.io"))[-1],
        "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval "
        'annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
    ),
}


@pytest.mark.parametrize("title", WRONG)
def test_what_is_wrong(title: str) -> None:
    """Each mistake is refused in the words of a real API server; what is only missing here says so."""
    change, said = WRONG[title]
    raw = written()
    change(raw)
    assert said in faults(raw)


_LIST: Json = {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}}
UNSTRUCTURED: dict[str, tuple[Json, str]] = {
    "no type": ({"description": "x"}, "type: Required value: must not be empty for specified object fields"),
    "no such type": (
        {"type": "text"},
        'type: Unsupported value: "text": '
        'supported values: "array", "boolean", "integer", "number", "object", "string"',
    ),
    "no items": ({"type": "array"}, "items: Required value: must be specified"),
    "items of no type": (
        {"type": "array", "items": {}},
        "items.type: Required value: must not be empty for specified array items",
    ),
    "named and unnamed properties": (
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
        "additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
    ),
    "a reference": ({"$ref": "#/x"}, "$ref: Forbidden: $ref is not supported"),
    "a type in an alternative": (
        {"type": "string", "anyOf": [{"type": "string"}]},
        "anyOf[0].type: Forbidden: must be empty to be structural",
    ),
    "a rule in an alternative": (
        {"type": "string", "allOf": [{"x-kubernetes-validations": [{"rule": "true"}]}]},
        "allOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural",
    ),
    "a default in what may not be": (
        {"type": "string", "not": {"default": "x"}},
        "not.default: Forbidden: must be undefined to be structural",
    ),
    "no keys": (
        {**_LIST, "x-kubernetes-list-type": "map"},
        "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
    ),
    "a key that may be missing": (
        {**_LIST, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
        "items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, "
        "so it must have a default or be a required property",
    ),
    "a default of another type": (
        {"type": "string", "default": 5},
        'default: Invalid value: "integer":  in body must be of type string: "integer"',
    ),
    "unique items": (
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
    ),
    "an object in an object": (
        {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        "x-kubernetes-embedded-resource: Forbidden: embedded resources are not known here",
    ),
}


@pytest.mark.parametrize("title", UNSTRUCTURED)
def test_schemas_that_are_not_structural(title: str) -> None:
    """Each is refused under its path in the schema."""
    schema, said = UNSTRUCTURED[title]
    raw = written(schema={"type": "object", "properties": {"x": schema}})
    assert faults(raw) == [f"{SCHEMA}.properties[x].{said}"]


def test_versions_that_differ() -> None:
    """What all versions say is told of them together, what one says of that one."""
    bad: Json = {"type": "object", "properties": {"x": {"type": "text"}}}
    raw = written(schema=bad)
    assert [each.split(": ")[0] for each in faults(raw)] == [f"{SCHEMA}.properties[x].type"]
    raw["spec"]["versions"].append({**written()["spec"]["versions"][0], "name": "v2", "storage": False})
    place = "spec.versions[0].schema.openAPIV3Schema.properties[x].type"
    assert [each.split(": ")[0] for each in faults(raw)] == [place]


def test_the_order() -> None:
    """What is wrong is told in one order: the definition, its versions, its names, and what versions have in common."""
    names = {"kind": "Thing", "listKind": "Thing", "shortNames": ["S_"], "categories": ["C_"]}
    raw = written("T_", {"type": "string"}, singular="thing", **names)
    (version,) = raw["spec"]["versions"]
    raw["spec"] |= {"group": "a.k8s.io", "scope": "", "conversion": {"strategy": "X"}, "preserveUnknownFields": True}
    raw["spec"]["versions"] = [
        {**version, "name": "v_", "additionalPrinterColumns": [{"name": "A", "type": "string"}]},
        {**version, "name": "v_"},
    ]
    assert [each.split(": ")[0] for each in faults(raw)] == [
        "spec.scope",
        "spec.versions[0].name",
        "spec.versions[0].additionalPrinterColumns[0].JSONPath",
        "spec.versions[1].name",
        "spec.versions",
        "spec.versions",
        "spec.version",
        "spec.names.plural",
        "spec.names.shortNames[0]",
        "spec.names.listKind",
        "spec.names.categories[0]",
        f"{SCHEMA}.type",
        f"{SCHEMA}.type",
        "spec.conversion.strategy",
        "spec.preserveUnknownFields",
        "metadata.annotations[api-approved.kubernetes.io]",
    ]


def test_its_name() -> None:
    """There is only one that it can have; what it is called is no matter for the rest."""
    crd = made(written())
    assert RESOURCE.strategy.name_faults("things.example.com", crd) == []
    assert RESOURCE.strategy.name_faults("x.example.com", crd) == ['must be spec.names.plural+"."+spec.group']
    raw = written()
    del raw["metadata"]["name"]
    assert faults(raw) == []


@pytest.mark.parametrize(
    ("name", "fields"), [("V_1", ["spec.versions[0].name", "spec.version"]), ("", ["spec.versions[0].name"])]
)
def test_the_name_of_a_version(name: str, fields: list[str]) -> None:
    """That of the first is told under a field of old, too, unless there is none."""
    raw = written()
    raw["spec"]["versions"][0]["name"] = name
    assert [each.partition(": Invalid value")[0] for each in faults(raw)] == fields


def test_a_rule_that_does_not_compile() -> None:
    """It refuses the definition under the path of the rule."""
    rule = {"type": "string", "x-kubernetes-validations": [{"rule": "foo(self)"}]}
    (said,) = faults(written(schema={"type": "object", "properties": {"x": rule}}))
    assert said.startswith(f"{SCHEMA}.properties[x].x-kubernetes-validations[0].rule: Invalid value: ")
    assert "undeclared reference to 'foo'" in said


def test_unknown_keywords_are_dropped() -> None:
    """They are told by their paths, wherever they are in a schema, and what says nothing goes without a word."""
    raw = written(
        schema={
            "type": "object",
            "odd": 1,
            "properties": {
                "a": {"type": "string", "nullable": False, "description": "", "minLength": 0, "strange": True},
                "b": {
                    "type": "array",
                    "items": {"type": "string", "more": 1},
                    "x-kubernetes-validations": [{"rool": "x"}],
                },
            },
        }
    )
    path = "spec.versions[0].schema.openAPIV3Schema"
    assert RESOURCE.schema.prune(deepcopy(raw)) == [
        f"{path}.odd",
        f"{path}.properties.a.strange",
        f"{path}.properties.b.items.more",
        f"{path}.properties.b.x-kubernetes-validations[0].rool",
    ]
    schema = read(raw)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["properties"]["a"] == {"type": "string", "minLength": 0}
    assert schema["properties"]["b"]["x-kubernetes-validations"] == [{}]


@pytest.mark.parametrize(
    ("keyword", "value", "said"),
    [
        ("type", ["string"], "array into Go struct field {}.type of type string"),
        ("maxLength", "x", "string into Go struct field {}.maxLength of type int64"),
        ("nullable", "yes", "string into Go struct field {}.nullable of type bool"),
        (RULES, 1, f"number into Go struct field {{}}.{RULES} of type []v1.ValidationRule"),
        (RULES, [5], f"number into Go struct field {{}}.{RULES} of type v1.ValidationRule"),
        (RULES, [{"rule": 5}], f"number into Go struct field {{}}.{RULES}.rule of type string"),
    ],
)
def test_what_cannot_be_read(keyword: str, value: object, said: str) -> None:
    """A keyword of another type is no schema at all, and told in the words of a decoder."""
    crd = written(schema={"type": "object", "properties": {"x": {"type": "string", keyword: value}}})
    holder = "ValidationRule" if said.endswith("rule of type string") else "JSONSchemaProps"
    place = f"{holder}.spec.versions.schema.openAPIV3Schema.properties"
    assert RESOURCE.schema.prune(crd) == []
    assert RESOURCE.strategy.read(crd) == f"json: cannot unmarshal {said.format(place)}"


def test_what_is_no_schema() -> None:
    """It is told with the type of what it stands in."""
    place, said = "spec.versions.schema.openAPIV3Schema", "json: cannot unmarshal number into Go struct field"
    crd = written(schema={"type": "object", "properties": {"x": 5}})
    assert RESOURCE.strategy.read(crd) == f"{said} JSONSchemaProps.{place}.properties of type v1.JSONSchemaProps"
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = 5
    assert RESOURCE.strategy.read(crd) == f"{said} CustomResourceValidation.{place} of type v1.JSONSchemaProps"


class TestChanges:
    """Of a definition that is served."""

    def changed(self, change: Callable[[Json], None]) -> tuple[Json, list[str]]:
        """It, and what is wrong with the change."""
        old = served()
        new = deepcopy(old)
        change(new)
        RESOURCE.strategy.prepare_update(new, old)
        return new, [str(each) for each in RESOURCE.strategy.validate_update(new, old)]

    @pytest.mark.parametrize(
        ("path", "value"),
        [("scope", "Namespaced"), ("group", "other.com"), ("names.kind", "X"), ("names.plural", "xs")],
    )
    def test_what_stays(self, path: str, value: str) -> None:
        """Its group, scope, kind and plural name cannot be changed."""
        _, found = self.changed(_set("spec", *path.split("."), to=value))
        assert found == [f'spec.{path}: Invalid value: "{value}": field is immutable']

    def test_a_new_schema(self) -> None:
        """Another schema is taken, and counts as a change; the status is not the client's to write."""
        more: Json = {"type": "object", "properties": {"b": {"type": "string"}}}
        new, found = self.changed(
            lambda crd: (_set(*VERSION, "schema", to={"openAPIV3Schema": more})(crd), crd.pop("status"))[0]
        )
        assert found == []
        assert new["metadata"]["generation"] == 2
        assert customs.is_established(new)

    def test_labels(self) -> None:
        """What is only of its metadata does not count, and is not judged again."""
        new, found = self.changed(_set("metadata", "labels", to={"a": "b"}))
        assert (new["metadata"]["generation"], found) == (1, [])

    def test_versions_that_are_stored(self) -> None:
        """One that becomes the stored one is noted, and the former cannot go while it is."""
        second = {**written()["spec"]["versions"][0], "name": "v2"}

        def switch(crd: Json) -> None:
            crd["spec"]["versions"][0]["storage"] = False
            crd["spec"]["versions"].append(second)

        new, found = self.changed(switch)
        assert (new["status"]["storedVersions"], found) == (["v1", "v2"], [])
        _, found = self.changed(_set("spec", "versions", to=[second]))
        assert found[0].startswith('status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; ')

    def test_its_status(self) -> None:
        """A write to /status takes the status, and nothing else."""
        old = served()
        new = {**deepcopy(old), "spec": {}, "metadata": {"name": "x"}, "status": {**old["status"], "conditions": []}}
        RESOURCE.strategy.prepare_status(new, old)
        assert new == {**old, "status": {**old["status"], "conditions": []}}


def test_deletion() -> None:
    """It begins with a finalizer and a condition, and ends when that finalizer goes, if nobody holds another."""
    crd = served()
    customs.begin_deletion(crd, LATER)
    customs.begin_deletion(crd, "never")
    assert crd["metadata"]["deletionTimestamp"] == LATER
    assert crd["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert conditions(crd)["Terminating"][:2] == ("True", "InstanceDeletionPending")
    other = deepcopy(crd)
    other["metadata"]["finalizers"].append("example.com/mine")
    assert customs.end_deletion(crd)
    assert "finalizers" not in crd["metadata"]
    assert not customs.end_deletion(other)
    assert other["metadata"]["finalizers"] == ["example.com/mine"]


class TestObjects:
    """What is served for a definition."""

    @pytest.fixture
    def resource(self) -> Resource:
        """Of a definition with everything."""
        raw = written(shortNames=["th"], categories=["all"])
        raw["spec"]["scope"] = "Namespaced"
        raw["spec"]["versions"][0] |= {
            "selectableFields": [{"jsonPath": ".spec.a"}],
            "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a", "priority": 1}],
        }
        (resource,) = customs.resources_of(served(raw))
        return resource

    def test_what_it_is(self, resource: Resource) -> None:
        """Names, scope, columns and fields are those of the definition."""
        assert (resource.group_version, resource.plural, resource.kind) == ("example.com/v1", "things", "Thing")
        assert (resource.singular, resource.short_names, resource.categories) == ("thing", ("th",), ("all",))
        assert (resource.list_kind, resource.namespaced, resource.status, resource.custom) == (
            "ThingList",
            True,
            True,
            True,
        )
        obj = {"spec": {"a": "red"}}
        assert [(each.name, each.value(obj), each.priority) for each in resource.columns] == [("A", "red", 1)]
        assert {name: find(obj) for name, find in resource.fields.items()} == {"spec.a": "red"}

    def test_created(self, resource: Resource) -> None:
        """A status is not taken, and the generation is the first."""
        new: Json = {"metadata": {}, "spec": {}, "status": {"x": 1}}
        resource.strategy.prepare_create(new)
        assert new == {"metadata": {"generation": 1}, "spec": {}}

    def test_updated(self, resource: Resource) -> None:
        """The status stays; the generation grows with whatever is neither metadata nor status."""
        old: Json = {"metadata": {"generation": 3}, "spec": {"a": "x"}, "status": {"x": 1}}
        changes: list[tuple[Json, int]] = [
            ({"metadata": {"labels": {"a": "b"}}, "spec": {"a": "x"}, "status": {"x": 2}}, 3),
            ({"metadata": {}, "spec": {"a": "y"}}, 4),
            ({"metadata": {}, "spec": {"a": "x"}, "more": 1}, 4),
        ]
        for new, generation in changes:
            resource.strategy.prepare_update(new, old)
            assert (new["status"], new["metadata"]["generation"]) == ({"x": 1}, generation)

    def test_status_updated(self, resource: Resource) -> None:
        """A write to /status takes the status, and nothing else; what it does not have goes."""
        old: Json = {"metadata": {"name": "a", "generation": 3}, "spec": {"a": "x"}, "status": {"x": 1}}
        new: Json = {"metadata": {"name": "a", "labels": {"b": "c"}}, "spec": {"a": "y"}, "status": {"x": 2}}
        resource.strategy.prepare_status(new, old)
        assert new == {**old, "status": {"x": 2}}
        bare: Json = {"metadata": {}}
        resource.strategy.prepare_status(bare, old)
        assert "status" not in bare

    def test_without_a_status_of_its_own(self) -> None:
        """Where the status is not written apart, it is a part like any other."""
        raw = written()
        del raw["spec"]["versions"][0]["subresources"]
        (resource,) = customs.resources_of(served(raw))
        assert not resource.status
        new: Json = {"metadata": {}, "status": {"x": 1}}
        resource.strategy.prepare_create(new)
        assert new["status"] == {"x": 1}
        changed: Json = {"metadata": {}, "status": {"x": 2}}
        resource.strategy.prepare_update(changed, new)
        assert (changed["status"], changed["metadata"]["generation"]) == ({"x": 2}, 2)

    def test_two_versions(self) -> None:
        """Each that is served is there, for the same objects."""
        raw = written()
        first = raw["spec"]["versions"][0]
        raw["spec"]["versions"] += [{**first, "name": "v2", "storage": False}]
        raw["spec"]["versions"] += [{**first, "name": "v3", "storage": False, "served": False}]
        one, two = customs.resources_of(served(raw))
        assert (one.version, two.version) == ("v1", "v2")
        assert one.store_key == two.store_key
