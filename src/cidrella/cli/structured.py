"""Results for other programs: JSON and YAML."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml

from cidrella.cli.shared import Listing, Output

if TYPE_CHECKING:
    from collections.abc import Mapping


def structured(result: Mapping[str, object], output: Output | Listing) -> str:
    """The result as text. Numbers are exact, however large: the capacity of an IPv6 range may have thirty digits."""
    if output in (Output.JSON, Listing.JSON):
        return json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    return yaml.dump(result, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=1 << 16)
