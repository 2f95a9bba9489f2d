"""Files become an inventory: every document is found its kind, decoded and checked.

What is wrong is collected, not thrown at the first sight of it.
"""

from __future__ import annotations

import copy
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cidrella.app.documents import Document, UnreadableError, read_documents, read_sources
from cidrella.app.inventory import Fault, Inventory, ServiceInventory, printable
from cidrella.core.prefix import Prefix, PrefixError
from cidrella.model import objects, serviceip
from cidrella.model.chosen import Service, seen_service
from cidrella.model.decode import Problem, decode
from cidrella.model.kinds import POOL_KINDS
from cidrella.model.serviceip import IPAddress, RangeAllocation, SeenRangeAllocation
from cidrella.model.validate import (
    validate_ip_address,
    validate_name,
    validate_node,
    validate_pool,
    validate_service_cidr,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cidrella.app.documents import FieldPath, Progress
    from cidrella.app.inventory import Input
    from cidrella.model.kinds import PoolKind, PoolObject

    Found = PoolObject | objects.Node | objects.ServiceCIDR | Service | IPAddress | RangeAllocation
    N = TypeVar("N", bound=Found)

_NETWORKING_VERSIONS = tuple(f"networking.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))


def take_inventory(
    files: Iterable[str],
    *,
    recursive: bool = False,
    strict: bool = False,
    progress: Progress = lambda _done, _total: None,
    each_object: Callable[[Manifest], None] = lambda _: None,
) -> Inventory:
    """Read every object there is. Whatever is wrong stands in `faults`; nothing is raised.

    `strict` also finds fault with what a cluster may hold although nobody should write it: podCIDRs that cannot be
    read. `each_object` is told of every object as it is written, of any kind.
    """
    inventory = Inventory()
    reader = _Reader(inventory, [each.kind for each in POOL_KINDS], each_object)
    keep = reader.keep
    nodes = _validate_node_strictly if strict else validate_node
    reader.kinds = {
        **{each.kind: _Kind((each.api_version,), partial(_keep_pool, reader, inventory, each)) for each in POOL_KINDS},
        "Node": _Kind(("v1",), partial(keep, kind=objects.Node, validate=nodes, into=inventory.nodes.append)),
        "ServiceCIDR": _Kind(
            _NETWORKING_VERSIONS,
            partial(keep, kind=objects.ServiceCIDR, validate=validate_service_cidr, into=inventory.services.append),
        ),
    }
    reader.read(files, recursive=recursive, progress=progress)
    return inventory


def take_services(
    files: Iterable[str], *, recursive: bool = False, progress: Progress = lambda _done, _total: None
) -> ServiceInventory:
    """The same for Services and what gives them addresses."""
    inventory = ServiceInventory()
    reader = _Reader(inventory, [serviceip.RANGE_ALLOCATION_KIND])
    keep = reader.keep
    reader.kinds = {
        serviceip.RANGE_ALLOCATION_KIND: _Kind(
            (serviceip.RANGE_ALLOCATION_API_VERSION,),
            partial(
                keep,
                kind=RangeAllocation,
                validate=validate_name,
                into=lambda obj: inventory.allocations.append(SeenRangeAllocation(obj.metadata, obj)),
            ),
        ),
        "ServiceCIDR": _Kind(
            _NETWORKING_VERSIONS,
            partial(keep, kind=objects.ServiceCIDR, validate=validate_service_cidr, into=inventory.cidrs.append),
        ),
        "IPAddress": _Kind(
            _NETWORKING_VERSIONS,
            partial(keep, kind=IPAddress, validate=validate_ip_address, into=inventory.addresses.append),
        ),
        "Service": _Kind(("v1",), partial(keep, kind=Service, validate=validate_name, into=inventory.services.append)),
    }
    reader.read(files, recursive=recursive, progress=progress)
    return inventory


def _keep_pool(reader: _Reader, inventory: Inventory, kind: PoolKind, document: Document) -> None:
    reader.keep(document, kind.struct, validate_pool, inventory.pools.append, kind.stand_ins)


class Manifest(NamedTuple):
    """An object as it is written. What a list around it has told of it need not stand in the document itself."""

    document: Document
    api_version: str
    kind: str

    @property
    def subject(self) -> str:
        """What it is called, for people."""
        return f"{self.kind} {_name(self.document.raw)}"


class _Kind(NamedTuple):
    """A kind that is looked for: the versions that it is read in, the current one first, and who takes it."""

    versions: tuple[str, ...]
    take: Callable[[Document], None]


class _Reader:
    """Sorts the documents of files by kind. `own` are the kinds that are ours, and so is any other of their group."""

    def __init__(
        self, inventory: Input, own: Sequence[str], each_object: Callable[[Manifest], None] = lambda _: None
    ) -> None:
        self._inventory = inventory
        self._own = own
        self._each_object = each_object
        self._seen: dict[tuple[str, str], Document] = {}
        self.kinds: Mapping[str, _Kind] = {}

    def read(self, files: Iterable[str], *, recursive: bool, progress: Progress) -> None:
        """Everything there is, and everything that is wrong with it, goes into the inventory."""
        try:
            sources = read_sources(files, recursive=recursive)
        except UnreadableError as error:
            self._unreadable(error)
            return
        for document in read_documents(sources, progress):
            if isinstance(document, UnreadableError):
                self._unreadable(document)
            else:
                self._take(document)
        place = {source.name: number for number, source in enumerate(sources)}
        self._inventory.faults.sort(key=lambda fault: (place[fault.source], fault.line or 0))

    def _take(self, document: Document, list_version: str = "", list_kind: str = "") -> None:
        """One object, whose kind a list around it may have told already."""
        raw = document.raw
        if not isinstance(raw, dict):
            self._fault(document, "", (), f"must be an object with apiVersion and kind, not {_what(raw)}")
            return
        kind, version = raw.get("kind") or list_kind, raw.get("apiVersion") or list_version
        for name, value in (("kind", kind), ("apiVersion", version)):
            if not isinstance(value, str):
                self._fault(document, "", (name,), f"must be text, not {_what(value)}")
                return
            if not value:
                self._fault(document, "", (name,), "is missing; an object says apiVersion and kind")
                return
        if kind.endswith("List") and "items" in raw:
            self._take_items(document, raw["items"], version, kind.removesuffix("List"))
            return
        self._each_object(Manifest(document, version, kind))
        known = self.kinds.get(kind)
        if known is not None and version in known.versions:
            known.take(document)
        else:
            self._pass_over(document, version, kind)

    def _take_items(self, document: Document, items: object, version: str, kind: str) -> None:
        """A `List` carries objects that name their kind; a `NodeList` as the API sends it, objects that do not."""
        if items is None:
            return
        if not isinstance(items, list):
            self._fault(document, f"{kind}List", ("items",), f"must be a list, not {_what(items)}")
            return
        for number, raw in enumerate(items):
            item = document.item("items", number, raw=raw)
            if isinstance(raw, dict) and str(raw.get("kind")).endswith("List"):
                self._fault(item, "", ("kind",), "is a list within a list; write its items out")
            else:
                self._take(item, version if kind else "", kind)

    def keep(
        self,
        document: Document,
        kind: type[N],
        validate: Callable[[N], Iterable[Problem]],
        into: Callable[[N], None],
        stand_ins: Mapping[str, object] | None = None,
    ) -> None:
        """Hand on an object that is as it should be, or say everything that is wrong with it.

        `stand_ins` are what its spec can be judged with where something that it must have cannot be read.
        """
        decoded = decode(document.raw, kind)
        if isinstance(decoded, list):
            rest = _without(document.raw, decoded, stand_ins or {})
            problems = decoded + _further(rest, decoded, kind, validate)
        else:
            problems = list(validate(decoded))
        subject = f"{kind.__name__} {_name(document.raw)}"
        for problem in problems:
            self._fault(document, subject, problem.path, problem.message, problem.field)
        if isinstance(decoded, list) or problems:
            return
        first = self._seen.setdefault((kind.__name__, _identity(decoded)), document)
        if first is not document:
            where = f"{first.source.name}:{first.line(('metadata', 'name'))}"
            message = f"is taken: there is one of this name at {where}; names must differ"
            self._fault(document, subject, ("metadata", "name"), message, "metadata.name")
        else:
            into(decoded)

    def _pass_over(self, document: Document, version: str, kind: str) -> None:
        """Other kinds are none of our business, unless they are ours under a wrong name."""
        subject = f"{kind} {_name(document.raw)}"
        own = self.kinds[self._own[0]].versions[0].rpartition("/")[0]
        groups = {version.rpartition("/")[0] for each in self.kinds.values() for version in each.versions}
        if kind in self.kinds and (kind in self._own or version.rpartition("/")[0] in groups):
            right = self.kinds[kind].versions[0]
            self._fault(document, subject, ("apiVersion",), f"is {version!r}; that of a {kind} is {right}")
        elif version.rpartition("/")[0] == own:
            close = get_close_matches(kind.lower(), [each.lower() for each in self._own], n=1, cutoff=0.8)
            meant = next((each for each in self._own if each.lower() in close), "")
            known = f"the kind{'' if len(self._own) == 1 else 's'} known here: {', '.join(self._own)}"
            self._fault(document, subject, ("kind",), f"is not known; {f'did you mean {meant}?' if meant else known}")
        else:
            self._inventory.ignored[printable(kind)] += 1

    def _fault(self, document: Document, subject: str, path: FieldPath, message: str, shown: str = "") -> None:
        where = shown or ".".join(map(str, path))
        self._inventory.faults.append(Fault(document.source.name, document.line(path), subject, where, message))

    def _unreadable(self, error: UnreadableError) -> None:
        self._inventory.faults.append(Fault(error.source, error.line, "", "", error.message))


def _without(raw: object, found: list[Problem], stand_ins: Mapping[str, object]) -> object:
    """A copy of an object without what cannot be read in it, if it can do without; None where it is beyond that."""
    try:
        rest = copy.deepcopy(raw)
    except RecursionError:  # nobody needs to know more of such an object
        return None
    for problem in found:
        _remove(rest, problem.path)
    if isinstance(rest, dict) and isinstance(rest.get("spec"), dict):
        rest["spec"] = {**stand_ins, **rest["spec"]}
    return rest


def _further(
    rest: object, found: list[Problem], kind: type[N], validate: Callable[[N], Iterable[Problem]]
) -> list[Problem]:
    """What else is wrong with an object that cannot be decoded, judged by the rest of it if that can stand alone."""
    decoded = decode(rest, kind)
    known = {problem.path for problem in found}
    return [] if isinstance(decoded, list) else [each for each in validate(decoded) if each.path not in known]


def _remove(raw: object, path: FieldPath) -> None:
    for step in path[:-1]:
        raw = raw[step] if isinstance(raw, dict | list) else None  # type: ignore[index]
    if isinstance(raw, dict) and path:
        raw.pop(path[-1], None)


def _validate_node_strictly(node: objects.Node) -> list[Problem]:
    """A node's podCIDRs may be in any old form (N7), but must be readable."""
    problems = validate_node(node)
    written: list[tuple[FieldPath, str]] = [
        (("spec", "podCIDRs", number), text) for number, text in enumerate(node.spec.pod_cidrs)
    ]
    if node.spec.pod_cidr:
        written.append((("spec", "podCIDR"), node.spec.pod_cidr))
    for path, text in written:
        try:
            Prefix.parse_lenient(text)
        except PrefixError as error:
            problems.append(Problem(path, f"{text!r} {error}"))
    return problems


def _identity(obj: Found) -> str:
    """By what it is told from others of its kind."""
    return seen_service(obj).name if isinstance(obj, Service) else obj.metadata.name


def _name(raw: object) -> str:
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) and name else "without a name"


def _what(raw: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(raw), "nothing")
