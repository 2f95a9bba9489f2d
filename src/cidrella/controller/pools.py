"""The pools of every kind, followed together: one reflector for each kind, one set of pools by name.

Here the kinds meet. What comes after this sees pools, each with its kind for the rare case that it matters: where the
object is, and how it is spoken of.

A kind that is optional may be missing. That it is said once, by its reflector, when it is found missing; whether its
CRD is installed is asked again every few seconds, and its pools come and go with it (K6). So it is where the rights are
those of a version that knew nothing of it, too. What nodes hold is nobody's
but theirs: to the books, pools of a kind that was removed are pools that went (P7).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from cidrella.kube.reflector import Reflector, ReflectorSettings
from cidrella.model.kinds import POOL_KINDS
from cidrella.model.reading import read_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cidrella.kube.client import Client
    from cidrella.kube.reflector import Change
    from cidrella.model.kinds import PoolKind
    from cidrella.model.reading import SeenPool

_QUICK = ReflectorSettings(absent_period=2.0)
"""A CRD that is installed later is waited for by somebody."""


class Pools:
    """Every pool that there is. `on_changes` is told as a reflector's is, for one kind at a time."""

    def __init__(self, client: Client, on_changes: Callable[[list[Change[SeenPool]]], None]) -> None:
        self._on_changes = on_changes
        self._objects: dict[str, SeenPool] = {}
        self.objects: Mapping[str, SeenPool] = MappingProxyType(self._objects)
        """By name, as last told."""
        self.reflectors: Mapping[PoolKind, Reflector[SeenPool]] = {
            kind: Reflector(
                client,
                kind.path,
                partial(read_pool, kind=kind),
                self._changed,
                known_as=kind.pool_name,
                settings=replace(_QUICK, optional=kind.optional),
            )
            for kind in POOL_KINDS
        }

    def _changed(self, changes: list[Change[SeenPool]]) -> None:
        for old, new in changes:
            if new is not None:
                self._objects[new.name] = new
            elif old is not None:
                del self._objects[old.name]
        self._on_changes(changes)

    @property
    def served(self) -> frozenset[PoolKind]:
        """The kinds that the API server serves, as far as it was asked."""
        return frozenset(
            kind for kind, reflector in self.reflectors.items() if reflector.synced and not reflector.absent
        )

    @property
    def missing(self) -> list[PoolKind]:
        """The kinds that it does not serve, and that nobody can do without (K6)."""
        return [kind for kind, reflector in self.reflectors.items() if reflector.absent and not kind.optional]

    async def relist(self) -> None:
        """Wait for lists of all kinds that begin now, and for what they tell."""
        await asyncio.gather(*(each.relist() for each in self.reflectors.values()))
