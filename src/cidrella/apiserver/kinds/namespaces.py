"""Namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.kinds import shapes
from cidrella.apiserver.kinds.kind import BuiltIn, age
from cidrella.apiserver.meta.metadata import STANDARD_FINALIZERS, create_faults, finalizer_faults
from cidrella.apiserver.resource import Column, Resource
from cidrella.apiserver.schemas.schema import Schema
from cidrella.apiserver.words.faults import invalid
from cidrella.apiserver.words.naming import key_faults, label_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

INITIAL: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
"""Those that are there from the beginning."""
LASTING: Final = ("default", "kube-public", "kube-system")
"""Those that may not be deleted."""
_FINALIZER: Final = "kubernetes"
_LABEL: Final = "kubernetes.io/metadata.name"
_ACTIVE: Final = "Active"
_TERMINATING: Final = "Terminating"

DEFINITION: Final = shapes.whole(
    "Namespace",
    "A room for objects: their names are unique in it, and they go with it.",
    {
        "spec": shapes.record(
            "NamespaceSpec",
            "What is wanted of the namespace.",
            {"finalizers": shapes.texts("Who has something to do before it may go.", "FinalizerName")},
        ),
        "status": shapes.record(
            "NamespaceStatus",
            "What becomes of it.",
            {
                "phase": shapes.text("Active, or Terminating once it is being deleted.", "NamespacePhase"),
                "conditions": shapes.listing(
                    "What was last observed, by type.",
                    shapes.item(
                        "NamespaceCondition",
                        {
                            "type": shapes.text("What it is about.", "NamespaceConditionType", default=""),
                            "status": shapes.text("True, False or Unknown.", "ConditionStatus", default=""),
                            "lastTransitionTime": shapes.time("When the status last changed.", default=None),
                            "reason": shapes.text("Why, in one word."),
                            "message": shapes.text("Why, in words for people."),
                        },
                    ),
                    **shapes.merged("type"),
                ),
            },
        ),
    },
)


class Namespaces(BuiltIn):
    """What is particular about namespaces: each has a label with its name, and waits for what is in it to go."""

    def prepare_create(self, new: Json) -> None:
        """A new one is active."""
        new["status"] = {"phase": _ACTIVE}
        finalizers = new["spec"].setdefault("finalizers", [])
        if _FINALIZER not in finalizers:
            finalizers.append(_FINALIZER)
        _label(new)

    def prepare_update(self, new: Json, old: Json) -> None:
        """Finalizers stay, too."""
        super().prepare_update(new, old)
        new["spec"] = old["spec"]
        _label(new)

    def prepare_status(self, new: Json, old: Json) -> None:
        """The name stays in its label, and a phase that is left out is the usual one."""
        super().prepare_status(new, old)
        new["status"].setdefault("phase", _ACTIVE)
        _label(new)

    def validate_create(self, new: Json) -> list[Fault]:
        """The finalizers of its own."""
        return [*finalizer_faults(new["metadata"]), *_finalizer_faults(new["spec"])]

    def validate_update(self, new: Json, old: Json) -> list[Fault]:
        """The phase; and, of a write to the namespace itself, once more all that is asked of new ones."""
        found: list[Fault] = []
        if new["status"] is old["status"]:
            found += finalizer_faults(new["metadata"])
            found += create_faults(new["metadata"], namespaced=False, name_faults=label_faults)
        return [*found, *finalizer_faults(new["metadata"]), *_phase_faults(new)]


def begin_deletion(namespace: Json, now: str) -> None:
    """What the deletion of a namespace begins with; it ends with `end_deletion`, when nothing is in it any more."""
    namespace["metadata"].setdefault("deletionTimestamp", now)
    namespace["status"]["phase"] = _TERMINATING


def end_deletion(namespace: Json) -> bool:
    """Let go of a namespace in which nothing is any more. Whether it may go: nobody else has anything to do before."""
    left = [each for each in namespace["spec"].get("finalizers", []) if each != _FINALIZER]
    namespace["spec"] = {"finalizers": left} if left else {}
    return not left and not namespace["metadata"].get("finalizers")


def _label(namespace: Json) -> None:
    labels = namespace["metadata"].setdefault("labels", {})
    labels[_LABEL] = namespace["metadata"].get("name", "")


def _finalizer_faults(spec: Json) -> Iterator[Fault]:
    for each in spec["finalizers"]:
        yield from (invalid("spec.finalizers", each, why) for why in key_faults(each))
        if "/" not in each and each not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid("spec.finalizers", each, why)


def _phase_faults(namespace: Json) -> Iterator[Fault]:
    going = "deletionTimestamp" in namespace["metadata"]
    phase = namespace["status"].get("phase", "")
    wanted = _TERMINATING if going else _ACTIVE
    if phase != wanted:
        when = "not empty" if going else "empty"
        yield invalid("status.Phase", phase, f"may only be '{wanted}' if `deletionTimestamp` is {when}")


def _phase(namespace: Json) -> str:
    return str(namespace["status"].get("phase", ""))


def resource() -> Resource:
    """The kind."""
    strategy = Namespaces(DEFINITION)
    return Resource(
        group="",
        version="v1",
        plural="namespaces",
        kind="Namespace",
        namespaced=False,
        schema=Schema(DEFINITION),
        strategy=strategy,
        singular="namespace",
        short_names=("ns",),
        status=True,
        fields={"status.phase": _phase},
        name_fault=label_faults,
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
        unconditional=True,
        returns_deleted=True,
        columns=strategy.columns(Column("Status", _phase, description="Active, or Terminating."), age()),
    )
