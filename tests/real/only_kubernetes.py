"""What of these tests runs on the real API server alone, and why. All else runs on the embedded one as well.

A key is a file, or one test of it. `test_servers` holds the tests to this list, so that none is left out unseen.
"""

from __future__ import annotations

from types import MappingProxyType

_RIGHTS = "the embedded API keeps nobody from anything"
_WEBHOOK = "the embedded API asks no webhooks: it gives Services their addresses itself"
_OLDER = "flags that make Kubernetes an older one"
_ENVIRONMENT = "the test environment itself"
_IDENTITY = "who somebody is: client certificates, and tokens that Kubernetes makes"

ONLY_KUBERNETES = MappingProxyType(
    {
        "test_admission_rules.py": "what Kubernetes' own allocator does is what is compared with",
        "test_client.py::test_client_certificate": _IDENTITY,
        "test_client.py::test_service_account_token": _IDENTITY,
        "test_client.py::test_wrong_ca_is_refused": _IDENTITY,
        "test_client.py::test_in_a_pod_whose_token_is_replaced": _IDENTITY,
        "test_client.py::test_plugin_whose_token_is_refused_runs_again": _IDENTITY,
        "test_client.py::test_plugin_with_a_certificate": _IDENTITY,
        "test_client.py::test_without_the_right_to": _RIGHTS,
        "test_configs_crd.py::test_rights_of_an_older_version": _RIGHTS,
        "test_configs_crd.py::test_neither_rights_nor_the_kind": _RIGHTS,
        "test_deploy.py": _RIGHTS,
        "test_election.py::test_refusals_say_why": _RIGHTS,
        "test_environment.py": _ENVIRONMENT,
        "test_events.py::test_refusals_are_nobodys_trouble": _RIGHTS,
        "test_heartbeat.py::test_serves_without_the_right_to_write_the_heartbeat": _RIGHTS,
        "test_live.py::test_refused_in_words": _RIGHTS,
        "test_observing.py::test_documentation_of_what_else_to_set": "it needs no API server at all",
        "test_page.py::test_a_token_of_the_cluster": _IDENTITY,
        "test_page.py::test_without_the_right_to_list_services": _RIGHTS,
        "test_pod.py": "the Deployment's Pod, by the account and the rights of deploy/",
        "test_reflector.py::test_without_the_right_to": _RIGHTS,
        "test_release.py::test_refusal_for_one_pool_is_told": _RIGHTS,
        "test_servers.py": _ENVIRONMENT,
        "test_service_allocation.py::test_until_the_range_is_full": "an allocator beside the one under test",
        "test_service_repair.py": "a desk beside another: the embedded API has one of its own",
        "test_services_cli.py::test_ranges_and_services": "objects for addresses (IPAddress), which Kubernetes makes",
        "test_services_cli.py::test_stored_and_refused_ranges": "a corrupt RangeAllocation: the embedded API mends it",
        "test_services_cli.py::test_who_chose": "who manages which field (managedFields), and server-side apply",
        "test_services_cli.py::test_who_may_not_read": _RIGHTS,
        "test_webhook.py": _WEBHOOK,
        "test_webhook_clients.py": _WEBHOOK,
        "test_webhook_conditions.py": _WEBHOOK,
        "test_webhook_deploy.py": _WEBHOOK,
        "test_webhook_leaves.py": _WEBHOOK,
        "test_webhook_small.py": _WEBHOOK,
        "test_without_service_cidrs.py": _OLDER,
        "test_writes.py::test_a_policy_that_refuses": "a policy of the cluster that refuses a write",
        "test_writes.py::test_pool_deleted_under_a_write": "a policy of the cluster that refuses a write",
    }
)


def only_kubernetes(file: str, test: str) -> str:
    """Why a test runs on the real API server alone; empty where it runs on both."""
    return ONLY_KUBERNETES.get(file) or ONLY_KUBERNETES.get(f"{file}::{test}", "")
