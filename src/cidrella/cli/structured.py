"""Results for other programs: JSON and YAML. Fields may come, none goes, and none changes what it means."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml

from cidrella.cli.shared import Listing, Output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.core.decision import Decision


def structured(result: Mapping[str, object], output: Output | Listing) -> str:
    """The result as text. Numbers are exact, however large: the capacity of an IPv6 range may have thirty digits."""
    if output in (Output.JSON, Listing.JSON):
        return json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    return yaml.dump(result, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=1 << 16)


def blocks(decision: Decision) -> dict[str, object]:
    """The blocks of a node and where they are from: the pool that the first counts towards, and that of each (P3)."""
    names = [pool and pool.name for pool in decision.pools]
    return {
        "podCIDRs": [str(block) for block in decision.blocks],
        "clusterCIDR": names[0] if names else None,
        "pools": names,
    }
