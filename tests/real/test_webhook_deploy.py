"""`kubectl apply -k deploy/webhook` on the real API server: accepted as it is, and allowing what is needed, no more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.real.deployment import assert_applies, assert_confined, assert_documented_applies
from tests.real.rbac import DEPLOY, apply_directory, deployed
from tests.real.test_deploy import may
from tests.real.webhook import ACCOUNT, CONFIGURATION, CRD, WEBHOOK
from tests.test_docs import DOCS, yaml_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import Kubectl
    from tests.testenv.client import Json
    from tests.testenv.cluster import Cluster

DEPLOYMENT = "/apis/apps/v1/namespaces/kube-system/deployments/cidrella-webhook"
SECRET = "/api/v1/namespaces/kube-system/secrets/cidrella-webhook"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
KUSTOMIZATIONS = [text for text in yaml_blocks(DOCS / "services.md") if text.startswith("# kustomization.yaml")]

# Verb, resource with its group and subresource, name, namespace.
NEEDED = (
    "get services",
    "list services",
    "watch services",
    "list servicecidrs.networking.k8s.io",
    "watch servicecidrs.networking.k8s.io",
    "list ipaddresses.networking.k8s.io",
    "watch ipaddresses.networking.k8s.io",
    "get rangeallocations.cidrella.dev",
    "list rangeallocations.cidrella.dev",
    "create rangeallocations.cidrella.dev",
    "update rangeallocations.cidrella.dev",
    "create events.events.k8s.io @shop",
    "patch events.events.k8s.io @shop",
    "create leases.coordination.k8s.io @kube-system",
    "get leases.coordination.k8s.io cidrella-services @kube-system",
    "patch leases.coordination.k8s.io cidrella-services @kube-system",
    "get secrets cidrella-webhook @kube-system",
    "patch secrets cidrella-webhook @kube-system",
    "get mutatingwebhookconfigurations.admissionregistration.k8s.io cidrella-webhook",
    "patch mutatingwebhookconfigurations.admissionregistration.k8s.io cidrella-webhook",
)
REFUSED = (
    "create services @default",
    "update services @default",
    "patch services @default",
    "delete services @default",
    "patch services/status @default",
    "create ipaddresses.networking.k8s.io",
    "delete ipaddresses.networking.k8s.io",
    "patch servicecidrs.networking.k8s.io",
    "watch rangeallocations.cidrella.dev",
    "patch rangeallocations.cidrella.dev",
    "delete rangeallocations.cidrella.dev",
    "deletecollection rangeallocations.cidrella.dev",
    "list events.events.k8s.io @shop",
    "delete events.events.k8s.io @shop",
    "patch leases.coordination.k8s.io cidrella @kube-system",
    "update leases.coordination.k8s.io kube-scheduler @kube-system",
    "list leases.coordination.k8s.io @kube-system",
    "create leases.coordination.k8s.io @default",
    "create secrets @kube-system",
    "list secrets @kube-system",
    "watch secrets @kube-system",
    "get secrets another @kube-system",
    "delete secrets cidrella-webhook @kube-system",
    "get secrets cidrella-webhook @default",
    "patch mutatingwebhookconfigurations.admissionregistration.k8s.io another",
    "list mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "create mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "patch validatingwebhookconfigurations.admissionregistration.k8s.io cidrella-webhook",
    "patch nodes",
    "list nodes",
    "list pods",
    "create serviceaccounts/token @kube-system",
    "impersonate users",
    "escalate clusterroles.rbac.authorization.k8s.io",
)


@pytest.fixture(scope="module")
def installed(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with all of `deploy/webhook`, and no webhook that answers. Other tests find none of it."""
    apply_directory(cluster, WEBHOOK, CRD)
    yield cluster
    cluster.admin.delete(CONFIGURATION)
    cluster.admin.delete(SECRET)


@pytest.fixture(scope="module")
def pod(installed: Cluster) -> Json:
    """Return the spec of the Deployment's Pods as the API server stored it, defaults and all."""
    spec: Json = installed.admin.get(DEPLOYMENT)["spec"]["template"]["spec"]
    return spec


def test_it_applies_without_a_warning(installed: Cluster, kubectl: Kubectl) -> None:
    """The API server takes all of it as it is, tried first or not, and a second time, too."""
    assert_applies(kubectl, WEBHOOK)
    assert apply_directory(installed, WEBHOOK, CRD).stderr == ""


@pytest.mark.parametrize("number", range(len(KUSTOMIZATIONS)))
def test_documented_kustomizations_apply_without_a_warning(
    installed: Cluster, kubectl: Kubectl, tmp_path: Path, number: int
) -> None:
    """What the page on Services offers beside the plain installation is accepted as it stands there."""
    assert installed.admin.get(DEPLOYMENT)["spec"]["replicas"] == 2
    assert_documented_applies(kubectl, KUSTOMIZATIONS[number], tmp_path)


def test_what_the_webhook_wrote_stays(installed: Cluster) -> None:
    """Applied again, neither its CA in the configuration nor what is in its Secret is lost."""
    bundle = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="
    webhook = {"name": "services.cidrella.dev", "clientConfig": {"caBundle": bundle}}
    installed.admin.patch(CONFIGURATION, {"webhooks": [webhook]}, content_type=STRATEGIC_MERGE_PATCH)
    installed.admin.patch(SECRET, {"data": None})
    installed.admin.patch(SECRET, {"data": {"ca.crt": bundle}})
    apply_directory(installed, WEBHOOK, CRD)
    (webhook,) = installed.admin.get(CONFIGURATION)["webhooks"]
    assert webhook["clientConfig"]["caBundle"] == bundle
    assert installed.admin.get(SECRET)["data"] == {"ca.crt": bundle}


@pytest.mark.parametrize("action", NEEDED)
def test_what_is_needed_is_allowed(installed: Cluster, action: str) -> None:
    """The API server lets the webhook's account do what the webhook does."""
    assert may(installed, action, ACCOUNT)


@pytest.mark.parametrize("action", REFUSED)
def test_nothing_else_is_allowed(installed: Cluster, action: str) -> None:
    """The account cannot do what the webhook has no business with."""
    assert not may(installed, action, ACCOUNT)


def test_the_rules_name_no_wildcard(cluster: Cluster) -> None:
    """Every right is written out: no group, resource or verb is a star."""
    rules = [rule for each in deployed(cluster, WEBHOOK) for rule in each.get("rules", ())]
    assert len(rules) == 8
    assert "*" not in {word for rule in rules for words in rule.values() for word in words}


def test_it_goes_with_the_controller(cluster: Cluster, tmp_path: Path) -> None:
    """One kustomization may name both: they have no object in common."""
    both = [os.path.relpath(each, tmp_path.resolve()) for each in (DEPLOY, WEBHOOK)]
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({"resources": both}))
    names = [(each["kind"], each["metadata"]["name"]) for each in deployed(cluster, tmp_path)]
    assert ("Deployment", "cidrella") in names
    assert ("Deployment", "cidrella-webhook") in names


class TestTheDeployment:
    """What keeps it safe, and keeps it there."""

    def test_runs_with_nothing_it_does_not_need(self, pod: Json) -> None:
        """Not as root, on a root file system that cannot be written, no capability, not on the node's network."""
        assert_confined(pod)
        assert not pod.get("hostNetwork")

    def test_the_service_leads_to_it(self, installed: Cluster, pod: Json) -> None:
        """From the configuration over the Service to the port of the container, by names that exist."""
        (webhook,) = installed.admin.get(CONFIGURATION)["webhooks"]
        asked = webhook["clientConfig"]["service"]
        service = installed.admin.get(f"/api/v1/namespaces/{asked['namespace']}/services/{asked['name']}")
        (port,) = service["spec"]["ports"]
        (container,) = pod["containers"]
        labels = installed.admin.get(DEPLOYMENT)["spec"]["template"]["metadata"]["labels"]
        assert port["port"] == asked["port"]
        assert port["targetPort"] in [each["name"] for each in container["ports"]]
        assert service["spec"]["selector"].items() <= labels.items()

    def test_nobody_waits_long_and_nobody_is_refused(self, installed: Cluster) -> None:
        """B7: where it is away a Service is created all the same, soon; a dry run is known to be one."""
        (webhook,) = installed.admin.get(CONFIGURATION)["webhooks"]
        assert webhook["failurePolicy"] == "Ignore"
        assert webhook["timeoutSeconds"] == 5
        assert webhook["sideEffects"] == "NoneOnDryRun"
        assert webhook["reinvocationPolicy"] == "Never"
