"""Namespaces, leases and ServiceCIDRs, as a real API server writes, checks and shows them."""

from __future__ import annotations

from typing import Any

import pytest

from cidrella.apiserver.kinds.namespaces import begin_deletion, end_deletion
from tests.apiserver.kinds import created, kind, refused, row, updated, with_status

Json = dict[str, Any]

NAMESPACES = kind("namespaces")
LEASES = kind("leases", "coordination.k8s.io")
CIDRS = kind("servicecidrs", "networking.k8s.io")
LABEL = "kubernetes.io/metadata.name"


class TestNamespaces:
    """Namespaces."""

    def test_new(self) -> None:
        """A new one is active, has a label with its name, and waits for what is in it, whatever it says."""
        metadata = {"name": "n", "labels": {LABEL: "other", "a": "b"}}
        found = created(NAMESPACES, metadata=metadata, spec={"finalizers": ["a.b/c"]}, status={"phase": "Terminating"})
        assert found["metadata"]["labels"] == {LABEL: "n", "a": "b"}
        assert found["spec"] == {"finalizers": ["a.b/c", "kubernetes"]}
        assert found["status"] == {"phase": "Active"}
        assert created(NAMESPACES, spec={"finalizers": ["kubernetes"]})["spec"] == {"finalizers": ["kubernetes"]}

    def test_updates(self) -> None:
        """A write changes neither finalizers nor status, nor the label."""
        old = created(NAMESPACES)
        new, faults = updated(
            NAMESPACES, old, metadata={"name": "x"}, spec={"finalizers": ["a.b/c"]}, status={"phase": "Terminating"}
        )
        assert faults == []
        assert new == old

    def test_status(self) -> None:
        """A write to the status changes it and metadata, and the phase goes with the deletion."""
        old = created(NAMESPACES)
        condition = {"type": "x", "status": "True"}
        new, faults = with_status(
            NAMESPACES, old, spec={}, status={"phase": "Active", "conditions": [condition]}, metadata={"name": "x"}
        )
        assert faults == []
        assert new["spec"] == {"finalizers": ["kubernetes"]}
        assert new["metadata"]["labels"] == {LABEL: "x"}
        assert new["status"]["conditions"] == [{**condition, "lastTransitionTime": None}]
        assert with_status(NAMESPACES, old, status={}) == (old, [])
        assert with_status(NAMESPACES, old, status={"phase": "Terminating"})[1] == [
            "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
        ]
        begin_deletion(old, "2020-01-01T00:00:00Z")
        assert with_status(NAMESPACES, old, status={"phase": "Active"})[1] == [
            "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"
        ]

    @pytest.mark.parametrize(("finalizer", "faults"), [("a.b/c", 0), ("zz", 1), ("bad value", 2)])
    def test_finalizers(self, finalizer: str, faults: int) -> None:
        """Finalizers of a namespace have a domain."""
        told = refused(NAMESPACES, spec={"finalizers": [finalizer]})
        assert len(told) == faults
        assert all(each.startswith(f'spec.finalizers: Invalid value: "{finalizer}": ') for each in told)

    def test_finalizers_in_metadata(self) -> None:
        """A write to the namespace finds those of metadata twice, one to its status once."""
        old = created(NAMESPACES)
        metadata = {"name": "x", "finalizers": ["zz"]}
        told = updated(NAMESPACES, old, metadata=metadata)[1]
        assert len(told) == 2
        assert with_status(NAMESPACES, old, metadata=metadata, status={"phase": "Active"})[1] == told[:1]

    def test_deletion(self) -> None:
        """It goes when nothing is in it any more, and nobody else has anything to do."""
        found = created(NAMESPACES)
        begin_deletion(found, "2020-01-01T00:00:00Z")
        begin_deletion(found, "2021-01-01T00:00:00Z")
        assert found["metadata"]["deletionTimestamp"] == "2020-01-01T00:00:00Z"
        assert found["status"]["phase"] == "Terminating"
        assert end_deletion(found)
        assert found["spec"] == {}

    def test_deletion_that_waits(self) -> None:
        """Finalizers of others keep it, those in metadata as well."""
        found = created(NAMESPACES, spec={"finalizers": ["a.b/c"]})
        assert not end_deletion(found)
        assert found["spec"] == {"finalizers": ["a.b/c"]}
        found = created(NAMESPACES, metadata={"name": "x", "finalizers": ["a.b/c"]})
        assert not end_deletion(found)

    def test_columns(self) -> None:
        """The phase is shown, and selected by."""
        found = created(NAMESPACES)
        assert row(NAMESPACES, found)[0] == NAMESPACES.fields["status.phase"](found) == "Active"

    def test_name(self) -> None:
        """Its name is a label of a DNS name."""
        assert NAMESPACES.name_fault is not None
        assert NAMESPACES.name_fault("n.3") == ["must not contain dots"]


class TestLeases:
    """Leases."""

    def test_numbers(self) -> None:
        """Its time is more than nothing, and it does not change hands backwards; on updates likewise."""
        spec = {"leaseDurationSeconds": 0, "leaseTransitions": -1}
        told = [
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
            "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
        ]
        assert refused(LEASES, spec=spec) == told
        assert updated(LEASES, created(LEASES), spec=spec)[1] == told

    def test_elections_of_the_server(self) -> None:
        """Fields for elections that the server holds are not kept."""
        assert created(LEASES, spec={"strategy": "x", "preferredHolder": "y"})["spec"] == {}

    def test_columns(self) -> None:
        """The holder is shown."""
        assert row(LEASES, created(LEASES, spec={"holderIdentity": "me"}))[0] == "me"
        assert row(LEASES, created(LEASES))[0] == ""


class TestServiceCIDRs:
    """ServiceCIDRs."""

    @pytest.mark.parametrize(
        ("cidrs", "told"),
        [
            ([], ["spec.cidrs: Required value: at least one CIDR required"]),
            (["10.0.0.0/24", "fd00::/112"], []),
            (
                ["10.0.0.1/24", "10.0.1.0/24"],
                [
                    'spec.cidrs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length',
                    'spec.cidrs: Invalid value: ["10.0.0.1/24","10.0.1.0/24"]: may specify no more than one IP for '
                    "each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
                ],
            ),
            (
                ["10.0.0.0/24", "10.0.1.0/24", "y"],
                [
                    'spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/24","10.0.1.0/24","y"]}: '
                    "may only hold up to 2 values"
                ],
            ),
            (
                ["10.0.0.0/24", "x"],
                ['spec.cidrs[1]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'],
            ),
            (
                ["FD00::/112"],
                ['spec.cidrs[0]: Invalid value: "FD00::/112": must be in canonical form ("fd00::/112")'],
            ),
            (
                ["FD00::1/112"],
                ['spec.cidrs[0]: Invalid value: "FD00::1/112": must not have bits set beyond the prefix length'],
            ),
        ],
    )
    def test_ranges(self, cidrs: list[str], told: list[str]) -> None:
        """One range, or one of each family, in the one form that each has."""
        assert refused(CIDRS, spec={"cidrs": cidrs}) == told

    @pytest.mark.parametrize(
        ("before", "after", "told"),
        [
            (["10.1.0.0/24"], ["10.1.0.0/24", "fd00::/112"], []),
            (
                ["10.1.0.0/24"],
                ["10.2.0.0/24", "x"],
                [
                    'spec.cidrs[0]: Invalid value: "10.2.0.0/24": field is immutable',
                    'spec.cidrs[1]: Invalid value: "x": '
                    "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
                ],
            ),
            (["10.1.0.0/24"], ["x"], ['spec.cidrs[0]: Invalid value: "x": field is immutable']),
            (
                ["10.1.0.0/24", "fd00::/112"],
                ["10.1.0.0/24"],
                ['spec.cidrs: Invalid value: ["10.1.0.0/24"]: field is immutable'],
            ),
            (["10.1.0.0/24"], [], ["spec.cidrs: Invalid value: []: field is immutable"]),
            (["10.1.0.0/24"], None, ["spec.cidrs: Invalid value: null: field is immutable"]),
            (
                ["10.1.0.0/24"],
                ["10.1.0.0/24", "fd00::/112", "y"],
                ['spec.cidrs: Invalid value: ["10.1.0.0/24","fd00::/112","y"]: field is immutable'],
            ),
            (
                ["10.1.0.0/24", "fd00::/112"],
                ["fd00::/112", "10.1.0.0/24"],
                [
                    'spec.cidrs[0]: Invalid value: "fd00::/112": field is immutable',
                    'spec.cidrs[1]: Invalid value: "10.1.0.0/24": field is immutable',
                ],
            ),
        ],
    )
    def test_changes(self, before: list[str], after: list[str] | None, told: list[str]) -> None:
        """What is there stays; a range of the other family may come."""
        old = created(CIDRS, spec={"cidrs": before})
        assert updated(CIDRS, old, spec={"cidrs": after})[1] == told

    def test_status(self) -> None:
        """A new one has no status, and a write to it changes nothing else: metadata neither."""
        spec = {"cidrs": ["10.1.0.0/24"]}
        condition = {"type": "Ready", "status": "True"}
        old = created(CIDRS, spec=spec, status={"conditions": [condition]})
        assert old["status"] == {}
        old["metadata"]["labels"] = {"a": "b"}
        metadata = {"name": "x", "labels": {"c": "d"}, "annotations": {"e": "f"}}
        new, faults = with_status(CIDRS, old, metadata=metadata, spec={}, status={"conditions": [condition]})
        assert faults == []
        assert (new["metadata"], new["spec"]) == (old["metadata"], spec)
        assert new["status"]["conditions"] == [{**condition, "lastTransitionTime": None, "reason": "", "message": ""}]

    def test_columns(self) -> None:
        """The ranges are shown."""
        assert row(CIDRS, created(CIDRS, spec={"cidrs": ["10.1.0.0/24", "fd00::/112"]}))[0] == "10.1.0.0/24,fd00::/112"
