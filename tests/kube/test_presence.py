"""What is refused to whoever may not have it, and may not even be there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from structlog.testing import capture_logs

from cidrella.kube.errors import ApiError, KubeError, NoAnswerError
from cidrella.kube.presence import is_absent
from cidrella.kube.reflector import ReflectorSettings
from tests.kube.fakeapi import PATH, FakeApi
from tests.kube.following import reflecting, until
from tests.kube.simulated import simulate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import _AsyncGeneratorContextManager

OPTIONAL = ReflectorSettings(optional=True, absent_period=2.0)
UNSERVED = ApiError(404, "", "404 page not found")
FORBIDDEN = ApiError(403, "Forbidden", "no")


class GuardedApi(FakeApi):
    """Asks what one may do before it asks what there is, as an API server does."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed = True
        self.told: KubeError | None = None
        """What comes of asking what is served, if that goes wrong."""

    async def get(self, path: str, kind: type[Any]) -> object:
        """What is served."""
        assert path == PATH.rpartition("/")[0]
        if self.told is not None:
            raise self.told
        names = ["others", "things/status", *(["things"] if self.served else [])]
        return msgspec.convert({"resources": [{"name": name} for name in names]}, kind)

    async def request(self, method: str, path: str, *, verb: str, params: Mapping[str, str]) -> bytes:
        """A page of a list, for whom it is."""
        if not self.allowed:
            self._note("list", params)
            raise FORBIDDEN
        return await super().request(method, path, verb=verb, params=params)

    def watch(self, path: str, params: Mapping[str, str]) -> _AsyncGeneratorContextManager[AsyncIterator[bytes]]:
        """A watch, for whom it is."""
        if not self.allowed:
            self._note("watch", params)
            raise FORBIDDEN
        return super().watch(path, params)


@pytest.mark.parametrize(
    ("error", "served", "told", "absent"),
    [
        (UNSERVED, False, None, True),
        (ApiError(404, "", "no such host"), False, None, False),
        (ApiError(500, "InternalError", ""), False, None, False),
        (FORBIDDEN, True, None, False),
        (FORBIDDEN, False, None, True),
        (FORBIDDEN, True, UNSERVED, True),
        (FORBIDDEN, False, FORBIDDEN, False),
        (FORBIDDEN, False, ApiError(404, "", "no such host"), False),
        (FORBIDDEN, False, NoAnswerError("cut"), False),
    ],
)
def test_what_a_refusal_means(error: ApiError, served: bool, told: KubeError | None, absent: bool) -> None:
    """K6: what is refused is absent only where the server says that it does not serve it."""
    api = GuardedApi()
    api.served, api.told = served, told
    assert asyncio.run(is_absent(api.client, PATH, error)) == absent


def test_an_optional_collection_that_is_refused() -> None:
    """K6, O2: not allowed and not there is absent, said once; when it is there, the refusal is trouble until lifted."""

    async def scenario() -> None:
        api = GuardedApi()
        api.put("a", 1)
        api.served = api.allowed = False
        with capture_logs() as logs:
            async with reflecting(api, settings=OPTIONAL) as (reflector, _):
                await reflector.wait_synced()
                await asyncio.sleep(100)
                assert (reflector.absent, reflector.trouble, len(logs)) == (True, "", 1)
                assert 50 <= len(api.requests) <= 52
                api.served = True
                await until(lambda: reflector.trouble)
                assert "not allowed" in reflector.trouble
                api.allowed = True
                await until(lambda: "a" in reflector.objects)
                assert (reflector.absent, reflector.trouble) == (False, "")

    simulate(scenario())


def test_rights_and_collection_go_together() -> None:
    """K6, P7: whose rights are taken while it watches keeps what it knows, and finds out when the collection goes."""

    async def scenario() -> None:
        api = GuardedApi()
        api.put("a", 1)
        async with reflecting(api, settings=OPTIONAL) as (reflector, _):
            await until(lambda: api.watches)
            api.allowed = False
            api.send(None)
            await until(lambda: reflector.trouble)
            await asyncio.sleep(100)
            assert (list(reflector.objects), reflector.absent) == (["a"], False)
            api.served = False
            await until(lambda: reflector.absent)
            assert (dict(reflector.objects), reflector.trouble) == ({}, "")

    simulate(scenario())


def test_what_is_not_optional_is_not_excused() -> None:
    """O2: a collection that is needed is in trouble where it is refused, whatever the server says that it serves."""

    async def scenario() -> None:
        api = GuardedApi()
        api.served = api.allowed = False
        async with reflecting(api) as (reflector, _):
            await asyncio.sleep(100)
            assert (reflector.synced, reflector.absent) == (False, False)
            assert "not allowed" in reflector.trouble

    simulate(scenario())
