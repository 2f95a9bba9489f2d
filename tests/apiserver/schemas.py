"""One table of small schemas and of values that they are asked about, for every place that judges by schemas.

The embedded API is held to what a real API server says of each value, word for word; so there are many odd ones.
"""

from typing import Any

Json = dict[str, Any]

_NAMED: Json = {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}
_KEYED: Json = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {**_NAMED, "required": ["name"]},
}
_ANYTHING = ["text", "", 7, 7.0, 7.5, -1, True, None, [], ["a"], {}, {"a": "b"}, 2**31, 1e300]
_NOT = {"not": {"enum": ["x"]}}


def _rule(*rules: str, **more: Any) -> Json:
    return {"x-kubernetes-validations": [{"rule": each, **more} for each in rules]}


VALUES: dict[str, tuple[Json, list[Any]]] = {
    "string": ({"type": "string"}, _ANYTHING),
    "integer": ({"type": "integer"}, [*_ANYTHING, 2**63]),
    "int32": ({"type": "integer", "format": "int32"}, _ANYTHING),
    "int64": ({"type": "integer", "format": "int64"}, [*_ANYTHING, 2**63]),
    "number": ({"type": "number"}, _ANYTHING),
    "float": ({"type": "number", "format": "float"}, _ANYTHING),
    "double": ({"type": "number", "format": "double"}, _ANYTHING),
    "boolean": ({"type": "boolean"}, _ANYTHING),
    "array": ({"type": "array", "items": {"type": "string"}}, [*_ANYTHING, [1, "a", None]]),
    "object": (_NAMED, [*_ANYTHING, {"name": 1, "size": "x"}, {"name": None}]),
    "mapping": ({"type": "object", "additionalProperties": {"type": "string"}}, [*_ANYTHING, {"a": 1, "b": None}]),
    "numbers": ({"type": "object", "additionalProperties": {"type": "integer"}}, [{"a": "b", "c.d": "e"}]),
    "nullable": ({"type": "string", "nullable": True}, [None, "a", 1]),
    "nulls": ({"type": "array", "items": {"type": "string", "nullable": True}}, [[None], [1]]),
    "intorstring": ({"x-kubernetes-int-or-string": True}, [*_ANYTHING, 2**63]),
    "preserved": ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, [*_ANYTHING, {"a": {"b": [None]}}]),
    "partly": (
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": _NAMED}},
        [{"a": 1, "known": {"name": "x", "other": 1}}],
    ),
    "anything": ({"x-kubernetes-preserve-unknown-fields": True}, _ANYTHING),
    "bounds": ({"type": "integer", "minimum": 3, "maximum": 5}, [2, 3, 5, 6, 2.0]),
    "exclusive": (
        {"type": "number", "minimum": 3, "exclusiveMinimum": True, "maximum": 5.5, "exclusiveMaximum": True},
        [3, 3.1, 5.5, 6, 2],
    ),
    "multiple": ({"type": "number", "multipleOf": 2.5}, [5, 5.0, 6, 7.5, 0, -2.5]),
    "multiplesmall": ({"type": "number", "multipleOf": 0.1}, [0.3, 0.35, 0.7, 3]),
    "multiplezero": ({"type": "integer", "multipleOf": 0}, [3]),
    "multipleint": ({"type": "integer", "multipleOf": 3}, [3, 4, -6]),
    "large": ({"type": "number", "maximum": 1e21, "minimum": 0.001}, [1e22, 0.0001]),
    "length": ({"type": "string", "minLength": 2, "maxLength": 4}, ["a", "ab", "äöüß", "abcde", "äöüßx"]),
    "pattern": ({"type": "string", "pattern": "^a+$"}, ["a", "a\n", "b", "aab", ""]),
    "unanchored": ({"type": "string", "pattern": "b[$]|\\$$"}, ["ab$c", "a$", "a"]),
    "items": (
        {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer"}},
        [[], [1], [1, 2, 3], ["a"]],
    ),
    "properties": (
        {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": {"type": "integer"}},
        [{}, {"a": 1}, {"a": 1, "b": "x", "c": 3}, {"a": "x"}],
    ),
    "enum": ({"type": "string", "enum": ["a", "b"]}, ["a", "c", "", 1, None]),
    "enumint": ({"type": "integer", "enum": [1, 2]}, [1, 3, 1.0, "1"]),
    "enumnumber": ({"type": "number", "enum": [1, 2.5]}, [1, 1.0, 1.5, 2.5, 2, 2.7]),
    "enumnull": ({"type": "string", "nullable": True, "enum": ["a", None]}, ["a", None, "b"]),
    "enumonlynull": ({"type": "string", "nullable": True, "enum": ["a"]}, [None]),
    "required": ({**_NAMED, "required": ["size", "name"]}, [{}, {"name": "x"}, {"name": None, "size": 1}]),
    "default": ({"type": "string", "default": "x"}, [None, "y"]),
    "defaults": (
        {"type": "object", "default": {}, "properties": {"a": {"type": "integer", "default": 5}}},
        [{}, {"a": None}],
    ),
    "defaultitems": ({"type": "array", "items": {"type": "string", "default": "z"}}, [[None, "a"]]),
    "defaultnull": ({"type": "string", "nullable": True, "default": "x"}, [None]),
    "set": (
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        [["a", "b"], ["a", "b", "a", "a"]],
    ),
    "keyed": (
        _KEYED,
        [
            [{"name": "a"}, {"name": "b"}],
            [{"name": "a"}, {"name": "a", "size": 3}],
            [{}],
            [{"size": 1}, {"size": 1}],
            [{"name": "a"}] * 3,
        ],
    ),
    "allof": ({"type": "string", "allOf": [{"minLength": 2}, {"maxLength": 3}]}, ["a", "ab", "abcd"]),
    "anyof": (
        {"type": "string", "anyOf": [{"minLength": 5}, {"pattern": "^a"}, {"enum": ["x"]}]},
        ["b", "a", "x", "bbbbbb"],
    ),
    "anyofobject": (
        {**_NAMED, "anyOf": [{"required": ["name"]}, {"required": ["size"]}]},
        [{}, {"name": "a"}, {"size": 1}],
    ),
    "anyofparts": (
        {
            **_NAMED,
            "anyOf": [
                {"properties": {"size": {"minimum": 3}}},
                {"properties": {"name": {"minLength": 3}, "size": {"maximum": -1}}},
            ],
        },
        [{"name": "a", "size": 1}, {"size": 1}, {"name": "a"}],
    ),
    "oneof": ({"type": "string", "oneOf": [{"minLength": 2}, {"maxLength": 3}]}, ["a", "ab", "abcd"]),
    "oneofobject": (
        {**_NAMED, "oneOf": [{"required": ["name"]}, {"required": ["size"]}]},
        [{}, {"name": "a"}, {"name": "a", "size": 1}],
    ),
    "not": ({"type": "string", **_NOT}, ["x", "y"]),
    "notobject": ({**_NAMED, "not": {"required": ["name"]}}, [{"name": "a"}, {"size": 3}]),
    "intorstringpattern": (
        {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$", "maximum": 9},
        ["5%", "5", 5, 10, True],
    ),
    "anyofintorstring": (
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        ["5", 5, 5.5, True],
    ),
    "date-time": (
        {"type": "string", "format": "date-time"},
        [
            *("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789+01:00", "2026-01-02 03:04:05Z", "x", "", 5, ["x"]),
            *("2026-13-02T03:04:05Z", "2026-01-02T03:04:05", "2026-01-02", "2026-01-02t03:04:05z", {}),
            "2026-02-30T03:04:05Z",
        ],
    ),
    "date": ({"type": "string", "format": "date"}, ["2026-01-02", "2026-1-2", "2026-02-30", "x", "20260102", ""]),
    "ipv4": ({"type": "string", "format": "ipv4"}, ["10.0.0.1", "10.00.0.1", "::1", "x", "", "10.0.0"]),
    "ipv6": ({"type": "string", "format": "ipv6"}, ["::1", "10.0.0.1", "fe80::1%eth0", "x", "::ffff:1.2.3.4", ""]),
    "cidr": (
        {"type": "string", "format": "cidr"},
        ["10.0.0.0/8", "10.1.0.0/8", "fd00::/64", "10.0.0.0", "10.0.0.0/33", ""],
    ),
    "uuid": (
        {"type": "string", "format": "uuid"},
        [
            *("123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000", "x", "", "{}"),
            *("123E4567-E89B-12D3-A456-426614174000", "123e4567-e89b-12d3-a456-42661417400g"),
        ],
    ),
    "byte": ({"type": "string", "format": "byte"}, ["YQ==", "YWI=", "YQ", "a b", "", "!!!!", "YQ==\n", "-_==", "ab-_"]),
    "password": ({"type": "string", "format": "password"}, ["x", ""]),
    "unheard": ({"type": "string", "format": "unheard-of"}, ["x", 5, ["a"]]),
    "deep": (
        {"type": "object", "additionalProperties": {"type": "array", "items": _NAMED}},
        [{"a": [{"name": "x", "b": 1}], "c": [{"d": {"e": 1}}]}],
    ),
    "emptied": ({"type": "object"}, [{"a": 1}, {}]),
    # Rules.
    "ruletext": ({"type": "string", "maxLength": 9, **_rule("self != 'no'")}, ["no", "yes", None]),
    "ruleword": ({"type": "string", "maxLength": 9, **_rule("self != 'no'", message="says no")}, ["no"]),
    "ruleint": ({"type": "integer", **_rule("self > 3", "self != 2")}, [2, 3, 4]),
    "rulenumber": ({"type": "number", **_rule("self > 3", "self / 2.0 > 1.5")}, [2, 3.5, 4]),
    "rulelist": (
        {"type": "array", "maxItems": 9, "items": {"type": "integer"}, **_rule("self[1] > 1")},
        [[], [1, 2], [1, 1]],
    ),
    "ruleitems": (
        {"type": "array", "maxItems": 9, "items": {"type": "integer", **_rule("self > 1", "10 / self > 3")}},
        [[0, 1, 2, 9]],
    ),
    "rulevalues": (
        {"type": "object", "maxProperties": 9, "additionalProperties": {"type": "integer", **_rule("self > 1")}},
        [{"a.b": 1, "c": 2}],
    ),
    "rulefield": (
        {
            **_NAMED,
            "x-kubernetes-validations": [
                {"rule": "has(self.name)", "fieldPath": ".name", "reason": "FieldValueRequired", "message": "name it"},
                {"rule": "self.size > 1", "fieldPath": ".size", "reason": "FieldValueForbidden"},
                {"rule": "self.size != 1", "reason": "FieldValueDuplicate"},
            ],
        },
        [{}, {"name": "a"}, {"size": 1}, {"name": "a", "size": None}],
    ),
    "rulesays": (
        {"type": "string", "maxLength": 9, **_rule("self != 'no'", messageExpression="'not %s'.format([self])")},
        ["no", "yes"],
    ),
    "rulefallback": (
        {"type": "integer", **_rule("self != 0", messageExpression="string(1 / self)", message="0")},
        [0, 1],
    ),
    "rulechange": ({"type": "integer", **_rule("self >= oldSelf")}, [1]),
    "ruleoptional": ({"type": "integer", **_rule("oldSelf.hasValue() || self > 1", optionalOldSelf=True)}, [1, 2]),
    "ruleeither": ({"x-kubernetes-int-or-string": True, **_rule("self > 3")}, ["a", 3, 4]),
    "rulenames": (
        {
            "type": "object",
            "properties": {each: {"type": "integer"} for each in ("a-b", "in", "x__y", "c.d", "e/f")},
            **_rule("self.a__dash__b + self.__in__ + self.x__underscores__y + self.c__dot__d + self.e__slash__f > 9"),
        },
        [{"a-b": 1, "in": 1, "x__y": 1, "c.d": 1, "e/f": 1}, {"a-b": 9, "in": 1, "x__y": 1, "c.d": 1, "e/f": 1}, {}],
    ),
    "rulenull": (
        {
            "type": "object",
            "properties": {"a": {"type": "integer", "nullable": True}},
            **_rule("has(self.a)", "self.a > 1"),
        },
        [{"a": None}, {"a": 2}, {}],
    ),
    "ruleip": (
        {"type": "string", "maxLength": 99, **_rule("isIP(self) && ip(self).family() == 4", "ip.isCanonical(self)")},
        ["10.0.0.1", "fd00::1", "FD00::1", "fe80::1%eth0", "::ffff:10.0.0.1"],
    ),
    "rulecidr": (
        {
            "type": "string",
            "maxLength": 99,
            **_rule(
                "cidr(self).containsIP('10.1.2.3')",
                "cidr(self).containsCIDR('10.0.0.0/9')",
                "cidr(self).containsIP(ip('10.1.2.3'))",
                "cidr(self).containsCIDR(cidr('10.0.0.0/9'))",
                "cidr(self) == cidr(self).masked() && cidr(self).prefixLength() < 10",
            ),
        },
        ["10.0.0.0/8", "10.1.0.0/8", "11.0.0.0/8", "10.0.0.0/10", "::/0"],
    ),
}

_TEXT: Json = {"type": "string", "maxLength": 9}
_MIXED: Json = {
    "type": "object",
    "properties": {
        "text": _TEXT,
        "whole": {"type": "integer"},
        "number": {"type": "number"},
        "list": {"type": "array", "maxItems": 3, "items": _TEXT},
    },
}


def _list(items: Json, **more: Any) -> Json:
    return {"type": "array", "maxItems": 3, "items": items, **more}


SOUND_RULES: dict[str, Json] = {
    "a whole number and another": {**_MIXED, **_rule("self.whole < self.number")},
    "a field in brackets": {**_MIXED, **_rule("true", fieldPath="['text']")},
    "a change": {**_TEXT, **_rule("self == oldSelf")},
    "a change that may be none": {**_TEXT, **_rule("oldSelf.hasValue()", optionalOldSelf=True)},
    "a change of an item with a name": {
        **_KEYED,
        "maxItems": 3,
        "items": {**_KEYED["items"], **_rule("self == oldSelf")},
    },
    "a change within what is atomic": {
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {"a": {**_TEXT, **_rule("self == oldSelf")}},
    },
    "a mention of the old only in the message": {**_TEXT, **_rule("self == 'x'", messageExpression="oldSelf")},
    "fields of any type": {
        "type": "object",
        "properties": {
            "either": {"x-kubernetes-int-or-string": True},
            "lists": _list(_list(_TEXT)),
            "eithers": _list({"x-kubernetes-int-or-string": True}),
            "mapping": {"type": "object", "maxProperties": 3, "additionalProperties": _list(_TEXT)},
        },
        **_rule("self.either == 1 || self.eithers[0] == 'x' || self.lists[0][0] == 'x' || self.mapping.a[0] == 'x'"),
    },
    "two names that look alike": {
        "type": "object",
        "properties": {
            name: {"type": "object", "maxProperties": 3, "additionalProperties": _TEXT} for name in ("ab_c", "abC")
        },
        **_rule("self.ab_c['y'] == self.abC['x']"),
    },
    "an optional field": {**_MIXED, **_rule("self.?text.orValue('') == ''")},
    "functions of texts": {
        **_TEXT,
        **_rule(
            "self.lowerAscii().split(',')[0].trim().replace('a', 'b').substring(1) != 'x' && self.indexOf('x') > 1"
        ),
    },
    "what is a text in quotes": {**_TEXT, **_rule("self != 'oldSelf'")},
}

UNSOUND_RULES: dict[str, Json] = {
    "a function that there is not": {**_TEXT, **_rule("foo(self)")},
    "a member that there is not": {**_TEXT, **_rule("self.foo()")},
    "types that do not go together": {**_TEXT, **_rule("self + 1 == 3")},
    "half a rule": {**_TEXT, **_rule("self ==")},
    "a field that there is not": {**_MIXED, **_rule("self.other == 'x'")},
    "has() of a field that there is not": {**_MIXED, **_rule("has(self.other)")},
    "two fields that there are not": {**_MIXED, **_rule("self.one == self.two")},
    "a variable that there is not": {**_TEXT, **_rule("other == self")},
    "a text": {**_TEXT, **_rule("self")},
    "nothing": {**_TEXT, **_rule("")},
    "spaces": {**_TEXT, **_rule("  ")},
    "only a message": {**_TEXT, "x-kubernetes-validations": [{"message": "x"}]},
    "numbers that are not equal by type": {**_MIXED, **_rule("self.whole == self.number")},
    "a number and a text": {**_MIXED, **_rule("self.whole == self.text")},
    "items of another type": {**_MIXED, **_rule("self.list.all(x, x > 3)")},
    "an object and a number": {"type": "array", "maxItems": 3, "items": _TEXT, **_rule("self == 1")},
    "functions that are not of every server": {**_MIXED, **_rule("math.greatest(self.whole, 3) == 3")},
    "a pattern that is none": {**_TEXT, **_rule("self.matches('(')")},
    "closing what is not open": {**_TEXT, **_rule("true) || (true")},
    "a message that is a number": {**_TEXT, **_rule("true", messageExpression="1")},
    "half a message": {**_TEXT, **_rule("true", messageExpression="1 +")},
    "a message of spaces": {**_TEXT, **_rule("true", messageExpression=" ")},
    "a message with a function that there is not": {**_TEXT, **_rule("true", messageExpression="foo(self)")},
    "a text of spaces": {**_TEXT, **_rule("true", message=" ")},
    "a text of two lines": {**_TEXT, **_rule("true", message="a\nb")},
    "two lines and no text": {**_TEXT, **_rule("true\n&& true")},
    "a reason that is none": {**_TEXT, **_rule("true", reason="Foo")},
    "a field of a text": {**_TEXT, **_rule("true", fieldPath=".x")},
    "a path to nowhere": {**_MIXED, **_rule("true", fieldPath=".x")},
    "a path to an item": {**_MIXED, **_rule("true", fieldPath=".list[0]")},
    "a path without a dot": {**_MIXED, **_rule("true", fieldPath="text")},
    "a path too far": {**_MIXED, **_rule("true", fieldPath=".text.more")},
    "a change of an item": _list({**_TEXT, **_rule("self == oldSelf")}),
    "a change of a member": _list({**_TEXT, **_rule("self == oldSelf")}, **{"x-kubernetes-list-type": "set"}),
    "a change of an item that may be none": _list({**_TEXT, **_rule("oldSelf.hasValue()", optionalOldSelf=True)}),
    "an optional change with a field that there is not": {
        **_MIXED,
        **_rule("has(self.other) || oldSelf.hasValue()", optionalOldSelf=True),
    },
    "closing what was put around": {**_TEXT, **_rule("true) || (oldSelf.hasValue()", optionalOldSelf=True)},
    "an optional change without one": {**_TEXT, **_rule("self == 'x'", optionalOldSelf=True)},
}

NOT_HERE: dict[str, Json] = {
    "quantities": {**_TEXT, **_rule("isQuantity(self)")},
    "URLs": {**_TEXT, **_rule("isURL(self)")},
    "versions": {**_TEXT, **_rule("isSemver(self)")},
    "sums of lists": {**_MIXED, **_rule("self.list.map(x, size(x)).sum() < 3")},
    "sorted lists": {**_MIXED, **_rule("self.list.isSorted()")},
    "sets": {**_MIXED, **_rule("sets.contains(self.list, ['x'])")},
    "formats": {**_TEXT, **_rule("format.dns1123Label().validate(self).hasValue()")},
    "finding by patterns": {**_TEXT, **_rule("self.findAll('a').size() == 0")},
    "items with their places": {**_MIXED, **_rule("self.list.all(i, v, i >= 0)")},
    "times": {"type": "string", "format": "date-time", **_rule("self < timestamp('2020-01-01T00:00:00Z')")},
}
"""What Kubernetes takes and the embedded API refuses: it says so, rather than to skip a rule."""


_SHORT: Json = {"type": "string", "maxLength": 2}
_PLAIN: Json = {"type": "string", "maxLength": 9}

LOOSE: Json = {
    "other": _PLAIN,
    "text": _PLAIN,
    "object": {"type": "object", "properties": {"a": _PLAIN, "b": _PLAIN}},
    "list": _list(_PLAIN),
    "keyed": {**_KEYED, "items": {**_NAMED, "required": ["name"], "properties": {"name": _PLAIN, "v": _PLAIN}}},
    "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": _PLAIN, "b": _PLAIN}},
    "mapping": {"type": "object", "additionalProperties": _PLAIN},
    "anyof": _PLAIN,
    "allof": _PLAIN,
    "rule": _PLAIN,
    "rulelist": _list(_PLAIN),
    "set": _list(_PLAIN),
    "change": _PLAIN,
}
TIGHT: Json = {
    **LOOSE,
    "text": _SHORT,
    "object": {"type": "object", "required": ["c"], "properties": {"a": _SHORT, "b": _PLAIN, "c": _PLAIN}},
    "list": _list(_SHORT),
    "keyed": {**_KEYED, "items": {**_NAMED, "required": ["name"], "properties": {"name": _PLAIN, "v": _SHORT}}},
    "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": _SHORT, "b": _PLAIN}},
    "mapping": {"type": "object", "additionalProperties": _SHORT},
    "anyof": {**_PLAIN, "anyOf": [{"maxLength": 2}]},
    "allof": {**_PLAIN, "allOf": [{"maxLength": 2}]},
    "rule": {**_PLAIN, **_rule("self.size() < 3")},
    "rulelist": {**_list({**_PLAIN, **_rule("self.size() < 3")}), **_rule("self.size() > 3")},
    "set": _list(_PLAIN, **{"x-kubernetes-list-type": "set"}),
    "change": {**_PLAIN, **_rule("self.size() < 3 && oldSelf != 'x'")},
}
"""The same fields, but what is there already is no longer right."""
CHANGES: dict[str, tuple[Any, list[Any]]] = {
    "text": ("long", ["long", "longer", "ok"]),
    "object": ({"a": "long"}, [{"a": "long"}, {"a": "long", "b": "new"}, {"a": "long", "c": "new"}]),
    "list": (["long", "ok"], [["long", "ok"], ["long", "ok", "hi"], ["ok"]]),
    "keyed": (
        [{"name": "1", "v": "long"}, {"name": "2", "v": "ok"}],
        [
            [{"name": "1", "v": "long"}, {"name": "2", "v": "hi"}],
            [{"name": "2", "v": "ok"}, {"name": "1", "v": "long"}],
            [{"name": "1", "v": "long"}, {"name": "2", "v": "bad"}],
        ],
    ),
    "atomic": ({"a": "long", "b": "x"}, [{"a": "long", "b": "y"}, {"a": "longer"}]),
    "mapping": ({"k": "long"}, [{"k": "long", "j": "ok"}, {"k": "long", "j": "bad"}]),
    "anyof": ("long", ["long", "longer"]),
    "allof": ("long", ["long", "longer"]),
    "rule": ("long", ["long", "longer", "ok"]),
    "rulelist": (["long"], [["long"], ["long", "x"]]),
    "set": (["a", "a"], [["a", "a"], ["a", "a", "b"], ["a", "b"]]),
    "change": ("long", ["long", "longer", "ok"]),
}
"""What was there under `LOOSE`, and what it is then to become."""
