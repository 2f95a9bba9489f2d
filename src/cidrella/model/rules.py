"""What the API server checks of a `ClusterCIDR` (C1 to C5), as pieces of schema that the structs carry.

Rules:

- What can be said of one field alone is said by the schema (`minimum`, `pattern`, `enum`): it costs nothing. CEL is for
  what involves two fields, for addresses, and for where the schema's own message would not help.
- CEL is budgeted by the worst case that the schema allows, so what it iterates over, or runs for each of, has a bound.
- An optional field's immutability is a rule of its parent: a rule of the field itself is not asked when the field
  appears or goes.
- A rule guards itself against what another rule reports: nobody wants one mistake reported as an evaluation error too.
- The messages are here, once, for `validate` as well.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from cidrella.core.selector import NAME_FIELD, Operator
from cidrella.model.syntax import (
    KEY_MAX,
    KEY_PREFIX,
    LABEL_KEY,
    LABEL_KEY_FORM,
    LABEL_MAX,
    LABEL_VALUE,
    SUBDOMAIN,
    SUBDOMAIN_MAX,
)

Schema: TypeAlias = dict[str, object]

HOST_BITS_MIN: Final = 4
"""A block of fewer than 16 addresses has no room for a node's own and a few Pods (KEP-2593)."""
TERMS_MAX: Final = 1000
EXPRESSIONS_MAX: Final = 32
"""Bounds for the API server's budget: their product times the costliest rule of a requirement must stay below it. Half
of it is left (measured on 1.36), for servers that reckon otherwise."""
LABELS_MAX: Final = 1000
"""The same for a selector of one term, where a hundred times as many would do, and nobody needs these."""
CIDR_MAX: Final = 64
"""More than any range needs, so that a text that is too long is called what it is: no range."""
_KIND: Final = "ClusterCIDR"

SET_OPERATORS: Final = (Operator.IN.value, Operator.NOT_IN.value)
PRESENCE_OPERATORS: Final = (Operator.EXISTS.value, Operator.DOES_NOT_EXIST.value)
NUMBER_OPERATORS: Final = (Operator.GT.value, Operator.LT.value)

NO_SPEC: Final = "is required; add it"
NO_RANGE: Final = "gives no range; set ipv4, ipv6 or both"
NOT_A_RANGE: Final = (
    "must be a range such as {example}: an address, '/' and a length; "
    "no netmask, no leading zeros, no zone, no IPv4-mapped address"
)
OTHER_FAMILY: Final = "must be an {family} range; the other family has a field of its own, {field}"
HOST_BITS_SET: Final = "has host bits set; write the range's first address"
TOO_SMALL: Final = "is too small; a node's block has at least 16 addresses, so give a /{length} or larger"
TOO_LARGE_A_BLOCK: Final = "must leave at least one block in the range; choose fewer host bits or a larger range"
IPV6_BITS_ALONE: Final = "may only be set together with ipv6; set ipv6, or leave this out"
TOO_LONG_A_MASK: Final = "must be at most {length} for {family}; a block has 16 addresses or more"
TOO_SHORT_A_MASK: Final = "must leave at least one block in the range; choose a longer mask or a larger range"
IMMUTABLE: Final = "cannot be changed, added or removed once the {kind} exists; create another {kind} instead"
VALUES_NEEDED: Final = "must have at least one value with the operators In and NotIn"
VALUES_FORBIDDEN: Final = "must be left out with the operators Exists and DoesNotExist"
NO_LABEL_KEYS: Final = f"has keys that are no label keys; {LABEL_KEY_FORM}"
ONE_VALUE: Final = "must be exactly one value with the operators Gt and Lt"
WHOLE_NUMBER: Final = "must be a whole number of at most 64 bits, in quotes, with the operators Gt and Lt"


def rule(cel: str, message: str, *, at: str = "", says: str = "") -> dict[str, str]:
    """One CEL rule: where it is broken, what to say, and if need be an expression that says it with the numbers."""
    made = {"rule": cel, "message": message}
    if says:
        made["messageExpression"] = says
    if at:
        made["fieldPath"] = f".{at}"
    return made


def anchored(pattern: str) -> str:
    """A pattern for all of a text."""
    return f"^{pattern}$"


def longest(family: int) -> int:
    """The longest prefix that a block, and so a range, may have."""
    return (32 if family == 4 else 128) - HOST_BITS_MIN


def is_range(family: int, text: str = "self") -> str:
    """The expression for whether a text is a range of a family."""
    return f"isCIDR({text}) && cidr({text}).ip().family() == {family}"


def no_host_bits(where: str) -> dict[str, str]:
    """The rule that a range begins where it says."""
    return rule(
        f"!({where}) || cidr(self) == cidr(self).masked()",
        HOST_BITS_SET,
        says="'has host bits set; the range that holds it is %s'.format([string(cidr(self).masked())])",
    )


def large_enough(family: int) -> dict[str, str]:
    """The rule that a range of a family has room for the smallest block."""
    most = longest(family)
    return rule(f"!({is_range(family)}) || cidr(self).prefixLength() <= {most}", TOO_SMALL.format(length=most))


def _range(family: int, other: str, example: str) -> Schema:
    """The rules of a range of one family, or none, that can be told from its text alone."""
    return {
        "maxLength": CIDR_MAX,
        "x-kubernetes-validations": [
            rule("self == '' || isCIDR(self)", NOT_A_RANGE.format(example=example)),
            rule(
                f"!isCIDR(self) || cidr(self).ip().family() == {family}",
                OTHER_FAMILY.format(family=f"IPv{family}", field=other),
            ),
            no_host_bits(is_range(family)),
            large_enough(family),
        ],
    }


def _fits(bits: str, family: int, when: str = "true") -> dict[str, str]:
    """The rule that a range has room for one block. Ranges that are wrong in themselves are not asked."""
    text = f"self.ipv{family}"
    most = f"{32 if family == 4 else 128} - cidr({text}).prefixLength()"
    sound = (
        f"cidr({text}).ip().family() == {family} && cidr({text}) == cidr({text}).masked() && {most} >= {HOST_BITS_MIN}"
    )
    given = f"has({text}) && isCIDR({text}) && {sound}"
    return rule(
        f"!({when} && {given}) || self.{bits} <= {most}",
        TOO_LARGE_A_BLOCK,
        at=bits,
        says=f"'must be at most %d to leave at least one block in %s'.format([{most}, {text}])",
    )


def _text_immutable(field: str, kind: str) -> dict[str, str]:
    """A text that must stay; an empty one is as an absent one."""
    now, before = (f"(has({each}.{field}) ? {each}.{field} : '')" for each in ("self", "oldSelf"))
    return rule(f"{now} == {before}", IMMUTABLE.format(kind=kind), at=field)


def immutable(field: str, kind: str) -> dict[str, str]:
    """A field that must stay, or stay away."""
    both = f"has(self.{field}) && has(oldSelf.{field}) && self.{field} == oldSelf.{field}"
    return rule(f"({both}) || (!has(self.{field}) && !has(oldSelf.{field}))", IMMUTABLE.format(kind=kind), at=field)


def _for_operators(operators: tuple[str, ...], demand: str, message: str) -> dict[str, str]:
    return rule(f"!(self.operator in {list(operators)}) || {demand}", message, at="values")


_ONE_GIVEN: Final = "has(self.values) && self.values.size() == 1"
_VALUE: Final = "self.values[0]"
# int() of a number that does not fit is an evaluation error: a refusal too, and one that quotes the message.
_INT64: Final = f"{_VALUE}.matches('^[+-]?[0-9]+$') && int({_VALUE}) == int({_VALUE})"

ATOMIC: Final[Schema] = {"x-kubernetes-map-type": "atomic"}
OPERATOR: Final[Schema] = {"enum": [each.value for each in Operator]}
HOST_BITS: Final[Schema] = {"format": "int32", "minimum": HOST_BITS_MIN}
IPV4: Final[Schema] = _range(4, "ipv6", "10.1.0.0/16")
IPV6: Final[Schema] = _range(6, "ipv4", "fd12:3456:789a::/48")
DATE_TIME: Final[Schema] = {"format": "date-time"}
CONDITION_STATUS: Final[Schema] = {"enum": ["True", "False", "Unknown"]}
CONDITIONS: Final[Schema] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
TERMS: Final[Schema] = {"maxItems": TERMS_MAX}
EXPRESSIONS: Final[Schema] = {"maxItems": EXPRESSIONS_MAX}

LABEL_KEY_SCHEMA: Final[Schema] = {
    "maxLength": KEY_MAX,
    "pattern": anchored(LABEL_KEY),
    "allOf": [{"pattern": anchored(KEY_PREFIX)}],
}
VALUES_AS_ASKED: Final = [
    _for_operators(SET_OPERATORS, "(has(self.values) && self.values.size() > 0)", VALUES_NEEDED),
    _for_operators(PRESENCE_OPERATORS, "!has(self.values) || self.values.size() == 0", VALUES_FORBIDDEN),
]

EXPRESSION: Final[Schema] = {
    "properties": {
        "key": LABEL_KEY_SCHEMA,
        "values": {"items": {"maxLength": LABEL_MAX}},
    },
    # In CEL this would cost the number of values for each requirement, and so put a bound on them.
    "anyOf": [
        {"properties": {"operator": {"enum": [*PRESENCE_OPERATORS, *NUMBER_OPERATORS]}}},
        {"properties": {"values": {"items": {"pattern": anchored(LABEL_VALUE)}}}},
    ],
    "x-kubernetes-validations": [
        *VALUES_AS_ASKED,
        _for_operators(NUMBER_OPERATORS, f"({_ONE_GIVEN})", ONE_VALUE),
        _for_operators(NUMBER_OPERATORS, f"!({_ONE_GIVEN}) || ({_INT64})", WHOLE_NUMBER),
    ],
}

FIELD: Final[Schema] = {
    "properties": {
        "key": {"enum": [NAME_FIELD]},
        "operator": {"enum": list(SET_OPERATORS)},
        "values": {
            "minItems": 1,
            "maxItems": 1,
            "items": {"maxLength": SUBDOMAIN_MAX, "pattern": anchored(SUBDOMAIN)},
        },
    },
    "required": ["key", "operator", "values"],
}

SPEC: Final[Schema] = {
    "x-kubernetes-validations": [
        rule("(has(self.ipv4) && self.ipv4 != '') || (has(self.ipv6) && self.ipv6 != '')", NO_RANGE),
        _fits("perNodeHostBits", 4),
        _fits("perNodeHostBits", 6, "!has(self.perNodeHostBitsIPv6)"),
        _fits("perNodeHostBitsIPv6", 6, "has(self.perNodeHostBitsIPv6)"),
        rule(
            "!has(self.perNodeHostBitsIPv6) || (has(self.ipv6) && self.ipv6 != '')",
            IPV6_BITS_ALONE,
            at="perNodeHostBitsIPv6",
        ),
        immutable("perNodeHostBits", _KIND),
        immutable("perNodeHostBitsIPv6", _KIND),
        _text_immutable("ipv4", _KIND),
        _text_immutable("ipv6", _KIND),
        immutable("nodeSelector", _KIND),
    ],
}

ROOT: Final[Schema] = {
    # Not `required`, which the API server asks of old objects too: one that an older CRD let in without a spec could
    # then not be relieved of its finalizers, and never go.
    "x-kubernetes-validations": [
        {
            **rule("has(self.spec) || (oldSelf.hasValue() && !has(oldSelf.value().spec))", NO_SPEC, at="spec"),
            "reason": "FieldValueRequired",
            "optionalOldSelf": True,
        }
    ],
}

# Of a RangeAllocation. Whether the bits are any, and fit the range, and the range the name, is not asked of the API
# server: the repair loop finds a corrupt one and puts it right, and a rule would be paid for with every write.
_BITS_MAX: Final = 174_764
"""An IPv4 /12, the largest range that is served, in base64."""
_GRANTS_MAX: Final = 1 << 18
_WRITES_MAX: Final = 1 << 14
_WORD_MAX: Final = 1 << 10
"""Bounds that keep rubbish from growing to what an object can hold; what we write stays far below them."""
SERVICE_RANGE: Final[Schema] = {
    "maxLength": CIDR_MAX,
    "x-kubernetes-validations": [rule("isCIDR(self)", NOT_A_RANGE.format(example="10.96.0.0/16"))],
}
BITS: Final[Schema] = {"maxLength": _BITS_MAX}
FEW_GRANTS: Final[Schema] = {"maxLength": _GRANTS_MAX}
FEW_WRITES: Final[Schema] = {"maxLength": _WRITES_MAX}
TERM: Final[Schema] = {"maxLength": _WORD_MAX}
