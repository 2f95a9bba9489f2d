"""One table of objects, valid and not, that every place which judges them is held to (C4).

The validator's tests run it here; the same table is meant for whatever else judges a `ClusterCIDR`: the API server with
the CRD, and the embedded one. `fields` are the fields that are wrong, none for a valid object.

Objects come through kubectl, as people's do. It writes 8.0 as 8, as `cidrella validate` reads it; an API server that is
sent 8.0 in JSON refuses it, and it is none of our business to be as strict.
"""

from tests.model.manifests import (
    EXPRESSION,
    FIELD,
    Manifest,
    Update,
    asking,
    bare,
    called,
    matches,
    mismatches,
    naming,
    selecting,
    services,
    valid,
    wrong,
)

BITS, BITS6 = "spec.perNodeHostBits", "spec.perNodeHostBitsIPv6"
V4, V6 = "spec.ipv4", "spec.ipv6"
TERMS = "spec.nodeSelector.nodeSelectorTerms"
EXISTS = {"key": "a", "operator": "Exists"}
NAMED = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}

RANGES = [
    valid("IPv4 alone"),
    valid("a range as large as the family", ipv4="0.0.0.0/0"),
    valid("the smallest range", ipv4="10.0.0.0/28", perNodeHostBits=4),
    bare("IPv6 alone", "", {"perNodeHostBits": 8, "ipv6": "fd00::/64"}),
    bare("IPv6 with an empty IPv4", "", {"perNodeHostBits": 8, "ipv4": "", "ipv6": "fd00::/64"}),
    bare("IPv6 with IPv4 null", "", {"perNodeHostBits": 8, "ipv4": None, "ipv6": "fd00::/64"}),
    valid("both families", ipv6="fd12:3456:789a::/48"),
    valid("IPv6 in capitals and in full", ipv6="FD00:0000:0000:0000:0000:0000:0000:0000/16"),
    valid("IPv6 with a dotted tail", ipv6="64:ff9b::1.2.3.0/120"),
    bare("no range", "spec", {"perNodeHostBits": 8}),
    bare("two empty ranges", "spec", {"perNodeHostBits": 8, "ipv4": "", "ipv6": ""}),
    wrong("no length", V4, ipv4="10.1.0.0"),
    wrong("an empty length", V4, ipv4="10.1.0.0/"),
    wrong("a netmask", V4, ipv4="10.1.0.0/255.255.0.0"),
    wrong("a length that is too long", V4, ipv4="10.1.0.0/33"),
    wrong("a negative length", V4, ipv4="10.1.0.0/-1"),
    wrong("a signed length", V4, ipv4="10.1.0.0/+16"),
    wrong("a leading zero in the length", V4, ipv4="10.1.0.0/08"),
    wrong("a leading zero in the address", V4, ipv4="10.01.0.0/16"),
    wrong("three numbers", V4, ipv4="10.1.0/16"),
    wrong("a number above 255", V4, ipv4="10.256.0.0/16"),
    wrong("a hexadecimal number", V4, ipv4="0xa.0.0.0/8"),
    wrong("a space before", V4, ipv4=" 10.1.0.0/16"),
    wrong("a space after", V4, ipv4="10.1.0.0/16 "),
    wrong("a newline after", V4, ipv4="10.1.0.0/16\n"),
    wrong("two slashes", V4, ipv4="10.1.0.0/16/16"),
    wrong("digits of another script", V4, ipv4="\u0661\u0660.0.0.0/8"),
    wrong("words", V4, ipv4="my network"),
    wrong("a long text", V4, ipv4="10.1.0.0/16" + "0" * 80),
    wrong("host bits set", V4, ipv4="10.1.0.1/16"),
    wrong("host bits set in IPv6", V6, ipv6="fd00::1/64"),
    wrong("IPv6 in ipv4", V4, ipv4="fd00::/64"),
    wrong("IPv4 in ipv6", V6, ipv6="10.1.0.0/16"),
    wrong("an IPv4-mapped range", V6, ipv6="::ffff:10.1.0.0/112"),
    wrong("all of the IPv4-mapped space", V6, ipv6="::ffff:0:0/96"),
    wrong("a zone", V6, ipv6="fe80::%eth0/64"),
    wrong("two gaps", V6, ipv6="fd00::1::/64"),
    wrong("nine groups", V6, ipv6="1:2:3:4:5:6:7:8:0/128"),
    wrong("a gap of nothing", V6, ipv6="1::2:3:4:5:6:7:8/112"),
    wrong("brackets", V6, ipv6="[fd00::]/64"),
    wrong("both ranges wrong", (V4, V6), ipv4="10.1.0.1/16", ipv6="fd00::1/64"),
]

SIZES = [
    valid("the fewest host bits", perNodeHostBits=4),
    valid("one block", perNodeHostBits=16),
    valid("a whole number with a point, through kubectl", perNodeHostBits=8.0),
    valid("a size of its own for IPv6", ipv6="fd12:3456:789a::/48", perNodeHostBitsIPv6=64),
    valid("one block of IPv6", ipv6="fd12:3456:789a::/48", perNodeHostBitsIPv6=80),
    valid("IPv4 size that would not fit IPv6", perNodeHostBits=16, ipv6="fd00::/120", perNodeHostBitsIPv6=4),
    valid("no size of its own, said as null", ipv6="fd00::/64", perNodeHostBitsIPv6=None),
    bare("all of IPv6 in one block", "", {"perNodeHostBits": 128, "ipv6": "::/0"}),
    bare("IPv6 bits that nothing uses", "", {"perNodeHostBits": 500, "ipv6": "fd00::/48", "perNodeHostBitsIPv6": 64}),
    wrong("too few host bits", BITS, perNodeHostBits=3),
    wrong("no host bits", BITS, perNodeHostBits=0),
    wrong("negative host bits", BITS, perNodeHostBits=-8),
    wrong("blocks larger than the range", BITS, perNodeHostBits=17),
    wrong("blocks larger than the family", BITS, perNodeHostBits=33),
    wrong("blocks larger than the IPv6 range only", BITS, perNodeHostBits=16, ipv6="fd00::/120"),
    wrong("IPv6 blocks larger than their range", BITS6, ipv6="fd00::/64", perNodeHostBitsIPv6=65),
    wrong("too few IPv6 host bits", BITS6, ipv6="fd00::/64", perNodeHostBitsIPv6=3),
    wrong("IPv6 host bits without IPv6", BITS6, perNodeHostBitsIPv6=64),
    wrong("IPv6 host bits with an empty IPv6", BITS6, ipv6="", perNodeHostBitsIPv6=64),
    wrong("a range too small for any block", V4, ipv4="10.0.0.0/29", perNodeHostBits=4),
    wrong("an IPv6 range too small for any block", V6, ipv6="fd00::/125"),
    wrong("too few host bits and host bits set", (BITS, V4), perNodeHostBits=3, ipv4="10.0.0.1/16"),
]

SELECTORS = [
    matches("selector null", None),
    matches("a selector without terms", {}),
    matches("a selector with terms null", {"nodeSelectorTerms": None}),
    matches("a selector with no term", selecting()),
    matches("an empty term", selecting({})),
    matches("a term with lists null", selecting({"matchExpressions": None, "matchFields": None})),
    matches("In", asking("size", "In", "big", "huge")),
    matches("NotIn", asking("size", "NotIn", "small")),
    matches("In with an empty value", asking("size", "In", "")),
    matches("Exists", asking("size", "Exists")),
    matches("DoesNotExist without values", selecting({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]})),
    matches("Exists with values null", selecting({"matchExpressions": [{**EXISTS, "values": None}]})),
    matches("Gt", asking("cores", "Gt", "8")),
    matches("Lt of a negative number", asking("cores", "Lt", "-8")),
    matches("Gt of a number with leading zeros", asking("cores", "Gt", "+0008")),
    matches("Gt of a number with as many leading zeros as fit", asking("cores", "Gt", "0" * 61 + "12")),
    matches("the largest number", asking("cores", "Gt", "9223372036854775807")),
    matches("the smallest number", asking("cores", "Lt", "-9223372036854775808")),
    matches("a key with a prefix", asking("node.example.com/Size_of.it-0", "Exists")),
    matches("the longest key", asking("a" * 253 + "/" + "b" * 63, "Exists")),
    matches("the longest value", asking("a", "In", "b" * 63)),
    matches("a node by name", naming("metadata.name", "In", "node-1.example.com")),
    matches("all but one node", naming("metadata.name", "NotIn", "node-1")),
    matches("a label and a name", selecting({"matchExpressions": [EXISTS], "matchFields": [NAMED]})),
    matches("thousand values", asking("a", "In", *(f"v{number}" for number in range(1000)))),
    matches("as many terms as there may be", selecting(*({"matchExpressions": [EXISTS]} for _ in range(1000)))),
    matches("as many requirements as there may be", selecting({"matchExpressions": [EXISTS] * 32})),
    mismatches("too many terms", TERMS, selecting(*({} for _ in range(1001)))),
    mismatches("too many requirements", EXPRESSION[:-3], selecting({"matchExpressions": [EXISTS] * 33})),
    mismatches("an unknown operator", f"{EXPRESSION}.operator", asking("a", "Equals", "b")),
    mismatches("an operator in small letters", f"{EXPRESSION}.operator", asking("a", "in", "b")),
    mismatches("In without values", f"{EXPRESSION}.values", asking("a", "In")),
    mismatches("NotIn without values", f"{EXPRESSION}.values", asking("a", "NotIn")),
    mismatches("Exists with a value", f"{EXPRESSION}.values", asking("a", "Exists", "b")),
    mismatches("DoesNotExist with a value", f"{EXPRESSION}.values", asking("a", "DoesNotExist", "b")),
    mismatches("Gt without a value", f"{EXPRESSION}.values", asking("a", "Gt")),
    mismatches("Lt with two values", f"{EXPRESSION}.values", asking("a", "Lt", "1", "2")),
    mismatches("Gt of a word", f"{EXPRESSION}.values", asking("a", "Gt", "many")),
    mismatches("Gt of a fraction", f"{EXPRESSION}.values", asking("a", "Gt", "1.5")),
    mismatches("Gt of nothing", f"{EXPRESSION}.values", asking("a", "Gt", "")),
    mismatches("Gt of a number of 63 digits", f"{EXPRESSION}.values", asking("a", "Gt", "1" * 63)),
    mismatches("Gt of a number beyond 64 bits", f"{EXPRESSION}.values", asking("a", "Gt", "9223372036854775808")),
    mismatches("an empty key", f"{EXPRESSION}.key", asking("", "Exists")),
    mismatches("a key with a space", f"{EXPRESSION}.key", asking("node size", "Exists")),
    mismatches("a key that is too long", f"{EXPRESSION}.key", asking("b" * 64, "Exists")),
    mismatches("a key's prefix that is too long", f"{EXPRESSION}.key", asking("a" * 254 + "/b", "Exists")),
    mismatches("a key's prefix in capitals", f"{EXPRESSION}.key", asking("Example.com/size", "Exists")),
    mismatches("a key with an empty prefix", f"{EXPRESSION}.key", asking("/size", "Exists")),
    mismatches("a key with two slashes", f"{EXPRESSION}.key", asking("a/b/c", "Exists")),
    mismatches("a value with a space", f"{EXPRESSION}.values[1]", asking("a", "In", "b", "very big")),
    mismatches("a value with a sign", f"{EXPRESSION}.values[0]", asking("a", "NotIn", "-5")),
    mismatches("a value that is too long", f"{EXPRESSION}.values[0]", asking("a", "In", "b" * 64)),
    mismatches("a field that is not known", f"{FIELD}.key", naming("metadata.uid", "In", "a")),
    mismatches("a label among the fields", f"{FIELD}.key", naming("size", "In", "big")),
    mismatches("an operator that fields have not", f"{FIELD}.operator", naming("metadata.name", "Gt", "1")),
    mismatches(
        "Exists for a field",
        (f"{FIELD}.operator", f"{FIELD}.values"),
        selecting({"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}),
    ),
    mismatches("two names", f"{FIELD}.values", naming("metadata.name", "In", "a", "b")),
    mismatches("a requirement on no name", f"{FIELD}.values", naming("metadata.name", "In")),
    mismatches("a name that no node can have", f"{FIELD}.values[0]", naming("metadata.name", "In", "Node_1")),
    mismatches("a term that is null", f"{TERMS}[0]", selecting(None)),
    mismatches("a requirement that is null", EXPRESSION, selecting({"matchExpressions": [None]})),
]

SHAPES = [
    bare("no spec", "spec", None),
    bare("a spec that is text", "spec", "10.0.0.0/8"),
    bare("no host bits at all", BITS, {"ipv4": "10.1.0.0/16"}),
    wrong("host bits null", BITS, perNodeHostBits=None),
    wrong("host bits as text", BITS, perNodeHostBits="8"),
    wrong("host bits with a fraction", BITS, perNodeHostBits=8.5),
    wrong("host bits true", BITS, perNodeHostBits=True),
    bare("far too many host bits", BITS, {"perNodeHostBits": 1 << 40, "ipv6": "fd00::/48", "perNodeHostBitsIPv6": 64}),
    wrong("a range that is a number", V4, ipv4=10),
    wrong("a range that is a list", V4, ipv4=["10.1.0.0/16"]),
    wrong("a misspelt field", "spec.perNodeHostbits", perNodeHostbits=8),
    wrong("a field from elsewhere", "spec.cidr", cidr="10.0.0.0/8"),
    mismatches("a selector that is a list", "spec.nodeSelector", []),
    mismatches("labels instead of terms", "spec.nodeSelector.size", {"size": "big"}),
    mismatches("terms that are a mapping", TERMS, {"nodeSelectorTerms": {"matchExpressions": [EXISTS]}}),
    mismatches("a value that is a number", f"{EXPRESSION}.values[0]", asking("a", "In", 1)),
    mismatches("a value that is true", f"{EXPRESSION}.values[0]", asking("a", "In", True)),
    mismatches(
        "a requirement without a key", f"{EXPRESSION}.key", selecting({"matchExpressions": [{"operator": "Exists"}]})
    ),
    mismatches(
        "a requirement without an operator", f"{EXPRESSION}.operator", selecting({"matchExpressions": [{"key": "a"}]})
    ),
]

METADATA = [
    called("a name with dots", "", name="pool-1.example.com"),
    called("the longest name", "", name="a" * 253),
    called("metadata with nulls", "", labels=None, annotations=None, creationTimestamp=None, finalizers=None),
    called("a label without a value", "", labels={"example.com/pool": None}),
    called("a name in capitals", "metadata.name", name="Pool"),
    called("a name with an underscore", "metadata.name", name="my_pool"),
    called("a name that ends in a dot", "metadata.name", name="pool."),
    called("a name that is too long", "metadata.name", name="a" * 254),
    called("no name", "metadata.name", name=None),
    called("a label that is a number", "metadata.labels.size", labels={"size": 1}),
    called("a label that is no label", "metadata.labels.size", labels={"size": "very big"}),
]

CASES = [*RANGES, *SIZES, *SELECTORS, *SHAPES, *METADATA]

SERVICE_CIDRS = [
    services("one range", "", "10.96.0.0/16"),
    services("one of each family", "", "fd00::/108", "10.96.0.0/16"),
    services("none", "spec.cidrs"),
    services("two of one family", "spec.cidrs", "10.96.0.0/16", "10.97.0.0/16"),
    services("three", "spec.cidrs", "10.96.0.0/16", "fd00::/108", "10.97.0.0/16"),
    services("host bits set", "spec.cidrs[0]", "10.96.0.1/16"),
    services("no range", "spec.cidrs[1]", "10.96.0.0/16", "fd00::"),
    services("a name in capitals", "metadata.name", "10.96.0.0/16", name="Services"),
]

BIG, SMALL = asking("size", "In", "big"), asking("size", "In", "small")
ONE: Manifest = {"perNodeHostBits": 8, "ipv4": "10.1.0.0/16"}
SIX: Manifest = {"perNodeHostBits": 8, "ipv6": "fd00::/48"}
BOTH: Manifest = {**ONE, **SIX}

UPDATES = [
    Update("nothing", {**BOTH, "nodeSelector": BIG}, {**BOTH, "nodeSelector": BIG}, ""),
    Update("an empty range for an absent one", ONE, {**ONE, "ipv6": ""}, ""),
    Update("an absent range for an empty one", {**SIX, "ipv4": ""}, SIX, ""),
    Update("host bits changed", ONE, {**ONE, "perNodeHostBits": 9}, BITS),
    Update("IPv6 host bits changed", {**SIX, "perNodeHostBitsIPv6": 64}, {**SIX, "perNodeHostBitsIPv6": 65}, BITS6),
    Update("IPv6 host bits added", SIX, {**SIX, "perNodeHostBitsIPv6": 64}, BITS6),
    Update("IPv6 host bits added, the same", SIX, {**SIX, "perNodeHostBitsIPv6": 8}, BITS6),
    Update("IPv6 host bits removed", {**SIX, "perNodeHostBitsIPv6": 64}, SIX, BITS6),
    Update("IPv4 changed", ONE, {**ONE, "ipv4": "10.2.0.0/16"}, V4),
    Update("IPv4 added", SIX, BOTH, V4),
    Update("IPv4 added to an empty one", {**SIX, "ipv4": ""}, BOTH, V4),
    Update("IPv4 removed", BOTH, SIX, V4),
    Update("IPv4 emptied", BOTH, {**SIX, "ipv4": ""}, V4),
    Update("IPv6 changed", SIX, {**SIX, "ipv6": "fd01::/48"}, V6),
    Update("IPv6 spelt another way", SIX, {**SIX, "ipv6": "FD00::/48"}, V6),
    Update("IPv6 added", ONE, BOTH, V6),
    Update("IPv6 removed", BOTH, ONE, V6),
    Update("IPv6 emptied", BOTH, {**ONE, "ipv6": ""}, V6),
    Update("selector changed", {**ONE, "nodeSelector": BIG}, {**ONE, "nodeSelector": SMALL}, "spec.nodeSelector"),
    Update("selector added", ONE, {**ONE, "nodeSelector": BIG}, "spec.nodeSelector"),
    Update("selector added, without terms", ONE, {**ONE, "nodeSelector": selecting()}, "spec.nodeSelector"),
    Update("selector removed", {**ONE, "nodeSelector": BIG}, ONE, "spec.nodeSelector"),
    Update("selector emptied", {**ONE, "nodeSelector": BIG}, {**ONE, "nodeSelector": {}}, "spec.nodeSelector"),
]
