"""What keeps a process that follows collections and stands for election from serving, or from taking over (O2, O6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.kube.election import Elector
    from cidrella.kube.reflector import Reflector


def not_followed(reflectors: Mapping[str, Reflector[Any]]) -> list[str]:
    """The collections, by what people call them, that are not followed; nothing where all are."""
    missing = []
    for what, reflector in reflectors.items():
        if reflector.trouble:
            missing.append(f"{what} cannot be followed: {reflector.trouble}")
        elif not reflector.synced:
            missing.append(f"{what} are not listed yet")
    return missing


def not_led(elector: Elector | None) -> list[str]:
    """Why this process neither leads nor knows who does; nothing where one of both holds, or nobody is elected."""
    if elector is None or elector.leading:
        return []
    if elector.trouble:
        return [f"the lease cannot be had or watched: {elector.trouble}"]
    return [] if elector.holder else ["nobody leads yet"]
