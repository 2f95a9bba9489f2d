"""Whether somebody chose the address of a Service, as far as it shows."""

from __future__ import annotations

import json

import msgspec
import pytest

from cidrella.model.chosen import LAST_APPLIED, Service, chosen_by, seen_service

BOTH = ["10.96.0.9", "fd00::9"]


def service(addresses: list[str], **metadata: object) -> Service:
    raw = {"metadata": {"name": "s", "namespace": "n", "uid": "u", **metadata}, "spec": {"clusterIPs": addresses}}
    return msgspec.json.decode(json.dumps(raw), type=Service)


def managed(fields: object, manager: str | None = "kubectl-create") -> list[object]:
    return [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}, {"manager": manager, "fieldsV1": fields}]


def applied(spec: object) -> dict[str, str]:
    return {LAST_APPLIED: json.dumps({"kind": "Service", "spec": spec})}


@pytest.mark.parametrize(
    ("fields", "chosen"),
    [
        ({"f:spec": {"f:clusterIP": {}}}, {"10.96.0.9": "by kubectl-create"}),
        ({"f:spec": {"f:clusterIPs": {}, "f:type": {}}}, {"10.96.0.9": "by kubectl-create"}),
        ({"f:spec": {"f:clusterIPs": {".": {}, 'v:"10.96.0.9"': {}}}}, {"10.96.0.9": "by kubectl-create"}),
        ({"f:spec": {"f:type": {}, "f:ports": {}}}, {}),
        ({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}, {}),
        (None, {}),
    ],
)
def test_what_managed_fields_tell(fields: object, chosen: dict[str, str]) -> None:
    """B4: a request that had the address in it shows; of two, the first is known to have been named."""
    assert chosen_by(service(BOTH, managedFields=managed(fields))) == chosen


def test_a_manager_without_a_name() -> None:
    """B4: somebody without a name is somebody."""
    fields: object = {"f:spec": {"f:clusterIP": {}}}
    assert chosen_by(service(BOTH, managedFields=managed(fields, None))) == {"10.96.0.9": "by somebody"}


@pytest.mark.parametrize(
    ("annotations", "chosen"),
    [
        (applied({"clusterIP": "10.96.0.9"}), {"10.96.0.9"}),
        (applied({"clusterIPs": BOTH}), {*BOTH}),
        (applied({"clusterIP": "10.96.0.8"}), set()),
        (applied({"clusterIP": "None"}), set()),
        (applied({"ports": []}), set()),
        (applied(None), set()),
        ({LAST_APPLIED: "rubbish"}, set()),
        ({LAST_APPLIED: "[]"}, set()),
        ({LAST_APPLIED: ""}, set()),
        ({"other": "x"}, set()),
        (None, set()),
    ],
)
def test_what_was_last_applied(annotations: object, chosen: set[str]) -> None:
    """B4: addresses in the configuration that kubectl applied were chosen, the others given; rubbish says nothing."""
    assert chosen_by(service(BOTH, annotations=annotations)) == dict.fromkeys(chosen, "by what was last applied")


def test_a_manifest_was_written() -> None:
    """B4: what never was in a cluster has no uid, and what stands in it was chosen."""
    assert chosen_by(service(BOTH, uid=None)) == dict.fromkeys(BOTH, "by its manifest")
    assert chosen_by(service(["None"], uid=None)) == {}


def test_a_manifest_without_a_namespace() -> None:
    """B8: a Service that names no namespace is of the one that kubectl would put it into."""
    assert seen_service(service([], namespace=None)).name == "default/s"
    seen = seen_service(service(BOTH, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert seen == ("n/s", "u", "ClusterIP", tuple(BOTH), True)
