"""An API to ask without a network: requests as they come from HTTP, answers as they go there."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cidrella.apiserver.customs import customs
from cidrella.apiserver.forms import rendering
from cidrella.apiserver.kinds import builtins
from cidrella.apiserver.registry import Registry
from cidrella.apiserver.serving import paths
from cidrella.apiserver.serving.calls import Answer, Call, parse_query
from cidrella.apiserver.serving.holdings import Holdings
from cidrella.apiserver.serving.life import Life
from cidrella.apiserver.serving.routing import Routing
from cidrella.apiserver.serving.watching import Watch
from cidrella.apiserver.store.store import Store
from cidrella.apiserver.words.statuses import StatusError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Json = dict[str, Any]

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
NAMESPACES = "/api/v1/namespaces"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
MERGE = "application/merge-patch+json"
STEPS = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@dataclass(frozen=True)
class Reply:
    """What came back."""

    code: int
    text: bytes
    media: str
    warnings: list[str]

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def message(self) -> str:
        return str(self.body["message"])

    @property
    def names(self) -> list[str]:
        """Of the objects of a list."""
        return [each["metadata"]["name"] for each in self.body["items"]]

    def granted(self, code: int = 200) -> Any:
        assert self.code == code, self.text
        return self.body

    def refused(self, code: int, reason: str = "") -> str:
        """The message."""
        assert (self.code, self.body.get("reason", "")) == (code, reason), self.text
        return self.message


class Api:
    """Asked by tests. What goes on behind the requests goes on while something is asked, or waited for."""

    def __init__(self, runner: asyncio.Runner, store: Store | None = None) -> None:
        self.runner = runner
        definition, kinds = customs.definition_resource(), builtins()
        namespace = next(each for each in kinds if each.plural == "namespaces")
        self.store = store or Store()
        self.holdings = Holdings(self.store, Registry([*kinds, definition]))
        self.life = Life(self.holdings, namespace, definition)
        self.routing = Routing(self.holdings, lambda: True)

    def __call__(
        self, method: str, path: str, body: object = None, *, accept: str = "application/json", media: str = ""
    ) -> Reply:
        return self.runner.run(self.asking(method, path, body, accept=accept, media=media))

    async def asking(
        self, method: str, path: str, body: object = None, *, accept: str = "application/json", media: str = ""
    ) -> Reply:
        """A request, for who is asking already."""
        call = _call(method, path, body, accept, media or "application/json")
        try:
            answer = await self.routing.answer(call, paths.parse(call.path))
        except StatusError as error:
            answer = rendering.refusal(error)
        assert isinstance(answer, Answer)
        return Reply(answer.code, answer.body, answer.media, call.warnings)

    def watch(self, path: str, *, accept: str = "application/json") -> Watching:
        """A watch that has begun; `watch=1` goes without saying."""
        call = _call("GET", path + ("&" if "?" in path else "?") + "watch=1", None, accept, "")
        watch = self.runner.run(self.routing.answer(call, paths.parse(call.path)))
        assert isinstance(watch, Watch)
        return Watching(self.runner, watch)

    def make(self, path: str, body: Json) -> Json:
        """A new object."""
        made: Json = self("POST", path, body).granted(201)
        return made

    def rest(self, seconds: float) -> None:
        """Let some time pass."""
        self.runner.run(asyncio.sleep(seconds))

    def wait(self, met: Callable[[], bool], patience: float = 5.0) -> None:
        """Until something behind the requests has come about."""

        async def look() -> None:
            async with asyncio.timeout(patience):
                while not met():
                    await asyncio.sleep(0.01)

        self.runner.run(look())


class Watching:
    """A watch, read piece by piece."""

    def __init__(self, runner: asyncio.Runner, watch: Watch) -> None:
        self.watch = watch
        self._runner = runner
        self._lines = watch.lines()
        self._read: list[Json] = []

    def next(self, count: int = 1, patience: float = 5.0) -> list[Json]:
        """The next events; fewer where the watch ends."""

        async def read() -> None:
            async with asyncio.timeout(patience):
                while len(self._read) < count:
                    chunk = await anext(self._lines, None)
                    if chunk is None:
                        return
                    self._read += [json.loads(line) for line in chunk.splitlines()]

        self._runner.run(read())
        found, self._read = self._read[:count], self._read[count:]
        return found

    def told(self, count: int = 1) -> list[tuple[str, str]]:
        """Likewise, by their types and the names of the objects."""
        return [(each["type"], each["object"]["metadata"].get("name", "")) for each in self.next(count)]


@contextmanager
def api(store: Store | None = None) -> Iterator[Api]:
    """An API that lives."""
    with asyncio.Runner() as runner:
        made = Api(runner, store)

        async def begin() -> None:
            made.life.begin()

        runner.run(begin())
        try:
            yield made
        finally:
            runner.run(made.life.end())


def node(name: str, **metadata: object) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}}


def lease(name: str, **metadata: object) -> Json:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, **metadata},
        "spec": {"holderIdentity": "me"},
    }


def crd(plural: str = "widgets", *, scope: str = "Namespaced", **properties: Json) -> Json:
    """A definition whose objects have a spec with these properties, and a status."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": properties},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    kind = plural.removesuffix("s").capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def widget(name: str, spec: Json | None = None, **metadata: object) -> Json:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, **metadata},
        "spec": spec or {},
    }


def _call(method: str, path: str, body: object, accept: str, media: str) -> Call:
    path, _, query = path.partition("?")
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return Call(method, path, parse_query(query), accept, media if data else "", data)
