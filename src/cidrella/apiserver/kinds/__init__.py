"""The kinds that are built in, a module each: schema, columns, and what is particular about writing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.apiserver.kinds import events, leases, namespaces, nodes, pods, servicecidrs, services

if TYPE_CHECKING:
    from cidrella.apiserver.resource import Resource


def builtins() -> list[Resource]:
    """All of them."""
    return [
        nodes.resource(),
        namespaces.resource(),
        leases.resource(),
        events.older_resource(),
        events.newer_resource(),
        servicecidrs.resource(),
        services.resource(),
        pods.resource(),
    ]
