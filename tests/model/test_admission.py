"""What the API server asks of a webhook, and what it is told."""

from __future__ import annotations

import json

import msgspec

from cidrella.model import admission

REVIEW = {
    "kind": "AdmissionReview",
    "apiVersion": "admission.k8s.io/v1",
    "request": {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Service"},
        "resource": {"group": "", "version": "v1", "resource": "services"},
        "requestKind": {"group": "", "version": "v1", "kind": "Service"},
        "name": "web",
        "namespace": "n",
        "operation": "CREATE",
        "userInfo": {"username": "admin"},
        "object": {
            "kind": "Service",
            "metadata": {"generateName": "web-", "namespace": "n", "creationTimestamp": None},
            "spec": {"ports": [{"port": 80}], "clusterIPs": ["10.96.0.1"], "ipFamilies": None, "selector": {"a": "b"}},
            "status": {"loadBalancer": {}},
        },
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions"},
    },
}


def test_a_question() -> None:
    """What is asked is read with the fields in use; what is null, or absent, is None."""
    review = msgspec.json.decode(json.dumps(REVIEW), type=admission.AdmissionReview)
    request = review.request
    assert request is not None
    assert (request.uid, request.operation, request.resource.resource, request.dry_run) == (
        "u",
        "CREATE",
        "services",
        False,
    )
    made = msgspec.json.decode(request.object, type=admission.Service)
    assert (made.metadata.name, made.metadata.generate_name) == (None, "web-")
    assert (made.spec.cluster_ips, made.spec.ip_families) == (["10.96.0.1"], None)
    assert bytes(request.old_object) == b"null"


def test_an_answer() -> None:
    """An answer carries its patch in base64, and leaves out what there is nothing to say of."""
    response = admission.AdmissionResponse(uid="u", allowed=True, patch=b"[]", patch_type="JSONPatch")
    review = admission.AdmissionReview(api_version=admission.API_VERSION, kind=admission.KIND, response=response)
    assert json.loads(msgspec.json.encode(review)) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True, "patch": "W10=", "patchType": "JSONPatch"},
    }
    refused = admission.AdmissionResponse(uid="u", allowed=False, status=admission.Status(code=422, message="full"))
    assert json.loads(msgspec.json.encode(refused)) == {
        "uid": "u",
        "allowed": False,
        "status": {"code": 422, "message": "full"},
    }
