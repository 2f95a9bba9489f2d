"""What the API server checks of a `ClusterCIDRConfig` (K1), as pieces of schema.

What it has in common with `ClusterCIDR` is in `rules`, as are the messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cidrella.model import rules
from cidrella.model.rules import anchored, immutable, is_range, large_enough, longest, no_host_bits, rule
from cidrella.model.syntax import KEY_PREFIX, LABEL_KEY, LABEL_MAX, LABEL_VALUE

if TYPE_CHECKING:
    from cidrella.model.rules import Schema

_KIND: Final = "ClusterCIDRConfig"
_MASK: Final = "perNodeMaskSize"


def _mask_fits(family: int) -> list[dict[str, str]]:
    """The rules that blocks have their minimum, and room in the range. A range that is wrong in itself is not asked."""
    this, least, most = is_range(family, "self.cidr"), "cidr(self.cidr).prefixLength()", longest(family)
    sound = f"{this} && cidr(self.cidr) == cidr(self.cidr).masked() && {least} <= {most}"
    return [
        rule(
            f"!({this}) || self.{_MASK} <= {most}",
            rules.TOO_LONG_A_MASK.format(length=most, family=f"IPv{family}"),
            at=_MASK,
        ),
        rule(
            f"!({sound}) || self.{_MASK} >= {least}",
            rules.TOO_SHORT_A_MASK,
            at=_MASK,
            says=f"'must be at least %d to leave at least one block in %s'.format([{least}, self.cidr])",
        ),
    ]


CIDR: Final[Schema] = {
    "maxLength": rules.CIDR_MAX,
    "x-kubernetes-validations": [
        rule("isCIDR(self)", rules.NOT_A_RANGE.format(example="10.1.0.0/16 or fd12:3456:789a::/48")),
        no_host_bits("isCIDR(self)"),
        large_enough(4),
        large_enough(6),
    ],
}
MASK_SIZE: Final[Schema] = {"format": "int32", "minimum": 0, "maximum": longest(6)}
OPERATOR: Final[Schema] = {"enum": [*rules.SET_OPERATORS, *rules.PRESENCE_OPERATORS]}
LABEL_VALUE_SCHEMA: Final[Schema] = {"maxLength": LABEL_MAX, "pattern": anchored(LABEL_VALUE)}
EXPRESSION: Final[Schema] = {"x-kubernetes-validations": rules.VALUES_AS_ASKED}
EXPRESSIONS: Final[Schema] = {"maxItems": rules.LABELS_MAX}
# The keys of a mapping have no schema of their own. An expression that names the bad ones would cost too much.
_IS_LABEL_KEY: Final = f"key.matches({anchored(LABEL_KEY)!r}) && key.matches({anchored(KEY_PREFIX)!r})"
MATCH_LABELS: Final[Schema] = {
    "maxProperties": rules.LABELS_MAX,
    "x-kubernetes-validations": [rule(f"self.all(key, {_IS_LABEL_KEY})", rules.NO_LABEL_KEYS)],
}
SPEC: Final[Schema] = {
    "x-kubernetes-validations": [
        *_mask_fits(4),
        *_mask_fits(6),
        immutable("cidr", _KIND),
        immutable(_MASK, _KIND),
    ],
}
