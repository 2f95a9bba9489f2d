"""What is to be done with a request: by what its path names, and by its method."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING, Final

from cidrella.apiserver.serving import amending, deleting, reading, writing
from cidrella.apiserver.serving.calls import Answer, encode
from cidrella.apiserver.serving.discovery import Discovery
from cidrella.apiserver.serving.openapi import OpenApi
from cidrella.apiserver.serving.options import list_options
from cidrella.apiserver.serving.watching import Watch
from cidrella.apiserver.words.statuses import StatusError, bad_request, not_found, not_served

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cidrella.apiserver.registry import Served
    from cidrella.apiserver.serving.calls import Call
    from cidrella.apiserver.serving.holdings import Holdings
    from cidrella.apiserver.serving.paths import Target

    Handler = Callable[[Holdings, Call, Target, Served], Awaitable[Answer]]

VERSION: Final = "v1.36.3+cidrella"
"""What the server says it is; clients of ours recognise it by what follows the plus sign."""
_PLAIN: Final = "text/plain; charset=utf-8"
_TOLD_VERSION: Final = encode(
    {
        "major": "1",
        "minor": "36",
        "gitVersion": VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": f"{sys.platform}/{platform.machine()}",
    }
)
_ON_OBJECTS: Final[dict[str, Handler]] = {
    "GET": reading.get,
    "PUT": writing.replace,
    "PATCH": amending.patch,
    "DELETE": deleting.delete,
}


class Routing:
    """Answers requests. `ready` has a say in what /readyz answers."""

    def __init__(self, holdings: Holdings, ready: Callable[[], bool]) -> None:
        self._holdings = holdings
        self._ready = ready
        self._discovery = Discovery(holdings.registry)
        self._openapi = OpenApi(holdings.registry)

    async def answer(self, call: Call, target: Target | None) -> Answer | Watch:
        """The answer to a request, or the watch that it asks for. Raises `StatusError`."""
        if target is None:
            return self._fixed(call)
        served = self._find(call, target)
        if isinstance(served, Answer):
            return served
        if not target.name:
            return await self._on_collection(call, target, served)
        handler = _ON_OBJECTS.get(call.method)
        if handler is None or (target.part and call.method == "DELETE"):
            raise _not_allowed()
        return await handler(self._holdings, call, target, served)

    async def _on_collection(self, call: Call, target: Target, served: Served) -> Answer | Watch:
        resource = served.resource
        inside = bool(target.namespace) or not resource.namespaced
        match call.method:
            case "GET":
                options = list_options(call)
                if options.watch:
                    return Watch(self._holdings, call, target, served, options)
                return await reading.list_(self._holdings, call, target, served, options)
            case "POST" if inside and "create" in resource.verbs:
                return await writing.create(self._holdings, call, target, served)
            case "DELETE" if inside and "deletecollection" in resource.verbs:
                return await deleting.delete_all(self._holdings, call, target, served)
            case "PUT" | "PATCH" if resource.custom:
                raise bad_request("name must be provided")
        raise _not_allowed()

    def _find(self, call: Call, target: Target) -> Served | Answer:
        """The resource that a request is about, or what is answered where there is none. Raises `StatusError`."""
        registry = self._holdings.registry
        served = registry.find(target.group, target.version, target.plural)
        if served is None or (target.namespace and not served.resource.namespaced):
            return _nothing_there(plain=bool(target.group) and registry.is_custom(target.group))
        resource = served.resource
        if resource.namespaced and not target.namespace and (target.name or (resource.custom and call.method != "GET")):
            return _nothing_there(plain=resource.custom)
        if target.part and (target.part != writing.STATUS or not resource.status):
            raise not_found(resource.plural, resource.group, target.name) if resource.custom else not_served()
        return served

    def _fixed(self, call: Call) -> Answer:
        """What is at a path that names no resource."""
        if call.path in {"/healthz", "/livez"} or (call.path == "/readyz" and self._ready()):
            return Answer(200, b"ok", _PLAIN)
        if call.path == "/readyz":
            return Answer(500, b"not ready\n", _PLAIN)
        if call.path == "/version":
            return Answer(200, _TOLD_VERSION)
        found = self._discovery.answer(call) or self._openapi.answer(call)
        return found or _nothing_there(plain=not call.path.startswith("/api/"))


def _nothing_there(*, plain: bool) -> Answer:
    if plain:
        return Answer(404, b"404 page not found\n", _PLAIN)
    raise not_served()


def _not_allowed() -> StatusError:
    why = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", why, {})
