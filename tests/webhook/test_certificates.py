"""Where the webhook's certificate comes from: files that change, and a Secret that replicas share."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
import pytest

from cidrella.kube.client import MERGE_PATCH, STRATEGIC_PATCH
from cidrella.kube.errors import ApiError, ConfigError, KubeError, NoAnswerError
from cidrella.kube.files import PERIOD, WatchedFile
from cidrella.kube.issuing import SERVING_LIFE, issue
from cidrella.kube.tls import KeyPair, Serving, serving_context
from cidrella.webhook.certificates import CertificateFiles, CertificateSecret, Keeper, Place
from tests.kube.simulated import simulate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cidrella.kube.client import Client

T = TypeVar("T")
Json = dict[str, Any]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("cidrella-webhook.kube-system.svc",)
SECRET = "/api/v1/namespaces/kube-system/secrets/cidrella-webhook"
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/cidrella-webhook"
PLACE = Place("kube-system", "cidrella-webhook", NAMES, "cidrella-webhook")


class Api:
    """Objects by their path, with versions and conflicts as the API server has them. `faults` come first."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.version = 0
        self.asked: list[str] = []
        self.faults: list[KubeError | None] = []
        self.before: Callable[[str, str], None] = lambda _verb, _path: None

    @property
    def client(self) -> Client:
        return cast("Client", self)

    def put(self, path: str, body: Json) -> None:
        self.version += 1
        self.objects[path] = {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": str(self.version)}}

    async def get(self, path: str, kind: type[T]) -> T:
        await self._arrive("get", path)
        return self._reply(path, kind)

    async def create(self, path: str, obj: object, kind: type[T]) -> T:
        body = json.loads(msgspec.json.encode(obj))
        path = f"{path}/{body['metadata']['name']}"
        await self._arrive("create", path)
        if path in self.objects:
            raise ApiError(409, "AlreadyExists", "there is one")
        self.put(path, body)
        return self._reply(path, kind)

    async def patch(self, path: str, patch: object, kind: type[T], *, content_type: str = MERGE_PATCH) -> T:
        body = json.loads(msgspec.json.encode(patch))
        await self._arrive("patch", path)
        found = self.objects[path]
        if body["metadata"] != {"resourceVersion": found["metadata"]["resourceVersion"]}:
            raise ApiError(409, "Conflict", "there is a newer one")
        if content_type == STRATEGIC_PATCH:
            sent = {each["name"]: each for each in body["webhooks"]}
            webhooks = [{**each, **sent.get(each["name"], {})} for each in found["webhooks"]]
            self.put(path, {**found, "webhooks": webhooks})
        else:
            self.put(path, {**found, "data": {**found.get("data", {}), **body["data"]}})
        return self._reply(path, kind)

    async def _arrive(self, verb: str, path: str) -> None:
        await asyncio.sleep(0.01)
        self.before(verb, path)
        self.asked.append(f"{verb} {path.rpartition('/')[0].rpartition('/')[2]}")
        if self.faults and (fault := self.faults.pop(0)):
            raise fault

    def _reply(self, path: str, kind: type[T]) -> T:
        if path not in self.objects:
            raise ApiError(404, "NotFound", "no such thing")
        return msgspec.json.decode(json.dumps(self.objects[path]), type=kind)

    def configure(self, *names: str) -> None:
        """Install the webhook's configuration."""
        webhooks = [{"name": each, "clientConfig": {"url": "https://127.0.0.1"}} for each in names]
        self.put(CONFIGURATION, {"webhooks": webhooks})

    def bundles(self) -> list[bytes]:
        """The CAs that are believed, webhook by webhook."""
        webhooks = self.objects[CONFIGURATION]["webhooks"]
        return [base64.b64decode(each["clientConfig"].get("caBundle", "")) for each in webhooks]

    def kept(self, key: str) -> bytes:
        """What the Secret holds."""
        return base64.b64decode(self.objects[SECRET]["data"][key])


def source(api: Api, place: Place = PLACE, now: Callable[[], datetime] = lambda: NOW) -> CertificateSecret:
    return CertificateSecret(api.client, place, now=now)


def obtain(api: Api, place: Place = PLACE, now: datetime = NOW) -> KeyPair:
    return simulate(source(api, place, lambda: now).obtain())


class TestSecret:
    """Certificates that replicas make, and share."""

    def test_the_first_makes_them(self) -> None:
        """B9: into a Secret of its own, and the CA into the configuration; the next one finds all as it should be."""
        api = Api()
        api.configure("services.cidrella.dev")
        pair = obtain(api)
        serving_context(Serving(pair))
        assert (api.kept("tls.crt"), api.kept("tls.key")) == pair
        assert api.bundles() == [api.kept("ca.crt")]
        assert api.objects[SECRET]["type"] == "Opaque"
        api.asked.clear()
        assert obtain(api) == pair
        assert api.asked == ["get mutatingwebhookconfigurations", "get secrets"]

    def test_an_empty_secret(self) -> None:
        """B9: one that is there already is filled, and keeps what else is said of it."""
        api = Api()
        api.put(SECRET, {"metadata": {"labels": {"kept": "yes"}}, "type": "Opaque"})
        pair = obtain(api)
        assert api.kept("tls.crt") == pair.certificate
        assert api.objects[SECRET]["metadata"]["labels"] == {"kept": "yes"}

    @pytest.mark.parametrize("empty", [True, False])
    def test_many_at_once(self, empty: bool) -> None:
        """B6: of many who find none, one is first, and all show its certificate."""
        api = Api()
        api.configure("a", "b")
        if empty:
            api.put(SECRET, {})

        async def all_of_it() -> list[KeyPair]:
            return await asyncio.gather(*(source(api).obtain() for _ in range(8)))

        (pair,) = set(simulate(all_of_it()))
        assert pair.certificate == api.kept("tls.crt")
        assert set(api.bundles()) == {api.kept("ca.crt")}

    def test_renewal(self) -> None:
        """B9: in time, by the same CA: the configuration stays."""
        api = Api()
        api.configure("a")
        first = obtain(api)
        before = api.objects[CONFIGURATION]
        second = obtain(api, now=NOW + 0.8 * SERVING_LIFE)
        assert second != first
        assert second.certificate == api.kept("tls.crt")
        assert api.objects[CONFIGURATION] == before

    def test_other_names(self) -> None:
        """B9: where the flag names something else, it is made anew."""
        api = Api()
        first = obtain(api)
        assert obtain(api, PLACE._replace(names=("other",))) != first

    def test_somebody_elses(self) -> None:
        """B9: a Secret with other things in it is left alone, and that is said."""
        api = Api()
        api.put(SECRET, {"data": {"tls.crt": "eA==", "tls.key": "eA=="}})
        with pytest.raises(ConfigError, match=r"holds tls\.crt, tls\.key, which is not of our making"):
            obtain(api)
        assert api.kept("tls.crt") == b"x"

    def test_not_allowed_to_make_it(self) -> None:
        """B9: it is said what to do where the Secret is gone, and what the API server says."""
        api = Api()
        api.faults = [None, None, ApiError(403, "Forbidden", "cannot create secrets")]
        with pytest.raises(
            ConfigError, match=r"there is no .*; .* with kubectl apply -k deploy/webhook \(.*cannot create"
        ):
            obtain(api)

    def test_it_cannot_be_made(self) -> None:
        """B9: for any other reason the API server's words are enough."""
        api = Api()
        api.faults = [None, None, ApiError(500, "InternalError", "no room")]
        with pytest.raises(ApiError, match="no room"):
            obtain(api)

    def test_somebody_else_is_always_first(self) -> None:
        """B6: it is given up after a few attempts; the next turn comes."""
        api = Api()
        api.put(SECRET, {})
        api.before = lambda verb, path: api.put(path, api.objects[path]) if verb == "patch" else None
        with pytest.raises(ApiError, match="Conflict"):
            obtain(api)

    def test_a_reply_that_is_lost(self) -> None:
        """B6: what was stored and not confirmed is found by the next turn."""
        api = Api()
        api.faults = [None, None, NoAnswerError("cut off")]
        with pytest.raises(NoAnswerError):
            obtain(api)
        obtain(api)


class TestConfiguration:
    """Whom the API server is told to believe."""

    def test_only_what_differs(self) -> None:
        """B9: each webhook of the configuration gets the CA; where it has it, nothing is written."""
        api = Api()
        api.configure("a", "b")
        obtain(api)
        bundle = api.kept("ca.crt")
        api.objects[CONFIGURATION]["webhooks"][1]["clientConfig"] = {"caBundle": "eA=="}
        api.asked.clear()
        obtain(api)
        assert api.bundles() == [bundle, bundle]
        assert api.asked == [
            "get mutatingwebhookconfigurations",
            "get secrets",
            "patch mutatingwebhookconfigurations",
        ]

    def test_not_there(self) -> None:
        """B9: it may come later, or never: the certificate is there all the same."""
        api = Api()
        serving_context(Serving(obtain(api)))
        api.configure("a")
        obtain(api)
        assert api.bundles() == [api.kept("ca.crt")]

    def test_none_of_ours(self) -> None:
        """B9: where no name is given, nobody asks for it."""
        api = Api()
        obtain(api, PLACE._replace(configuration=""))
        assert api.asked == ["get secrets", "create secrets"]

    def test_an_old_ca_never_replaces_a_newer_one(self) -> None:
        """B6: who read the Secret before another made a new CA does not write the old one over it."""
        api = Api()
        api.configure("a")
        obtain(api)
        newer = issue(NAMES, NOW)
        renewed: list[str] = []

        def renew(verb: str, _: str) -> None:
            """Just before a write: another replica has made a new CA, and has told the configuration."""
            if verb == "patch" and not renewed:
                renewed.append(verb)
                values = (newer.bundle, newer.ca_key, *newer.pair)
                keys = ("ca.crt", "ca.key", "tls.crt", "tls.key")
                data = {key: base64.b64encode(each).decode() for key, each in zip(keys, values, strict=True)}
                api.put(SECRET, {"data": data})
                bundle = {"caBundle": data["ca.crt"]}
                api.put(CONFIGURATION, {"webhooks": [{"name": "a", "clientConfig": bundle}]})

        api.configure("a")
        api.before = renew
        assert obtain(api) == newer.pair
        assert api.bundles() == [newer.bundle]


class TestKeeper:
    """Certificates that are looked at again and again."""

    def test_none_at_first(self) -> None:
        """O2: why there is none is said while there is none; then the first is handed on."""
        api = Api()
        api.faults = [NoAnswerError("connection refused")] * 3

        async def all_of_it() -> None:
            keeper = Keeper(source(api))
            assert keeper.missing == "there is no certificate yet"
            first = asyncio.create_task(keeper.first())
            await asyncio.sleep(0.1)
            assert keeper.missing == "there is no certificate yet: connection refused"
            pair = (await first).pair
            assert (keeper.missing, pair.certificate) == ("", api.kept("tls.crt"))

        simulate(all_of_it())

    def test_new_ones_are_shown(self) -> None:
        """B9: each once, within a minute or two of its being due; trouble on the way changes nothing."""
        api = Api()

        async def all_of_it() -> None:
            loop = asyncio.get_running_loop()
            began = loop.time()
            keeper = Keeper(source(api, now=lambda: NOW + timedelta(hours=(loop.time() - began))))
            shown = [await keeper.first()]
            keeping = asyncio.create_task(keeper.keep(shown.append))
            await asyncio.sleep(0.5 * SERVING_LIFE.total_seconds() / 3600)
            assert len(shown) == 1
            api.faults = [NoAnswerError("away")] * 100
            await asyncio.sleep(0.5 * SERVING_LIFE.total_seconds() / 3600)
            assert keeper.missing == ""
            keeping.cancel()
            assert len(shown) == 2
            assert shown[1].pair.certificate == api.kept("tls.crt")

        simulate(all_of_it())

    def test_whose_clients(self, tmp_path: Path) -> None:
        """B9: a new CA for clients is handed on, one that is of no use is not."""
        api, file = Api(), tmp_path / "ca.crt"
        first, second = issue(NAMES, NOW).bundle, issue(NAMES, NOW).bundle
        file.write_bytes(first)

        async def all_of_it() -> None:
            keeper = Keeper(source(api), WatchedFile(file, clock=asyncio.get_running_loop().time))
            shown = [await keeper.first()]

            def show(serving: Serving) -> None:
                serving_context(serving)
                shown.append(serving)

            keeping = asyncio.create_task(keeper.keep(show))
            for text in (b"half", second):
                file.write_bytes(text)
                await asyncio.sleep(200)
            keeping.cancel()
            assert [each.client_ca for each in shown] == [first, second]

        simulate(all_of_it())

    def test_files_that_are_replaced(self, tmp_path: Path) -> None:
        """B9: a new pair is shown when both halves of it are there; until then, the old one."""
        first, second = issue(NAMES, NOW).pair, issue(NAMES, NOW).pair
        certificate, key = (tmp_path / name for name in ("tls.crt", "tls.key"))

        async def all_of_it() -> None:
            clock = asyncio.get_running_loop().time
            keeper = Keeper(CertificateFiles(WatchedFile(certificate, clock=clock), WatchedFile(key, clock=clock)))
            beginning = asyncio.create_task(keeper.first())
            await asyncio.sleep(1)
            assert "No such file or directory" in keeper.missing
            write(first)
            shown = [await beginning]

            def show(serving: Serving) -> None:
                serving_context(serving)
                shown.append(serving)

            keeping = asyncio.create_task(keeper.keep(show))
            write(KeyPair(second.certificate, first.key))
            await asyncio.sleep(3 * PERIOD)
            assert (shown, keeper.missing) == ([Serving(first)], "")
            write(second)
            await asyncio.sleep(3 * PERIOD)
            certificate.unlink()
            key.unlink()
            await asyncio.sleep(3 * PERIOD)
            assert shown == [Serving(first), Serving(second)]
            keeping.cancel()

        def write(pair: KeyPair) -> None:
            for file, text in zip((certificate, key), pair, strict=True):
                new = tmp_path / "new"
                new.write_bytes(text)
                new.rename(file)

        simulate(all_of_it())
