"""The API server judges a ClusterCIDR as `cidrella validate` does: one table, both asked, on every row."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import pytest

from cidrella.model.decode import decode
from cidrella.model.objects import ClusterCIDR, ServiceCIDR
from cidrella.model.validate import validate_cluster_cidr, validate_service_cidr
from tests.model.cases import CASES, SERVICE_CIDRS, UPDATES
from tests.model.manifests import pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cidrella.model.decode import Problem
    from tests.model.manifests import Case, Update
    from tests.real.conftest import Kubectl
    from tests.testenv.cluster import Cluster

T = TypeVar("T", ClusterCIDR, ServiceCIDR)

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clustercidrs.networking.x-k8s.io"
_WORKERS = 2
_NO_HELP = re.compile(r"no such key|no such overload|internal error|undeclared reference|Traceback", re.IGNORECASE)


def test_crd_is_established(cluster: Cluster, kubectl: Kubectl) -> None:
    """C4: the API server takes the CRD: names accepted, established, nothing wrong with its schema."""
    assert kubectl("get", "cc").returncode == 0
    conditions = {each["type"]: each["status"] for each in cluster.admin.get(CRD)["status"]["conditions"]}
    assert conditions["Established"] == conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions


@pytest.mark.parametrize(
    ("cases", "judge"),
    [
        (CASES, lambda raw: _judge(raw, ClusterCIDR, validate_cluster_cidr)),
        (SERVICE_CIDRS, lambda raw: _judge(raw, ServiceCIDR, validate_service_cidr)),
    ],
    ids=["ClusterCIDR", "ServiceCIDR"],
)
def test_api_server_and_validate_agree(
    kubectl: Kubectl, cases: Sequence[Case], judge: Callable[[object], list[Problem]]
) -> None:
    """C1, C2, C4: each valid object is accepted and each invalid one refused, by both, on every row of the table."""

    def ask(case: Case) -> str:
        asked = kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(case.manifest))
        return asked.stderr.strip() if asked.returncode else ""

    with ThreadPoolExecutor(_WORKERS) as workers:
        refusals = list(workers.map(ask, cases))
    disagreements = []
    for case, refusal in zip(cases, refusals, strict=True):
        problems = judge(json.loads(json.dumps(case.manifest)))
        if bool(refusal) != bool(case.fields) or bool(problems) != bool(case.fields):
            disagreements.append((case.title, refusal, [str(problem) for problem in problems]))
        assert not _NO_HELP.search(refusal), (case.title, refusal)
    assert not disagreements
    assert any(refusals)
    assert not all(refusals)


@pytest.mark.parametrize("update", UPDATES, ids=lambda update: update.title)
def test_fields_cannot_be_changed(kubectl: Kubectl, update: Update) -> None:
    """C3, pitfall 14: no field can be changed, added or removed later, and the refusal says what to do instead."""
    name = "update-" + re.sub(r"[^a-z0-9]+", "-", update.title.lower()).strip("-")
    created = kubectl("create", "-f", "-", stdin=json.dumps(pool(update.before, {"name": name})))
    assert created.returncode == 0, created.stderr
    try:
        replaced = kubectl("replace", "-f", "-", stdin=json.dumps(pool(update.after, {"name": name})))
        assert (replaced.returncode == 0) == (not update.field), replaced.stderr
        if update.field:
            assert f"{update.field}: " in replaced.stderr
            assert "create another ClusterCIDR" in replaced.stderr
    finally:
        assert kubectl("delete", "cc", name).returncode == 0


def _judge(raw: object, kind: type[T], validate: Callable[[T], list[Problem]]) -> list[Problem]:
    decoded = decode(raw, kind)
    return decoded if isinstance(decoded, list) else validate(decoded)
