"""The reflector on a random walk: whatever happens to the collection and to the connection, all is as it is there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from cidrella.kube.errors import NoAnswerError
from cidrella.kube.reflector import ReflectorSettings
from tests.kube.fakeapi import FakeApi, error_event
from tests.kube.following import reflecting, seen, sizes, until
from tests.kube.simulated import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RELIST, WAIT = "relist", "wait"
SPOILT = "not a number"


def delete(api: FakeApi, name: str, _: int) -> None:
    if name in api.objects:
        api.delete(name)


def recreate(api: FakeApi, name: str, size: int) -> None:
    delete(api, name, size)
    api.put(name, size)


ACTIONS: Mapping[str, Callable[[FakeApi, str, int], None]] = {
    "put": lambda api, name, size: api.put(name, size),
    "spoil": lambda api, name, _: api.put(name, SPOILT),
    "delete": delete,
    "recreate": recreate,
    "bookmark": lambda api, _, __: api.bookmark(),
    "compact": lambda api, _, __: api.compact(),
    "cut": lambda api, _, __: api.send(NoAnswerError("cut")),
    "end": lambda api, _, __: api.send(None),
    "error": lambda api, _, __: api.send(error_event(500)),
    "html": lambda api, _, __: api.send(b"<html>\n"),
    "half": lambda api, _, __: api.send(b'{"type":"ADD'),
    "no list": lambda api, _, __: api.list_faults.append(b"<html>"),
}
steps = st.tuples(
    st.sampled_from([*ACTIONS, RELIST, WAIT, WAIT, "put", "delete"]), st.sampled_from("abc"), st.integers(0, 2)
)


@given(st.lists(steps, max_size=40), st.integers(1, 40), st.integers(0, 2**32))
def test_whatever_happens_it_ends_up_the_same(script: list[tuple[str, str, int]], width: int, seed: int) -> None:
    """Pitfall 26: through cuts, ends, errors, HTML and forgotten versions, wherever chunks end, nothing is lost."""

    async def scenario() -> None:
        api = FakeApi()
        api.cut = lambda line: [line[at : at + width] for at in range(0, len(line), width)]
        async with reflecting(api, settings=ReflectorSettings(page=2), seed=seed) as (reflector, _):
            for step, name, size in script:
                if step == RELIST:
                    await reflector.relist()
                elif step == WAIT:
                    await asyncio.sleep(0.3)
                else:
                    ACTIONS[step](api, name, size)
            for name in [name for name, obj in api.objects.items() if obj["size"] == SPOILT]:
                api.put(name, 7)
            await until(lambda: seen(reflector) == sizes(api))

    simulate(scenario())
