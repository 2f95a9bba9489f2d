"""`kubectl apply -k deploy/` on the real API server: accepted as it is, and allowing what is needed, no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.deployment import assert_applies, assert_confined, assert_documented_applies
from tests.real.rbac import DEPLOY, account_token, apply_deploy, controller_account, deployed
from tests.test_docs import DOCS, yaml_blocks
from tests.testenv.client import ApiError, Client

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import Kubectl
    from tests.testenv.api import Api
    from tests.testenv.client import Json
    from tests.testenv.cluster import Cluster

ACCOUNT = "system:serviceaccount:kube-system:cidrella"
GROUPS = ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"]
DEPLOYMENT = "/apis/apps/v1/namespaces/kube-system/deployments/cidrella"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

KUSTOMIZATIONS = [text for text in yaml_blocks(DOCS / "install.md") if text.startswith("# kustomization.yaml")]

# Verb, resource with its group and subresource, name, namespace.
NEEDED = (
    "get nodes",
    "list nodes",
    "watch nodes",
    "patch nodes",
    "get clustercidrs.networking.x-k8s.io",
    "list clustercidrs.networking.x-k8s.io",
    "watch clustercidrs.networking.x-k8s.io",
    "create clustercidrs.networking.x-k8s.io",
    "delete clustercidrs.networking.x-k8s.io",
    "patch clustercidrs.networking.x-k8s.io",
    "patch clustercidrs.networking.x-k8s.io/status",
    "get clustercidrconfigs.networking.x-k8s.io",
    "list clustercidrconfigs.networking.x-k8s.io",
    "watch clustercidrconfigs.networking.x-k8s.io",
    "patch clustercidrconfigs.networking.x-k8s.io",
    "patch clustercidrconfigs.networking.x-k8s.io/status",
    "get customresourcedefinitions.apiextensions.k8s.io clustercidrs.networking.x-k8s.io",
    "get customresourcedefinitions.apiextensions.k8s.io clustercidrconfigs.networking.x-k8s.io",
    "list servicecidrs.networking.k8s.io",
    "watch servicecidrs.networking.k8s.io",
    "list services",
    "watch services",
    "create leases.coordination.k8s.io @kube-system",
    "get leases.coordination.k8s.io cidrella @kube-system",
    "patch leases.coordination.k8s.io cidrella @kube-system",
    "get leases.coordination.k8s.io cidrella-alone @kube-system",
    "patch leases.coordination.k8s.io cidrella-alone @kube-system",
    "create events.events.k8s.io @default",
    "patch events.events.k8s.io @default",
    "list events.events.k8s.io @default",
    "watch events.events.k8s.io @default",
)
REFUSED = (
    "create nodes",
    "update nodes",
    "delete nodes",
    "deletecollection nodes",
    "patch nodes/status",
    "get nodes/proxy",
    "update clustercidrs.networking.x-k8s.io",
    "deletecollection clustercidrs.networking.x-k8s.io",
    "create clustercidrconfigs.networking.x-k8s.io",
    "update clustercidrconfigs.networking.x-k8s.io",
    "delete clustercidrconfigs.networking.x-k8s.io",
    "deletecollection clustercidrconfigs.networking.x-k8s.io",
    "update customresourcedefinitions.apiextensions.k8s.io clustercidrs.networking.x-k8s.io",
    "get customresourcedefinitions.apiextensions.k8s.io others.example.com",
    "list customresourcedefinitions.apiextensions.k8s.io",
    "patch servicecidrs.networking.k8s.io",
    "get leases.coordination.k8s.io kube-controller-manager @kube-system",
    "update leases.coordination.k8s.io kube-controller-manager @kube-system",
    "patch leases.coordination.k8s.io kube-scheduler @kube-system",
    "update leases.coordination.k8s.io cidrella @kube-system",
    "delete leases.coordination.k8s.io cidrella @kube-system",
    "update leases.coordination.k8s.io cidrella-alone @kube-system",
    "delete leases.coordination.k8s.io cidrella-alone @kube-system",
    "patch leases.coordination.k8s.io cidrella-services-alone @kube-system",
    "list leases.coordination.k8s.io @kube-system",
    "create leases.coordination.k8s.io @kube-node-lease",
    "patch leases.coordination.k8s.io cidrella @kube-node-lease",
    "get events.events.k8s.io @default",
    "delete events.events.k8s.io @default",
    "list events.events.k8s.io @kube-system",
    "create events.events.k8s.io @kube-system",
    "get secrets @kube-system",
    "list secrets",
    "get configmaps @kube-system",
    "create serviceaccounts/token @kube-system",
    "list pods",
    "create pods @kube-system",
    "get services @default",
    "create services @default",
    "patch services @default",
    "delete services @default",
    "create tokenreviews.authentication.k8s.io",
    "create subjectaccessreviews.authorization.k8s.io",
    "impersonate users",
    "escalate clusterroles.rbac.authorization.k8s.io",
)


@pytest.fixture(scope="module")
def installed(cluster: Cluster) -> Cluster:
    """Return the cluster, with all of `deploy/` applied."""
    apply_deploy(cluster)
    return cluster


@pytest.fixture(scope="module")
def pod(installed: Cluster) -> Json:
    """Return the spec of the Deployment's Pods as the API server stored it, defaults and all."""
    spec: Json = installed.admin.get(DEPLOYMENT)["spec"]["template"]["spec"]
    return spec


def test_it_applies_without_a_warning(cluster: Cluster, kubectl: Kubectl) -> None:
    """The API server takes all of it as it is, tried first or not, and a second time, too."""
    assert_applies(kubectl, DEPLOY)
    assert apply_deploy(cluster).stderr == ""
    assert apply_deploy(cluster).stderr == ""


@pytest.mark.parametrize("number", range(len(KUSTOMIZATIONS)))
def test_documented_kustomizations_apply_without_a_warning(
    installed: Cluster, kubectl: Kubectl, tmp_path: Path, number: int
) -> None:
    """O5: what the page on installing offers beside the plain installation is accepted as it stands there."""
    assert installed.admin.get(DEPLOYMENT)["spec"]["replicas"] == 2
    assert_documented_applies(kubectl, KUSTOMIZATIONS[number], tmp_path)


@pytest.mark.parametrize("action", NEEDED)
def test_what_is_needed_is_allowed(installed: Cluster, action: str) -> None:
    """The API server lets the controller's account do what the controller does."""
    assert may(installed, action)


@pytest.mark.parametrize("action", REFUSED)
def test_nothing_else_is_allowed(installed: Cluster, action: str) -> None:
    """The account cannot do what the controller has no business with."""
    assert not may(installed, action)


def test_the_rules_name_no_wildcard_and_no_secret(cluster: Cluster) -> None:
    """Every right is written out: no group, resource or verb is a star."""
    rules = [rule for each in deployed(cluster) for rule in each.get("rules", ())]
    assert len(rules) == 10
    assert "*" not in {word for rule in rules for words in rule.values() for word in words}


def test_the_account_is_held_to_its_lease(cluster: Cluster) -> None:
    """F5: another's Lease cannot be touched; its own can be made and renewed."""
    controller_account(cluster, "another")
    if any(each["metadata"]["name"] == "cidrella" for each in cluster.admin.items(LEASES)):
        cluster.admin.delete(f"{LEASES}/cidrella")  # left by a controller of another test
    client = Client(cluster.server, cluster.authority.certificate, token=account_token(cluster, "another"))
    try:
        with pytest.raises(ApiError) as refused:
            client.get(f"{LEASES}/kube-controller-manager")
        assert refused.value.reason == "Forbidden"
        lease = {"metadata": {"name": "cidrella"}, "spec": {"holderIdentity": "one"}}
        client.create(LEASES, lease)
        renewed = client.patch(f"{LEASES}/cidrella", {"spec": {"holderIdentity": "two"}})
        assert renewed["spec"]["holderIdentity"] == "two"
    finally:
        client.close()
        cluster.admin.delete(f"{LEASES}/cidrella")


class TestTheDeployment:
    """What lets it start on a cluster where no node has a Pod range yet, and keeps it safe."""

    def test_needs_no_pod_network(self, pod: Json) -> None:
        """The node's network and the node's resolver."""
        assert pod["hostNetwork"] is True
        assert pod["dnsPolicy"] == "Default"

    @pytest.mark.parametrize(
        ("taint", "effect"),
        [
            ("node.kubernetes.io/not-ready", "NoSchedule"),
            ("node.kubernetes.io/not-ready", "NoExecute"),
            ("node.kubernetes.io/network-unavailable", "NoSchedule"),
            ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
            ("node-role.kubernetes.io/control-plane", "NoSchedule"),
        ],
    )
    def test_tolerates_a_node_that_waits_for_it(self, pod: Json, taint: str, effect: str) -> None:
        """Taints that a node has because it lacks a Pod range do not keep the giver of ranges away."""
        assert any(
            each["key"] == taint and each["operator"] == "Exists" and each.get("effect", effect) == effect
            for each in pod["tolerations"]
        )

    def test_runs_with_nothing_it_does_not_need(self, pod: Json) -> None:
        """Not as root, on a root file system that cannot be written, with no capability."""
        assert_confined(pod)

    def test_replicas_never_meet_on_a_node(self, pod: Json) -> None:
        """They would want the same port; an update makes room before it fills it."""
        (term,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["topologyKey"] == "kubernetes.io/hostname"


def may(cluster: Api, action: str, account: str = ACCOUNT) -> bool:
    """Whether the API server would let an account of kube-system do something; the controller's, unless said."""
    verb, target, *rest = action.split()
    whole, _, subresource = target.partition("/")
    resource, _, group = whole.partition(".")
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    for word in rest:
        attributes["namespace" if word.startswith("@") else "name"] = word.removeprefix("@")
    review = {"spec": {"user": account, "groups": GROUPS, "resourceAttributes": attributes}}
    status = cluster.admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]
    assert not status.get("evaluationError"), status
    return bool(status["allowed"])
