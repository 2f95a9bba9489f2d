"""Every setting of a command that runs for long, declared once: its name, what it can be, its default and why.

The command line, the environment variables, the config file and the help all come from the table of the command. A
field's name is the flag's, with underscores: `cluster_cidr` is `--cluster-cidr`, `CIDRELLA_CLUSTER_CIDR`, and
`cluster-cidr` in a file. What all such commands have is in `CommonSettings`, those of `cidrella run` in `Settings`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Self

from cidrella.app.setting import TABLE, Group, Setting, setting
from cidrella.app.values import (
    ADDRESS,
    ADDRESS_OR_NONE,
    DURATION,
    DURATION_OR_ZERO,
    FILE,
    GATES,
    MASK,
    RANGES,
    TEXT,
    TRUTH,
    Address,
    choice,
)
from cidrella.kube.campaign import ElectionSettings
from cidrella.model.flags import AllocatorType, FlagError, IpamFlags, read_ipam_flags
from cidrella.model.syntax import name_fault

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class CommonSettings:
    """What every such command can be told. `checked` says whether it makes sense as a whole."""

    COMMAND: ClassVar[str]
    """As it is typed."""
    OPPOSITES: ClassVar[Mapping[str, str]] = {}
    """Flags that say the opposite of another, by its name."""

    kubeconfig: str = setting(
        FILE,
        "",
        Group.CLUSTER,
        "How to reach the cluster. Without it: $KUBECONFIG; else, in a Pod, its ServiceAccount; else ~/.kube/config.",
    )
    context: str = setting(TEXT, "", Group.CLUSTER, "The context of the kubeconfig, if not its current one.")
    api_timeout: float = setting(
        DURATION, "15s", Group.CLUSTER, "How long a request may take; a watch may take any time."
    )
    """Long enough for a busy API server to list 500 nodes, short enough to notice a dead connection."""

    leader_elect: bool = setting(
        TRUTH, "true", Group.ELECTION, "Act only while holding a Lease, so that several replicas can run."
    )
    """Two writers by mistake would give one block twice; an election by mistake costs one object."""
    leader_elect_lease_duration: float = setting(
        DURATION, "15s", Group.ELECTION, "How long others wait after the leader's last renewal before they take over."
    )
    """This and the next two as in kube-controller-manager, so that what is known about one holds for the other."""
    leader_elect_renew_deadline: float = setting(
        DURATION, "10s", Group.ELECTION, "How long the leader tries to renew before it stops leading."
    )
    leader_elect_retry_period: float = setting(DURATION, "2s", Group.ELECTION, "The pause between two attempts.")
    leader_elect_resource_lock: str = setting(
        choice("leases"), "leases", Group.ELECTION, "What the lock is made of. Leases are all there is."
    )
    leader_elect_resource_name: str = setting(TEXT, "cidrella", Group.ELECTION, "The name of the Lease.")
    leader_elect_resource_namespace: str = setting(TEXT, "kube-system", Group.ELECTION, "The namespace of the Lease.")
    """The one namespace that every cluster has, and that people watch."""

    bind_address: Address = setting(  # noqa: RUF009 - an Address cannot be changed
        ADDRESS,
        "127.0.0.1:10290",
        Group.OPERATION,
        "Where /healthz, /readyz and /metrics are served. Port 0 picks a free one and logs it; no host is every "
        "interface.",
    )
    """Loopback, since the answers are for anyone who can connect. The port is off those that Kubernetes' own components
    take on the same host (10248 to 10260), and below those that are handed out at random."""
    log_level: str = setting(
        choice("debug", "info", "warning", "error"),
        "info",
        Group.OPERATION,
        "The least that is logged. -v N is understood, too: from 4 on it is debug, below it is info.",
    )
    log_format: str = setting(
        choice("auto", "json", "text"), "auto", Group.OPERATION, "How to log. auto: text on a terminal, else JSON."
    )
    config: str = setting(
        FILE, "", Group.OPERATION, "YAML with settings by their flags' names, such as 'leader-elect: false'."
    )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was read in another way than it was written. Raises `FlagError`."""
        return ()

    @property
    def election(self) -> ElectionSettings | None:
        """The Lease and its times, or None without an election. Raises `FlagError` where they do not go together."""
        return self._lease() if self.leader_elect else None

    def _lease(self) -> ElectionSettings:
        """The Lease and its times, as the flags say. Raises `FlagError`."""
        self._check_lease_name()
        try:
            return ElectionSettings(
                namespace=self.leader_elect_resource_namespace,
                name=self.leader_elect_resource_name,
                lease_duration=self.leader_elect_lease_duration,
                renew_deadline=self.leader_elect_renew_deadline,
                retry_period=self.leader_elect_retry_period,
            )
        except ValueError as error:
            raise FlagError(
                "--leader-elect-lease-duration, --leader-elect-renew-deadline and --leader-elect-retry-period "
                f"do not go together: {error}"
            ) from error

    def _check_lease_name(self) -> None:
        name, namespace = self.leader_elect_resource_name, self.leader_elect_resource_namespace
        for flag, text in (("--leader-elect-resource-name", name), ("--leader-elect-resource-namespace", namespace)):
            if fault := name_fault(text):
                raise FlagError(f"{flag}: {text!r} {fault}")

    def checked(self) -> Self:
        """The same, if no two of its settings contradict each other. Raises `FlagError`."""
        _ = self.warnings, self.election
        return self


@dataclass(frozen=True, kw_only=True)
class Settings(CommonSettings):
    """What `cidrella run` was told."""

    COMMAND: ClassVar[str] = "run"
    OPPOSITES: ClassVar[Mapping[str, str]] = {"no-wait-for-cloud-provider": "wait-for-cloud-provider"}

    cluster_cidr: str = setting(
        RANGES, "", Group.NODES, "Ranges for Pods: one, or one of each family. Kept in the cluster as a ClusterCIDR."
    )
    """None, for pools in the cluster are the way to say it; the flag is for those who had the built-in allocator."""
    node_cidr_mask_size: int = setting(
        MASK,
        "0",
        Group.NODES,
        "The length of a node's block, where --cluster-cidr is one range. Not given: as the next two say.",
    )
    node_cidr_mask_size_ipv4: int = setting(
        MASK, "0", Group.NODES, "The length of a node's IPv4 block in --cluster-cidr. Not given: 24."
    )
    """0 tells a mask that was given from one that was not: one for a family without a range is a mistake (F2)."""
    node_cidr_mask_size_ipv6: int = setting(
        MASK, "0", Group.NODES, "The length of a node's IPv6 block in --cluster-cidr. Not given: 64."
    )
    service_cluster_ip_range: str = setting(
        RANGES,
        "",
        Group.NODES,
        "Ranges of Services, which are never given to nodes: one, or one of each family. Where the cluster has "
        "ServiceCIDR objects, these are honoured without it.",
    )
    allocate_node_cidrs: bool = setting(
        TRUTH, "true", Group.NODES, "Give nodes blocks. If false: watch and report, and change no node."
    )
    """Where kube-controller-manager has false: giving blocks is one of its many tasks, and the only one here (F8)."""
    cidr_allocator_type: str = setting(
        TEXT,
        AllocatorType.MULTI.value,
        Group.NODES,
        "Where ranges come from: MultiCIDRRangeAllocator for pools in the cluster, RangeAllocator for --cluster-cidr "
        "alone, the old way.",
    )
    wait_for_cloud_provider: bool = setting(
        TRUTH,
        "true",
        Group.NODES,
        "Delay allocation for a node with the taint node.cloudprovider.kubernetes.io/uninitialized, if labels that are "
        "not set yet could make another pool match it.",
    )
    """A block cannot be taken back once a node has it, while waiting costs a node seconds (N10)."""
    wait_for_cloud_provider_timeout: float = setting(
        DURATION_OR_ZERO,
        "60s",
        Group.NODES,
        "Maximum delay for such a node, from when this replica first sees it. 0 disables the delay.",
    )
    """Cloud providers take seconds. A provider that needs the Pod network to start waits for its own node, and must
    not wait for ever (N10)."""
    feature_gates: str = setting(
        GATES, "", Group.NODES, "Gates to switch: MultiCIDRRangeAllocator (on), ServiceIPStaticSubrange (on)."
    )

    tls_cert_file: str = setting(
        FILE,
        "",
        Group.OPERATION,
        "The certificate with which everything at --bind-address speaks TLS, with its chain, in PEM; read again when "
        "it changes. Not given: plain HTTP.",
    )
    """None, for only this machine can connect, and probes would have to be told. Elsewhere, what people show to see the
    page should not be for everybody on the way."""
    tls_private_key_file: str = setting(FILE, "", Group.OPERATION, "The key of --tls-cert-file, in PEM.")

    web: bool = setting(TRUTH, "true", Group.PAGE, "Serve the page and its API at --bind-address.")
    """It costs nothing while nobody looks, and where others could, they are asked who they are."""
    web_token_file: str = setting(
        FILE,
        "",
        Group.PAGE,
        "Show the page, its API and metrics only to who has the token in this file: at the login, or as a bearer "
        "token with each request. It is read again when it changes.",
    )
    """This or one of the next two is needed where --bind-address is not the loopback interface: else there is no page
    there. Health and readiness are for everybody."""
    web_password_file: str = setting(
        FILE, "", Group.PAGE, "Likewise, the password in this file, at the login. Both may be given."
    )
    web_auth: str = setting(
        choice("none", "kubernetes"),
        "none",
        Group.PAGE,
        "kubernetes: likewise, a token of the cluster whose bearer may list nodes. The API server is asked "
        "(deploy/page-auth has the rights for it).",
    )
    metrics_bind_address: Address | None = setting(  # noqa: RUF009 - as that of bind_address
        ADDRESS_OR_NONE,
        "",
        Group.PAGE,
        "Where /metrics is served instead, to everybody who can connect. Not given: at --bind-address, with the rest.",
    )
    """For those who let a Prometheus in, and nobody else."""

    @property
    def ipam(self) -> IpamFlags:
        """What the flags about node IPAM say. Raises `FlagError` (F2, F7)."""
        return read_ipam_flags(
            cluster_cidr=self.cluster_cidr,
            node_cidr_mask_size=self.node_cidr_mask_size,
            node_cidr_mask_size_ipv4=self.node_cidr_mask_size_ipv4,
            node_cidr_mask_size_ipv6=self.node_cidr_mask_size_ipv6,
            service_cluster_ip_range=self.service_cluster_ip_range,
            allocate_node_cidrs=self.allocate_node_cidrs,
            cidr_allocator_type=self.cidr_allocator_type,
            feature_gates=self.feature_gates,
            wait_for_cloud_provider=self.wait_for_cloud_provider,
            wait_for_cloud_provider_timeout=self.wait_for_cloud_provider_timeout,
        )

    @property
    def heartbeat(self) -> ElectionSettings | None:
        """The Lease by which a controller without leader election is found (F6); None with leader election.

        Times that do not go together are no error without an election: the defaults apply. Raises `FlagError`.
        """
        if self.leader_elect:
            return None
        self._check_lease_name()
        try:
            return self._lease().heartbeat
        except FlagError:
            name, namespace = self.leader_elect_resource_name, self.leader_elect_resource_namespace
            return ElectionSettings(namespace=namespace, name=name).heartbeat

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of the flags about node IPAM."""
        return self.ipam.warnings

    def checked(self) -> Self:
        """The same, if no two of its settings contradict each other. Raises `FlagError`."""
        super().checked()
        _ = self.heartbeat
        check_pair(self.tls_cert_file, self.tls_private_key_file)
        asks = {
            "--web-token-file": bool(self.web_token_file),
            "--web-password-file": bool(self.web_password_file),
            "--web-auth=kubernetes": self.web_auth == "kubernetes",
        }
        if not self.web and (given := [flag for flag, is_given in asks.items() if is_given]):
            raise FlagError(f"{given[0]} says who may see the page, and --web=false that there is none; leave out one")
        if self.bind_address == self.metrics_bind_address and self.bind_address.port:
            raise FlagError(f"--bind-address and --metrics-bind-address are both {self.bind_address}; leave out one")
        return self


def check_pair(certificate_file: str, key_file: str) -> None:
    """Raise `FlagError` where one is given without the other."""
    if bool(certificate_file) != bool(key_file):
        raise FlagError("--tls-cert-file and --tls-private-key-file go together; give both or neither")


def table(kind: type[CommonSettings] = Settings) -> Mapping[str, Setting]:
    """Every setting of a command by its name, in the order of the help."""
    rows = [Setting(each.name.replace("_", "-"), *each.metadata[TABLE]) for each in fields(kind)]
    order = list(Group)
    return {row.name: row for row in sorted(rows, key=lambda row: order.index(row.group))}
