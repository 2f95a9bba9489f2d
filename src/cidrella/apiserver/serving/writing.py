"""Creating and replacing objects, and what patches have in common with that.

Order, as in the real server: the object is read and brought into the form of its kind; what the server decides about it
is written into it, and a Service gets its addresses; then it is validated; then it is stored, unless it is a dry run,
or nothing has changed.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.forms import rendering
from cidrella.apiserver.forms.bodies import decode, read_object
from cidrella.apiserver.forms.negotiation import PLAIN, form_of
from cidrella.apiserver.meta import metadata
from cidrella.apiserver.patches.jsonpatch import same_json
from cidrella.apiserver.serving import intake
from cidrella.apiserver.serving.calls import Answer, encode
from cidrella.apiserver.serving.holdings import NAMESPACES, place
from cidrella.apiserver.serving.options import parse_version, write_options
from cidrella.apiserver.store.store import ExistsError, MissingError, StaleError
from cidrella.apiserver.words.faults import invalid as invalid_value
from cidrella.apiserver.words.naming import subdomain_faults
from cidrella.apiserver.words.statuses import (
    MODIFIED,
    StatusError,
    already_exists,
    conflict,
    forbidden,
    invalid,
    not_found,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from cidrella.apiserver.forms.negotiation import Form
    from cidrella.apiserver.registry import Served
    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.serving.calls import Call
    from cidrella.apiserver.serving.holdings import Holdings
    from cidrella.apiserver.serving.intake import Mistyped
    from cidrella.apiserver.serving.options import WriteOptions
    from cidrella.apiserver.serving.paths import Target
    from cidrella.apiserver.store.entries import Entry
    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

STATUS: Final = "status"
_NAMES: Final = 8
"""How many names are made up before it is given up."""
_SERVICES: Final = "services"


async def create(holdings: Holdings, call: Call, target: Target, served: Served) -> Answer:
    """A new object."""
    write = Write.asked(holdings, call, target, served)
    obj, mistyped = _take_body(holdings, call, served.resource, write.options)
    metadata.put_in_namespace(obj["metadata"], target.namespace)
    if mistyped:
        raise mistyped.refused(obj["metadata"].get("name", ""))
    return await write.create(obj)


async def replace(holdings: Holdings, call: Call, target: Target, served: Served) -> Answer:
    """Another state of an object, or, of some kinds, a new one."""
    resource = served.resource
    write = Write.asked(holdings, call, target, served)
    obj, mistyped = _take_body(holdings, call, resource, write.options)
    found = obj["metadata"]
    intake.name_mismatch(found, target.name)
    metadata.put_in_namespace(found, target.namespace)
    nobody = {"uid": "", "name": target.name, "namespace": target.namespace}
    while True:
        entry = holdings.find(resource, target)
        old = served.read(entry) if entry else {"metadata": nobody}
        if entry is None and (target.part or not resource.creates):
            raise not_found(resource.plural, resource.group, target.name)
        if refused := metadata.uid_conflict(resource, found, old["metadata"]):
            if write.options.dry_run:
                refused.message = refused.message.replace("Key: /registry/", "Key: /")
            raise refused
        if entry is None:
            return await write.create(obj, found.pop("resourceVersion", ""))
        try:
            return await write.update(entry, old, decode(encode(obj)), mistyped)
        except StaleError:
            if parse_version(found.get("resourceVersion", "")):
                raise modified(resource, target.name) from None


@dataclass(frozen=True, slots=True)
class Write:
    """A write under way."""

    holdings: Holdings
    target: Target
    served: Served
    options: WriteOptions
    form: Form
    warnings: list[str]
    """What to warn of is added here."""

    @classmethod
    def asked(cls, holdings: Holdings, call: Call, target: Target, served: Served) -> Write:
        """What a request asks for. Raises `StatusError`."""
        form = form_of(call.accept, served.resource)
        return cls(holdings, target, served, write_options(call), form, call.warnings)

    async def create(self, new: Json, version: str = "") -> Answer:
        """Store a new object. A version that was sent and means nothing is shown in a dry run. Raises `StatusError`."""
        resource = self.served.resource
        sent = new["metadata"].get("resourceVersion", version)
        name = new["metadata"].get("name", "")
        if self.served.terminating:
            why = "create not allowed while custom resource definition is terminating"
            raise forbidden(resource.plural, resource.group, name, why)
        self.holdings.check_namespace(self.served, self.target, name)
        kept = b"" if name else encode(new)
        for _ in range(1 if name else _NAMES):
            try:
                entry = await self._create(new)
            except ExistsError:
                refused = self._exists(new["metadata"])
                new = decode(kept) if kept else new
            else:
                self.warnings.extend(_warnings(resource, new, None))
                if entry is None and sent:
                    new["metadata"]["resourceVersion"] = sent
                return self._answer(201, entry, new)
        raise refused

    async def update(self, entry: Entry, old: Json, new: Json, mistyped: Mistyped | None = None) -> Answer:
        """Put an object in the place of the one that is there. Raises StaleError if that is another one by now."""
        resource = self.served.resource
        strategy = resource.strategy
        _check_version(resource, new["metadata"], entry)
        metadata.keep(new["metadata"], old["metadata"])
        prepare = strategy.prepare_status if self.target.part == STATUS else strategy.prepare_update
        prepare(new, old)
        async with self._addresses(new, old, dry_run=self.options.dry_run):
            twice = not resource.lifetime and mistyped is None
            found = new["metadata"], old["metadata"]
            faults = metadata.update_faults(*found, namespaced=resource.namespaced, twice=twice)
            if mistyped and not self.target.part:
                faults.append(mistyped.fault)
                raise mistyped.refused(self.target.name, faults + resource.schema.rule_faults(new, old, faults))
            if resource.custom:
                faults += resource.schema.validate(new, old, faults, part=self.target.part)
            _refuse(resource, new, faults, strategy.validate_update(new, old))
            stored = self._store(entry, new, old)
        if not self.target.part:
            self.warnings.extend(_warnings(resource, new, old))
        return self._answer(200, stored, new)

    async def _create(self, new: Json) -> Entry | None:
        """Store a new object; None for a dry run. Raises ExistsError, `StatusError`."""
        resource, found = self.served.resource, new["metadata"]
        version = found.pop("resourceVersion", "")
        fill(self.holdings, resource, new)
        path = place(resource, self.target.namespace, found.get("name", ""))
        free = self.holdings.store.get(resource.store_key, path) is None
        async with self._addresses(new, None, dry_run=self.options.dry_run or not free):
            faults = metadata.create_faults(
                found, namespaced=resource.namespaced, name_faults=_name_rule(resource, new)
            )
            if resource.custom:
                faults += resource.schema.validate(new, None, faults)
            _refuse(resource, new, faults, resource.strategy.validate_create(new))
            if version.isdigit() and int(version) and not self.options.dry_run:
                raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
            if not free:
                raise ExistsError(path)
            # It may have gone while addresses were given; from here on nobody can come between.
            self.holdings.check_namespace(self.served, self.target, found.get("name", ""))
            return None if self.options.dry_run else self.holdings.create(resource, path, new)

    def _store(self, entry: Entry, new: Json, old: Json) -> Entry | None:
        """Store what is valid. Returns how it is stored; None if it is not, or not any more. Raises StaleError."""
        resource = self.served.resource
        try:
            if _goes(resource, new):
                if not self.options.dry_run:
                    self.holdings.delete(resource, entry)
                return None
            if new == old and (not resource.custom or same_json(new, old)):
                return entry
            return None if self.options.dry_run else self.holdings.replace(resource, entry, new)
        except MissingError:
            raise StaleError from None

    @asynccontextmanager
    async def _addresses(self, new: Json, old: Json | None, *, dry_run: bool) -> AsyncIterator[None]:
        """The addresses of a Service, which it keeps if it is stored. Nothing for other kinds."""
        if self.served.resource.store_key != _SERVICES or self.target.part:
            yield
            return
        if self.holdings.addresses is None:
            raise StatusError(503, "ServiceUnavailable", "Service addresses cannot be given yet")
        taken = await self.holdings.addresses.admit(new, old, dry_run=dry_run)
        try:
            yield
        except BaseException:
            await taken.revert()
            raise
        await taken.commit()

    def _exists(self, found: Json) -> StatusError:
        resource = self.served.resource
        refused = already_exists(resource.plural, resource.group, found["name"])
        entry = self.holdings.find(resource, self.target._replace(name=found["name"]))
        if entry and "deletionTimestamp" in entry.read()["metadata"]:
            refused.message = f"object is being deleted: {refused.message}"
        if found.get("generateName"):
            refused.message += ", the server was not able to generate a unique name for the object"
            refused.details = {**(refused.details or {}), "retryAfterSeconds": 1}
        return refused

    def _answer(self, code: int, entry: Entry | None, obj: Json) -> Answer:
        if entry is None:
            body = rendering.one_of(self.served, obj, self.form)
        elif self.form is PLAIN:
            body = rendering.one(self.served, entry, self.form)
        else:
            obj["metadata"]["resourceVersion"] = str(entry.version)
            body = rendering.one_of(self.served, obj, self.form)
        return Answer(code, body, self.form.media)


def fill(holdings: Holdings, resource: Resource, obj: Json) -> None:
    """Write into a new object what the server decides about it."""
    metadata.fill(obj["metadata"], holdings.now(), holdings.random)
    obj["metadata"].pop("generation", None)
    resource.strategy.prepare_create(obj)


def _name_rule(resource: Resource, new: Json) -> Callable[[str], list[str]]:
    form = resource.name_fault or subdomain_faults
    return lambda name: [*form(name), *resource.strategy.name_faults(name, new)]


def modified(resource: Resource, name: str) -> StatusError:
    """Somebody else was first."""
    return conflict(resource.plural, resource.group, name, MODIFIED)


def _take_body(
    holdings: Holdings, call: Call, resource: Resource, options: WriteOptions
) -> tuple[Json, Mistyped | None]:
    sent = read_object(call, resource.kind)
    said: Json = {name: sent.obj[name] for name in sent.obj if name in {"kind", "apiVersion"}}
    try:
        mistyped = intake.check_type(resource, sent.obj, call.body, holdings.knows)
        call.warnings += intake.take(resource, sent.obj, options.validation, sent.repeated)
    except intake.DecodingError as error:
        raise intake.refused_body(resource, error, said) from None
    return sent.obj, mistyped


def _check_version(resource: Resource, found: Json, entry: Entry) -> None:
    """Refuse to replace another version than that which the client saw; where none has to be named, it is this one."""
    version = parse_version(found.get("resourceVersion", ""))
    if not version and not resource.unconditional:
        fault = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(resource.plural, resource.group, found.get("name", ""), [fault])
    if version and version != entry.version:
        raise modified(resource, found["name"])
    found["resourceVersion"] = str(entry.version)


def _goes(resource: Resource, obj: Json) -> bool:
    """Whether an object that is being deleted has nothing left that keeps it."""
    if "deletionTimestamp" not in obj["metadata"] or obj["metadata"].get("finalizers"):
        return False
    return resource.store_key != NAMESPACES or not obj["spec"].get("finalizers")


def _refuse(resource: Resource, obj: Json, common: list[Fault], own: list[Fault]) -> None:
    """Refuse what is wrong by the rules for all objects, or by the kind's own; of events, these come first."""
    if faults := [*own, *common] if resource.lifetime else [*common, *own]:
        group = (
            "" if resource.encode and not resource.custom else resource.group
        )  # events.k8s.io speaks for the group they are stored in
        raise invalid(resource.kind, group, obj["metadata"].get("name", ""), faults)


def _warnings(resource: Resource, new: Json, old: Json | None) -> list[str]:
    found = resource.strategy.warnings(new)
    if resource.custom and "finalizers" in new["metadata"]:
        found = [*metadata.finalizer_warnings(new["metadata"], old["metadata"] if old else None), *found]
    return found
