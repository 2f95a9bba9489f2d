"""The table of `cases`, for the other kind of pool: a ClusterCIDRConfig (K1)."""

from tests.model import cases
from tests.model.cases import EXISTS, V4, V6
from tests.model.manifests import Case, Manifest, Part, Update, config

CIDR, MASK = "spec.cidr", "spec.perNodeMaskSize"
LABELS = "spec.nodeSelector.matchLabels"
EXPRESSIONS = "spec.nodeSelector.matchExpressions"

FOUR: Manifest = {"cidr": "10.1.0.0/16", "perNodeMaskSize": 24}
SIX: Manifest = {"cidr": "fd12:3456:789a::/48", "perNodeMaskSize": 64}
BIG: Part = {"matchLabels": {"size": "big"}}


def good(title: str, **spec: object) -> Case:
    """A spec that is valid, with an IPv4 range and a /24 unless it says otherwise."""
    return Case(title, config({**FOUR, **spec}), frozenset())


def bad(title: str, *fields: str, **spec: object) -> Case:
    """A spec that is wrong in these fields."""
    return Case(title, config({**FOUR, **spec}), frozenset(fields))


def selects(title: str, selector: object) -> Case:
    """A valid selector."""
    return good(title, nodeSelector=selector)


def refused(title: str, field: str, selector: object) -> Case:
    """A selector that Kubernetes would not accept."""
    return bad(title, field, nodeSelector=selector)


def asking(key: object, operator: object, *values: object) -> Part:
    """A selector with one requirement on one label."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def _text(case: Case) -> object:
    """The range that a case of the other kind is about."""
    spec = case.manifest["spec"]
    assert isinstance(spec, dict)
    return spec["ipv4" if V4 in case.fields else "ipv6"]


NO_RANGES = [
    # What is no range there is none here. Only the family is free.
    bad(case.title, CIDR, cidr=_text(case))
    for case in cases.RANGES
    if case.fields in ({V4}, {V6}) and case.title not in ("IPv6 in ipv4", "IPv4 in ipv6")
]

RANGES = [
    *NO_RANGES,
    good("an IPv4 range"),
    Case("an IPv6 range", config(SIX), frozenset()),
    good("all of IPv4", cidr="0.0.0.0/0"),
    good("all of IPv6", cidr="::/0"),
    good("the smallest IPv4 range", cidr="10.0.0.0/28", perNodeMaskSize=28),
    good("the smallest IPv6 range", cidr="fd00::/124", perNodeMaskSize=124),
    good("IPv6 in capitals and in full", cidr="FD00:0000:0000:0000:0000:0000:0000:0000/16"),
    good("IPv6 with a dotted tail", cidr="64:ff9b::1.2.3.0/120", perNodeMaskSize=124),
    bad("an empty range", CIDR, cidr=""),
    bad("an IPv4 range too small for any block", CIDR, cidr="10.0.0.0/29", perNodeMaskSize=28),
    bad("an IPv6 range too small for any block", CIDR, cidr="fd00::/125", perNodeMaskSize=124),
]

SIZES = [
    good("one block", perNodeMaskSize=16),
    good("the smallest IPv4 block", perNodeMaskSize=28),
    good("the smallest IPv6 block", cidr="fd00::/48", perNodeMaskSize=124),
    good("one block of IPv6", cidr="fd00::/48", perNodeMaskSize=48),
    good("all of IPv6 in one block", cidr="::/0", perNodeMaskSize=0),
    good("a whole number with a point, through kubectl", perNodeMaskSize=24.0),
    bad("blocks larger than the range", MASK, perNodeMaskSize=15),
    bad("IPv6 blocks larger than the range", MASK, cidr="fd00::/48", perNodeMaskSize=47),
    bad("blocks that are too small", MASK, perNodeMaskSize=29),
    bad("a block for one address", MASK, perNodeMaskSize=32),
    bad("an IPv6 mask with an IPv4 range", MASK, perNodeMaskSize=64),
    bad("IPv6 blocks that are too small", MASK, cidr="fd00::/48", perNodeMaskSize=125),
    bad("longer than any address", MASK, cidr="fd00::/48", perNodeMaskSize=129),
    bad("a negative mask", MASK, perNodeMaskSize=-1),
    bad("a negative mask for all of IPv6", MASK, cidr="::/0", perNodeMaskSize=-1),
    bad("a range and a mask that are wrong", CIDR, MASK, cidr="10.1.0.0", perNodeMaskSize=200),
    bad("host bits set and a negative mask", CIDR, MASK, cidr="10.1.0.1/16", perNodeMaskSize=-8),
]

SELECTORS = [
    selects("selector null", None),
    selects("an empty selector", {}),
    selects("a selector with nulls", {"matchLabels": None, "matchExpressions": None}),
    selects("a selector with nothing in it", {"matchLabels": {}, "matchExpressions": []}),
    selects("labels", {"matchLabels": {"size": "big", "np": "np3"}}),
    selects("a label without a value", {"matchLabels": {"node.example.com/pool": ""}}),
    selects("a label that is null", {"matchLabels": {"size": None, "np": "np3"}}),
    selects("labels and requirements", {"matchLabels": {"a": "b"}, "matchExpressions": [EXISTS]}),
    selects("In", asking("size", "In", "big", "huge")),
    selects("NotIn", asking("size", "NotIn", "small")),
    selects("In with an empty value", asking("size", "In", "")),
    selects("Exists", asking("size", "Exists")),
    selects("DoesNotExist without values", {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}),
    selects("Exists with values null", {"matchExpressions": [{**EXISTS, "values": None}]}),
    selects("a key with a prefix", asking("node.example.com/Size_of.it-0", "Exists")),
    selects("the longest key", asking("a" * 253 + "/" + "b" * 63, "Exists")),
    selects("the longest label", {"matchLabels": {"a" * 253 + "/" + "b" * 63: "c" * 63}}),
    selects("thousand values", asking("a", "In", *(f"v{number}" for number in range(1000)))),
    selects("as many labels as there may be", {"matchLabels": {f"a{number}": "b" for number in range(1000)}}),
    selects("as many requirements as there may be", {"matchExpressions": [EXISTS] * 1000}),
    refused("too many labels", LABELS, {"matchLabels": {f"a{number}": "b" for number in range(1001)}}),
    refused("too many requirements", EXPRESSIONS, {"matchExpressions": [EXISTS] * 1001}),
    refused("a label's key with a space", f'{LABELS}["node size"]', {"matchLabels": {"node size": "big"}}),
    refused("a label's empty key", f'{LABELS}[""]', {"matchLabels": {"": "big"}}),
    refused("a label's key that is too long", f"{LABELS}.{'b' * 64}", {"matchLabels": {"b" * 64: "c"}}),
    refused(
        "a label's prefix that is too long", f'{LABELS}["{"a" * 254}/b"]', {"matchLabels": {"a" * 254 + "/b": "c"}}
    ),
    refused(
        "a label's prefix in capitals", f'{LABELS}["Example.com/size"]', {"matchLabels": {"Example.com/size": "c"}}
    ),
    refused("a label's key with an empty prefix", f'{LABELS}["/size"]', {"matchLabels": {"/size": "c"}}),
    refused("a label's key with two slashes", f'{LABELS}["a/b/c"]', {"matchLabels": {"a/b/c": "c"}}),
    refused("a label's key with a newline after", f'{LABELS}["size\n"]', {"matchLabels": {"size\n": "c"}}),
    refused("a label's value with a space", f"{LABELS}.size", {"matchLabels": {"size": "very big"}}),
    refused("a label's value with a newline after", f"{LABELS}.size", {"matchLabels": {"size": "big\n"}}),
    refused("a label's value that is too long", f"{LABELS}.size", {"matchLabels": {"size": "b" * 64}}),
    refused("an unknown operator", f"{EXPRESSIONS}[0].operator", asking("a", "Equals", "b")),
    refused("an operator in small letters", f"{EXPRESSIONS}[0].operator", asking("a", "in", "b")),
    refused("Gt, which labels have not", f"{EXPRESSIONS}[0].operator", asking("a", "Gt", "8")),
    refused("In without values", f"{EXPRESSIONS}[0].values", asking("a", "In")),
    refused("NotIn without values", f"{EXPRESSIONS}[0].values", asking("a", "NotIn")),
    refused("Exists with a value", f"{EXPRESSIONS}[0].values", asking("a", "Exists", "b")),
    refused("DoesNotExist with a value", f"{EXPRESSIONS}[0].values", asking("a", "DoesNotExist", "b")),
    refused("an empty key", f"{EXPRESSIONS}[0].key", asking("", "Exists")),
    refused("a key with a space", f"{EXPRESSIONS}[0].key", asking("node size", "Exists")),
    refused("a key that is too long", f"{EXPRESSIONS}[0].key", asking("b" * 64, "Exists")),
    refused("a value with a space", f"{EXPRESSIONS}[0].values[1]", asking("a", "In", "b", "very big")),
    refused("a value that is too long", f"{EXPRESSIONS}[0].values[0]", asking("a", "In", "b" * 64)),
    refused("a requirement that is null", f"{EXPRESSIONS}[0]", {"matchExpressions": [None]}),
]

SHAPES = [
    Case("no spec", config(None), frozenset({"spec"})),
    Case("an empty spec", config({}), frozenset({CIDR, MASK})),
    bad("no range at all", CIDR, cidr=None),
    bad("no mask at all", MASK, perNodeMaskSize=None),
    bad("a range that is a list", CIDR, cidr=["10.1.0.0/16"]),
    bad("a mask as text", MASK, perNodeMaskSize="24"),
    bad("a mask with a fraction", MASK, perNodeMaskSize=24.5),
    bad("a mask true", MASK, perNodeMaskSize=True),
    bad("a mask beyond 32 bits", MASK, perNodeMaskSize=1 << 40),
    bad("a misspelt field", "spec.perNodeMaskSizes", perNodeMaskSizes=24),
    bad("a field of the other kind", "spec.perNodeHostBits", perNodeHostBits=8),
    refused("a selector that is a list", "spec.nodeSelector", []),
    refused("labels without matchLabels", "spec.nodeSelector.size", {"size": "big"}),
    refused("a selector of the other kind", "spec.nodeSelector.nodeSelectorTerms", {"nodeSelectorTerms": []}),
    refused("labels that are a list", LABELS, {"matchLabels": ["size"]}),
    refused("a label that is a number", f"{LABELS}.size", {"matchLabels": {"size": 1}}),
    refused("a label that is true", f"{LABELS}.size", {"matchLabels": {"size": True}}),
    refused("a value that is a number", f"{EXPRESSIONS}[0].values[0]", asking("a", "In", 1)),
    refused("a requirement without a key", f"{EXPRESSIONS}[0].key", {"matchExpressions": [{"operator": "Exists"}]}),
    refused("a requirement without an operator", f"{EXPRESSIONS}[0].operator", {"matchExpressions": [{"key": "a"}]}),
]

METADATA = [
    Case("the longest name", config(FOUR, {"name": "a" * 253}), frozenset()),
    Case("a name in capitals", config(FOUR, {"name": "Pool"}), frozenset({"metadata.name"})),
    Case("a name with a slash", config(FOUR, {"name": "ccc/pool"}), frozenset({"metadata.name"})),
    Case("no name", config(FOUR, {"name": None}), frozenset({"metadata.name"})),
]

CASES = [*RANGES, *SIZES, *SELECTORS, *SHAPES, *METADATA]

UPDATES = [
    Update("nothing", {**FOUR, "nodeSelector": BIG}, {**FOUR, "nodeSelector": BIG}, ""),
    Update("range changed", FOUR, {**FOUR, "cidr": "10.2.0.0/16"}, CIDR),
    Update("range grown", FOUR, {**FOUR, "cidr": "10.0.0.0/15"}, CIDR),
    Update("range of the other family", {**SIX, "perNodeMaskSize": 28, "cidr": "fd00::/16"}, FOUR, CIDR),
    Update("range spelt another way", SIX, {**SIX, "cidr": "FD12:3456:789a::/48"}, CIDR),
    Update("mask changed", FOUR, {**FOUR, "perNodeMaskSize": 25}, MASK),
    Update("selector changed", {**FOUR, "nodeSelector": BIG}, {**FOUR, "nodeSelector": asking("a", "Exists")}, ""),
    Update("selector added", FOUR, {**FOUR, "nodeSelector": BIG}, ""),
    Update("selector removed", {**FOUR, "nodeSelector": BIG}, FOUR, ""),
    Update("selector emptied", {**FOUR, "nodeSelector": BIG}, {**FOUR, "nodeSelector": {}}, ""),
    Update(
        "selector made wrong",
        {**FOUR, "nodeSelector": BIG},
        {**FOUR, "nodeSelector": {"matchLabels": {"size": "very big"}}},
        f"{LABELS}.size",
    ),
]
