"""Pods: there are none. What lists them, such as `kubectl describe node`, is told so."""

from __future__ import annotations

from typing import Any, Final

from cidrella.apiserver.kinds import shapes
from cidrella.apiserver.kinds.kind import BuiltIn, age
from cidrella.apiserver.resource import Column, Resource
from cidrella.apiserver.schemas.schema import Schema

_ANYTHING: Final[dict[str, Any]] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: Final = shapes.whole("Pod", "Containers that run together. There are none here.", {"spec": _ANYTHING})
_FIELDS: Final = (
    "spec.hostNetwork",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.nominatedNodeName",
    "status.phase",
    "status.podIP",
    "status.podIPs",
)


def _nothing(_: dict[str, Any]) -> str:
    return ""


def resource() -> Resource:
    """The kind."""
    strategy = BuiltIn(DEFINITION)
    return Resource(
        group="",
        version="v1",
        plural="pods",
        kind="Pod",
        namespaced=True,
        schema=Schema(DEFINITION),
        strategy=strategy,
        singular="pod",
        short_names=("po",),
        categories=("all",),
        fields=dict.fromkeys(_FIELDS, _nothing),
        verbs=("get", "list", "watch"),
        columns=strategy.columns(
            Column("Ready", _nothing, description="How many of its containers are ready."),
            Column("Status", _nothing, description="What becomes of it."),
            Column("Restarts", _nothing, description="How often its containers were started again."),
            age(),
            Column("IP", _nothing, description="Its address.", priority=1),
            Column("Node", _nothing, description="Where it runs.", priority=1),
            Column("Nominated Node", _nothing, description="Where it may come to run.", priority=1),
            Column("Readiness Gates", _nothing, description="What else has to be well.", priority=1),
        ),
    )
