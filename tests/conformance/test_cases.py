"""What servers say of objects and of schemas, held to what our own judgement of them is, word for word.

On a real API server that shows our judgement right; on the embedded one, that it is what clients get.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.apiserver.schemas.schema import Schema, SchemaError
from cidrella.apiserver.words.statuses import Fault
from cidrella.model.crd import crds
from tests.apiserver.schemas import CHANGES, LOOSE, SOUND_RULES, TIGHT, UNSOUND_RULES, VALUES
from tests.conformance.bodies import CRDS, await_kind, crd
from tests.model import cases, cases_config
from tests.model.manifests import config, pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.conformance.talking import Reply, Talk
    from tests.model.manifests import Case, Manifest, Update

    Json = dict[str, Any]

PATHS = {
    "ClusterCIDR": "/apis/networking.x-k8s.io/v1/clustercidrs",
    "ClusterCIDRConfig": "/apis/networking.x-k8s.io/v1alpha1/clustercidrconfigs",
}
SCHEMAS = {
    each["spec"]["names"]["kind"]: Schema(each["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    for each in json.loads(json.dumps(list(crds().values())))
}
GROUP = "cases.example.com"


def told(reply: Reply) -> list[Fault]:
    """What a refusal finds wrong, in an order of its own: servers have none."""
    causes = reply.body.get("details", {}).get("causes", []) if reply.code == 422 else []
    assert reply.code < 300 or causes, reply.text
    return sorted(Fault(each["reason"], each["field"], each["message"]) for each in causes)


def judged(schema: Schema, body: object, reply: Reply, old: Json | None = None) -> list[Fault]:
    """What we find wrong with an object, together with what the server found wrong with its metadata."""
    obj = json.loads(json.dumps(body))
    warned = [f'unknown field "{each}"' for each in schema.prune(obj)]
    assert reply.warnings == warned
    schema.default(obj)
    of_metadata = [each for each in told(reply) if each.field.startswith("metadata")]
    found = sorted([*of_metadata, *schema.validate(obj, old, of_metadata)])
    if not found:
        assert {name: reply.body.get(name) for name in obj if name != "metadata"} == {
            name: value for name, value in obj.items() if name != "metadata"
        }
    return found


@pytest.mark.parametrize("kind", PATHS)
def test_pools(talk: Talk, kind: str) -> None:
    """C1, C2, C4: each row of the tables of pools is taken, or refused for the same faults in the same words."""
    table: Sequence[Case] = {"ClusterCIDR": cases.CASES, "ClusterCIDRConfig": cases_config.CASES}[kind]
    for case in table:
        reply = talk.create(PATHS[kind], case.manifest, dryRun="All", fieldValidation="Warn")
        if reply.code != 400:  # metadata that cannot be read
            assert told(reply) == judged(SCHEMAS[kind], case.manifest, reply), case.title


@pytest.mark.parametrize("kind", PATHS)
def test_changes_of_pools(talk: Talk, kind: str, name: str) -> None:
    """C3: each row of the tables of changes is taken, or refused for the same faults in the same words."""
    table: Sequence[Update] = {"ClusterCIDR": cases.UPDATES, "ClusterCIDRConfig": cases_config.UPDATES}[kind]
    make: Callable[[object, dict[str, object]], Manifest] = {"ClusterCIDR": pool, "ClusterCIDRConfig": config}[kind]
    for update in table:
        before = talk.create(PATHS[kind], make(update.before, {"name": name})).granted(201)
        after = {**before, "spec": update.after}
        reply = talk.replace(f"{PATHS[kind]}/{name}", after, dryRun="All")
        assert told(reply) == judged(SCHEMAS[kind], after, reply, before), update.title
        talk.delete(f"{PATHS[kind]}/{name}").granted()


@pytest.fixture
def things(talk: Talk, name: str) -> Callable[[Json], str]:
    """Define a kind whose objects have a spec with these properties, and wait until it is served."""
    plural = f"t{name.rsplit('-', 1)[1]}s"

    def define(properties: Json) -> str:
        definition = crd(plural, GROUP, properties=properties)
        path = f"/apis/{GROUP}/v1/{plural}"
        talk.create(CRDS, definition).granted(201)
        await_kind(talk, path)
        return path

    return define


def thing(path: str, **spec: object) -> Json:
    """An object of such a kind."""
    kind = path.rsplit("/", 1)[1][:-1].capitalize()
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def test_values(talk: Talk, things: Callable[[Json], str]) -> None:
    """Each value is taken for each small schema, with the same defaults, or refused in the same words."""
    properties = {name: schema for name, (schema, _) in VALUES.items()}
    path = things(properties)
    schema = Schema({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
    for name, (_, values) in VALUES.items():
        for value in values:
            body = thing(path, **{name: value})
            reply = talk.create(path, body, dryRun="All", fieldValidation="Warn")
            assert told(reply) == judged(schema, body, reply), (name, value)


def test_what_was_wrong_before(talk: Talk, things: Callable[[Json], str]) -> None:
    """What a new schema finds wrong in an object that is there may stay as it is, but not change to other wrongs."""
    path = things(LOOSE)
    for name, (before, _) in CHANGES.items():
        body = thing(path, other="x", **{name: before})
        talk.create(path, {**body, "metadata": {"name": name}}).granted(201)
    definition = f"{CRDS}/{path.rsplit('/', 1)[1]}.{GROUP}"
    found = talk.get(definition).granted()
    found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = TIGHT
    talk.replace(definition, found).granted()
    schema = Schema({"type": "object", "properties": {"spec": {"type": "object", "properties": TIGHT}}})
    _await_refusal(talk, path)
    for name, (_, values) in CHANGES.items():
        before = talk.get(f"{path}/{name}").granted()
        for value in values:
            after = {**before, "spec": {"other": "y", name: value}}
            reply = talk.replace(f"{path}/{name}", after, dryRun="All")
            assert told(reply) == sorted(schema.validate(after, before)), (name, value)


def _await_refusal(talk: Talk, path: str) -> None:
    """Until the new schema is in force."""
    for _ in range(200):
        if talk.create(path, thing(path, text="long"), dryRun="All").code == 422:
            return
    raise TimeoutError(path)


@pytest.mark.parametrize("rules", [SOUND_RULES, UNSOUND_RULES], ids=["sound", "unsound"])
def test_rules(talk: Talk, rules: dict[str, Json], name: str) -> None:
    """Each rule is taken, or refused in the same words: what is not understood is not skipped."""
    plural = f"t{name.rsplit('-', 1)[1]}s"
    for title, rule in rules.items():
        definition = crd(plural, GROUP, properties={"p": rule})
        reply = talk.create(CRDS, definition, dryRun="All")
        assert told(reply) == _faults_of(definition), title


def _faults_of(definition: Json) -> list[Fault]:
    try:
        Schema(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "spec.validation.openAPIV3Schema")
    except SchemaError as error:
        return sorted(error.faults)
    return []
