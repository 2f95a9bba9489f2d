"""Desks that run beside a test, each in a thread of its own, under the rights that `deploy/webhook` gives."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Self, TypeVar

import yaml
from prometheus_client import CollectorRegistry

from cidrella.core.address import Address
from cidrella.core.prefix import Family, Prefix
from cidrella.kube.access import load_access
from cidrella.kube.client import Client
from cidrella.kube.election import ElectionSettings
from cidrella.serviceip.allocator import Want
from cidrella.serviceip.desk import LEASE, Desk, DeskSettings
from tests.real.rbac import DEPLOY, NAMESPACE, account_token
from tests.real.site import eventually
from tests.testenv.api import kubeconfig
from tests.testenv.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from tests.testenv.api import Api
    from tests.testenv.client import Json

    T = TypeVar("T")

RANGES = "/apis/cidrella.dev/v1alpha1/rangeallocations"
SERVICE_CIDRS = "/apis/networking.k8s.io/v1/servicecidrs"
IP_ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
ACCOUNT = "cidrella-webhook"
SHORT_LEASE = ElectionSettings(name=LEASE, lease_duration=3.0, renew_deadline=2.0, retry_period=0.5)
INTERVAL = 0.5
SETTLE = 1.0
_WEBHOOK = DEPLOY / "webhook"


def desk_account(cluster: Api, directory: Path, server: str = "") -> Path:
    """A kubeconfig file of the account of `deploy/webhook`, to the API server or what stands before it."""
    path = directory / f"{'behind' if server else 'desk'}.kubeconfig"
    user = {"token": account_token(cluster, ACCOUNT)}
    path.write_text(yaml.safe_dump(kubeconfig(server or cluster.server, cluster.authority.certificate, user)))
    return path


def install(cluster: Api) -> None:
    """The kind and the rights, without the webhook: the API server's own allocator gives addresses to Services."""
    cluster.admin.wait("/api/v1/namespaces", lambda found: NAMESPACE in found)
    rights = ("-f", _WEBHOOK / "rbac.yaml") if cluster.has_rights else ()
    cluster.kubectl("apply", *rights, "-f", _WEBHOOK / "crds")
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", "-f", _WEBHOOK / "crds")
    cluster.admin.get(RANGES)  # established, its storage is still made; the client waits for that


class RunningDesk:
    """A desk, between entering and leaving it. Leaving ends it in good order."""

    def __init__(self, config: Path, *ranges: str, client: type[Client] = Client, **settings: Any) -> None:
        told: dict[str, Any] = {"repair_interval": INTERVAL, "look_interval": INTERVAL, "settle": SETTLE} | settings
        self._settings = DeskSettings(
            ranges=tuple(map(Prefix.parse, ranges)),
            identity=told.pop("identity", "desk"),
            election=told.pop("election", None),
            **told,
        )
        self._config = config
        self._make_client = client
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._begun = threading.Event()
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._begun.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(20)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # it is raised where the test sees it
            self._error = error

    async def _main(self) -> None:
        self.loop = asyncio.get_running_loop()
        async with self._make_client(load_access(str(self._config), "")) as self.client:
            self.desk = Desk(self.client, self._settings, CollectorRegistry())
            self._task = asyncio.create_task(self.desk.run())
            self._begun.set()
            await self._task

    def giving(self, count: int) -> None:
        """Wait until so many ranges give."""
        eventually(lambda: len(self.desk._books.giving()) == count)

    def ready(self) -> Self:
        """Wait until it is."""
        eventually(lambda: not self.desk.readiness(), explain=lambda: str(self.desk.readiness()))
        return self

    def call(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Have something done in its thread."""
        return asyncio.run_coroutine_threadsafe(make(), self.loop).result(30)

    def give(self, service: str, address: str = "", family: Family = Family.IPV4) -> str:
        """An address for a Service, a named one or any of a family; nobody creates the Service."""

        async def allocate() -> str:
            wanted = Address.parse(address) if address else None
            transaction = await self.desk.allocator.allocate(service, [Want(family, wanted)])
            await transaction.commit()
            return str(transaction.given[0].address)

        return self.call(allocate)


class FreezingClient(Client):
    """A client that stops the whole process (its thread) for `frozen` seconds before a write that frees is sent."""

    frozen = 0.0

    async def request(self, method: str, path: str, **rest: Any) -> bytes:
        """A request, perhaps after a long sleep."""
        if self.frozen and method == "PUT" and path.startswith(RANGES):
            seconds, self.frozen = self.frozen, 0.0
            time.sleep(seconds)  # nothing else is to happen in this thread meanwhile
        return await super().request(method, path, **rest)


class Registry:
    """What a test sees of the cluster, and changes in it, as its administrator; without the code under test."""

    def __init__(self, cluster: Api) -> None:
        self.admin = cluster.admin

    def service(self, name: str, **spec: object) -> str:
        """A Service as "namespace/name"; the address that it has."""
        namespace, _, short = name.partition("/")
        body = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": short},
            "spec": {"ports": [{"port": 80}], **spec},
        }
        return str(self.admin.create(f"/api/v1/namespaces/{namespace}/services", body)["spec"]["clusterIP"])

    def remove(self, name: str) -> None:
        """A Service goes."""
        namespace, _, short = name.partition("/")
        self.admin.delete(f"/api/v1/namespaces/{namespace}/services/{short}")

    def namespace(self, name: str) -> None:
        """A namespace, if it is not there."""
        if name not in {each["metadata"]["name"] for each in self.admin.items("/api/v1/namespaces")}:
            self.admin.create(
                "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )

    def service_cidr(self, name: str, *cidrs: str, finalizers: tuple[str, ...] = ()) -> None:
        """A ServiceCIDR."""
        body = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": name, "finalizers": list(finalizers)},
            "spec": {"cidrs": list(cidrs)},
        }
        self.admin.create(SERVICE_CIDRS, body)

    def allocation(self, name: str) -> Json:
        """A RangeAllocation."""
        return self.admin.get(f"{RANGES}/{name}")

    def edit(self, name: str, **fields: object) -> None:
        """Change fields of a RangeAllocation, as somebody would by hand."""
        self.admin.patch(f"{RANGES}/{name}", fields)

    def held(self, name: str) -> set[str]:
        """The addresses whose bit is set."""
        found = self.allocation(name)
        bits = int.from_bytes(base64.b64decode(found["data"]), "big")
        network = ip_network(found["range"])
        return {str(network[offset + 1]) for offset in range(bits.bit_length()) if bits >> offset & 1}

    def events(self, name: str, namespace: str = "default") -> list[Json]:
        """The events on an object of that name."""
        found = self.admin.items(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
        return [each for each in found if each["regarding"]["name"] == name]

    def reasons(self, name: str, namespace: str = "default") -> set[str]:
        """Those of the events on an object of that name."""
        return {each["reason"] for each in self.events(name, namespace)}

    def clean(self) -> None:
        """Leave nothing but what the API server makes."""
        for each in self.admin.items("/api/v1/services"):
            name = f"{each['metadata']['namespace']}/{each['metadata']['name']}"
            if name != "default/kubernetes":
                self.remove(name)
        for each in self._listed(SERVICE_CIDRS):
            path = f"{SERVICE_CIDRS}/{each['metadata']['name']}"
            if each["metadata"]["name"] != "kubernetes":
                self.admin.patch(path, {"metadata": {"finalizers": None}})
                self._delete(path)
        lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE}"
        for path in (RANGES, lease, "/apis/events.k8s.io/v1/namespaces/default/events"):
            self._delete(path)

    def _listed(self, path: str) -> list[Json]:
        try:
            return self.admin.items(path)
        except ApiError as error:
            if error.code != 404:
                raise
            return []

    def _delete(self, path: str) -> None:
        try:
            self.admin.delete(path)
        except ApiError as error:
            if error.code != 404:
                raise
