"""The API server judges a pool as `cidrella validate` does: one table for each kind, both asked, on every row."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import pytest

from cidrella.model.configs import ClusterCIDRConfig
from cidrella.model.decode import decode
from cidrella.model.kinds import POOL_KINDS
from cidrella.model.objects import ClusterCIDR, ServiceCIDR
from cidrella.model.validate import validate_pool, validate_service_cidr
from tests.model import cases_config
from tests.model.cases import CASES, SERVICE_CIDRS, UPDATES
from tests.model.manifests import config, pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from subprocess import CompletedProcess

    from cidrella.model.decode import Problem
    from cidrella.model.kinds import PoolKind
    from tests.model.manifests import Case, Manifest, Update
    from tests.real.conftest import Kubectl
    from tests.testenv.api import Api

T = TypeVar("T", ClusterCIDR, ClusterCIDRConfig, ServiceCIDR)

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WORKERS = 2
_NO_HELP = re.compile(r"no such key|no such overload|internal error|undeclared reference|Traceback", re.IGNORECASE)


@pytest.mark.parametrize("kind", POOL_KINDS, ids=str)
def test_crd_is_established(cluster: Api, kubectl: Kubectl, kind: PoolKind) -> None:
    """C4, K1: the API server takes the CRD: names accepted, established, nothing wrong with its schema."""
    assert kubectl("get", kind.short).returncode == 0
    found = cluster.admin.get(f"{CRDS}/{kind.resource}")
    conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
    assert conditions["Established"] == conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions


@pytest.mark.parametrize(
    ("cases", "judge"),
    [
        (CASES, lambda raw: _judge(raw, ClusterCIDR, validate_pool)),
        (cases_config.CASES, lambda raw: _judge(raw, ClusterCIDRConfig, validate_pool)),
        (SERVICE_CIDRS, lambda raw: _judge(raw, ServiceCIDR, validate_service_cidr)),
    ],
    ids=["ClusterCIDR", "ClusterCIDRConfig", "ServiceCIDR"],
)
def test_api_server_and_validate_agree(
    kubectl: Kubectl, cases: Sequence[Case], judge: Callable[[object], list[Problem]]
) -> None:
    """C1, C2, C4, K1: each valid object is accepted and each invalid one refused, by both, on every row."""

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
    refusal = _replace(kubectl, update, pool)
    assert bool(refusal) == bool(update.field), refusal
    if update.field:
        assert f"{update.field}: " in refusal
        assert "create another ClusterCIDR instead" in refusal


@pytest.mark.parametrize("update", cases_config.UPDATES, ids=lambda update: update.title)
def test_what_of_a_config_can_be_changed(kubectl: Kubectl, update: Update) -> None:
    """K1, K2: range and mask of a ClusterCIDRConfig stay; its selector may be any other that is valid."""
    refusal = _replace(kubectl, update, config)
    assert bool(refusal) == bool(update.field), refusal
    if update.field:
        assert f"{update.field}: " in refusal
    if update.field in (cases_config.CIDR, cases_config.MASK):
        assert "create another ClusterCIDRConfig instead" in refusal


def test_the_selector_can_be_edited(kubectl: Kubectl) -> None:
    """K2: `kubectl apply` and `kubectl patch` change it; a replaced mapping leaves nothing of the old one behind."""
    name = {"name": "edited"}
    first = config({**cases_config.FOUR, "nodeSelector": {"matchLabels": {"a": "b", "np": "np3"}}}, name)
    second = config({**cases_config.FOUR, "nodeSelector": {"matchLabels": {"np": "np4"}}}, name)
    try:
        for manifest in (first, second):
            applied = kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
            assert applied.returncode == 0, applied.stderr
        shown = kubectl("get", "ccc", "edited", "-o", "jsonpath={.spec.nodeSelector}").stdout
        assert json.loads(shown) == {"matchLabels": {"np": "np4"}}
        patched = kubectl("patch", "ccc", "edited", "--type=merge", "-p", '{"spec": {"nodeSelector": null}}')
        assert patched.returncode == 0, patched.stderr
        assert kubectl("get", "ccc", "edited", "-o", "jsonpath={.spec.nodeSelector}").stdout == ""
    finally:
        assert kubectl("delete", "ccc", "edited").returncode == 0


def test_null_means_the_same_to_both(kubectl: Kubectl) -> None:
    """K1, C4: a label that is null is dropped from a selector by the API server, and read so by `cidrella validate`."""
    raw = config({**cases_config.FOUR, "nodeSelector": {"matchLabels": {"np": None, "size": "big"}}})
    stored = kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(raw))
    assert stored.returncode == 0, stored.stderr
    ours, theirs = decode(raw, ClusterCIDRConfig), decode(json.loads(stored.stdout), ClusterCIDRConfig)
    assert isinstance(ours, ClusterCIDRConfig)
    assert isinstance(theirs, ClusterCIDRConfig)
    assert ours.spec == theirs.spec


def test_a_status_does_not_touch_the_spec(kubectl: Kubectl) -> None:
    """K5, K1: the status is written apart, is held to its schema, and takes nothing of the spec along."""
    assert kubectl("create", "-f", "-", stdin=json.dumps(config(cases_config.SIX, {"name": "told"}))).returncode == 0
    status = {"nodes": 3, "free": 2**63 - 1, "conditions": [{"type": "Active", "status": "True"}]}
    body = {"status": status, "spec": {"cidr": "fd00::/48"}}
    try:
        patched = _patch_status(kubectl, "told", body)
        assert patched.returncode == 0, patched.stderr
        header, row = kubectl("get", "ccc").stdout.splitlines()
        assert header.split() == ["NAME", "CIDR", "PERNODEMASKSIZE", "USED", "FREE", "ACTIVE", "AGE"]
        assert row.split()[:6] == ["told", "fd12:3456:789a::/48", "64", "3", "9223372036854775807", "True"]
        assert _patch_status(kubectl, "told", {"status": {"nodes": "many"}}).returncode != 0
    finally:
        assert kubectl("delete", "ccc", "told").returncode == 0


def test_configs_are_explained(kubectl: Kubectl) -> None:
    """K1: `kubectl explain` describes every field of the spec."""
    explained = kubectl("explain", "ccc.spec", "--recursive")
    assert explained.returncode == 0, explained.stderr
    for field in ("cidr", "perNodeMaskSize", "nodeSelector", "matchLabels", "matchExpressions", "operator"):
        assert field in explained.stdout
    assert "<no description>" not in kubectl("explain", "ccc.spec").stdout


def _patch_status(kubectl: Kubectl, name: str, body: object) -> CompletedProcess[str]:
    return kubectl("patch", "ccc", name, "--subresource=status", "--type=merge", "-p", json.dumps(body))


def _replace(kubectl: Kubectl, update: Update, manifest: Callable[[object, dict[str, object]], Manifest]) -> str:
    """Why the API server does not let one spec take the place of another; empty if it does."""
    name = "update-" + re.sub(r"[^a-z0-9]+", "-", update.title.lower()).strip("-")
    made = manifest(update.before, {"name": name})
    created = kubectl("create", "-f", "-", stdin=json.dumps(made))
    assert created.returncode == 0, created.stderr
    try:
        replaced = kubectl("replace", "-f", "-", stdin=json.dumps(manifest(update.after, {"name": name})))
        return replaced.stderr if replaced.returncode else ""
    finally:
        assert kubectl("delete", str(made["kind"]), name).returncode == 0


def _judge(raw: object, kind: type[T], validate: Callable[[T], list[Problem]]) -> list[Problem]:
    decoded = decode(raw, kind)
    return decoded if isinstance(decoded, list) else validate(decoded)
