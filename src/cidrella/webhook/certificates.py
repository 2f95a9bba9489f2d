"""Where the certificate comes from that the webhook shows: from files, or from a Secret that all replicas share.

Rules for the Secret:

- Whoever finds it without certificates, or with such that run out or are for other names, makes them. Of several who
  do so at once, one is first: the others' writes fail, since they carry the version that they were made for, and they
  read what the first one wrote.
- A Secret with something else in it is somebody else's, and stays as it is.
- The API server is told whom to believe, in the webhook's configuration, before the certificate is shown. The
  configuration is read before the Secret is, and written only as it was read: so nobody puts an old CA in the place of
  a newer one.
- All is looked at again every minute, for anybody may change it, and time passes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

import structlog

from cidrella.kube.client import STRATEGIC_PATCH
from cidrella.kube.complaints import Complaints
from cidrella.kube.errors import ApiError, ConfigError, KubeError
from cidrella.kube.issuing import Issued, issue, utc_now
from cidrella.kube.tls import KeyPair, Serving, serving_context
from cidrella.model.objects import ObjectMeta
from cidrella.model.trust import (
    WEBHOOK_CONFIGURATIONS_PATH,
    ClientConfig,
    Secret,
    Webhook,
    WebhookConfiguration,
    secrets_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cidrella.kube.client import Client
    from cidrella.kube.files import Material, WatchedFile

T = TypeVar("T")

_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_TRIES: Final = 5
"""How often in a row somebody else may be first."""
_SOON: Final = 2.0
"""Seconds until the next attempt where the last one failed."""
_REMEDY: Final = "make it anew, empty, with kubectl apply -k deploy/webhook"
_CA, _CA_KEY, _CERTIFICATE, _KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"

_log = structlog.get_logger()


class Certificates(Protocol):
    """Where certificates come from."""

    @property
    def period(self) -> float:
        """Seconds after which to ask again."""

    async def obtain(self) -> KeyPair:
        """The one to show now. Raises KubeError."""


class CertificateFiles:
    """From two files that others replace."""

    period = 5.0

    def __init__(self, certificate: WatchedFile, key: WatchedFile) -> None:
        self._certificate = certificate
        self._key = key

    async def obtain(self) -> KeyPair:
        """What the files hold. Raises ConfigError."""
        return self.read()

    def read(self) -> KeyPair:
        """The same, for who cannot wait."""
        return KeyPair(self._certificate.read(), self._key.read())


class Place(NamedTuple):
    """Where self-made certificates are kept, for whom they are, and who is to believe them."""

    namespace: str
    secret: str
    names: tuple[str, ...]
    configuration: str = ""
    """The MutatingWebhookConfiguration; "" if it is not for us to change."""


class CertificateSecret:
    """From a Secret, self-made where there is none."""

    period = 60.0

    def __init__(self, client: Client, place: Place, *, now: Callable[[], datetime] = utc_now) -> None:
        self._client = client
        self._place = place
        self._now = now
        self._path = f"{secrets_path(place.namespace)}/{place.secret}"
        self._complaints = Complaints(f"{WEBHOOK_CONFIGURATIONS_PATH}/{place.configuration}")

    async def obtain(self) -> KeyPair:
        """What the Secret holds, or what was put into it just now. Raises KubeError."""
        for attempt in range(_TRIES):
            try:
                return await self._obtain()
            except ApiError as error:
                if error.code != _CONFLICT or attempt + 1 == _TRIES:
                    raise
        raise AssertionError("unreachable")

    async def _obtain(self) -> KeyPair:
        """The same, if nobody writes meanwhile."""
        configuration = await self._configuration()
        secret = await self._found(self._path, Secret)
        issued = _read(secret, self._path) if secret else None
        if issued is None or not issued.lasting(self._place.names, self._now()):
            issued = issue(self._place.names, self._now(), issued)
            await self._store(issued, secret)
            _log.info("made certificates", secret=self._path, names=self._place.names)
        if configuration:
            await self._make_believed(configuration, issued.bundle)
        return issued.pair

    async def _store(self, made: Issued, secret: Secret | None) -> None:
        data = {_CA: made.bundle, _CA_KEY: made.ca_key, _CERTIFICATE: made.pair.certificate, _KEY: made.pair.key}
        if secret is None:
            meta = ObjectMeta(name=self._place.secret)
            new = Secret(api_version="v1", kind="Secret", metadata=meta, type="Opaque", data=data)
            await self._create(new)
        else:
            meta = ObjectMeta(resource_version=secret.metadata.resource_version)
            await self._client.patch(self._path, Secret(metadata=meta, data=data), Secret)

    async def _create(self, new: Secret) -> None:
        """Make the Secret, which is not among the rights that come with the installation. Raises KubeError."""
        try:
            await self._client.create(secrets_path(self._place.namespace), new, Secret)
        except ApiError as error:
            if error.code != _FORBIDDEN:
                raise
            raise ConfigError(f"there is no {self._path}; {_REMEDY} ({error})") from error

    async def _configuration(self) -> WebhookConfiguration | None:
        name = self._place.configuration
        if not name:
            return None
        found = await self._found(f"{WEBHOOK_CONFIGURATIONS_PATH}/{name}", WebhookConfiguration)
        if found is None:
            self._complaints.make("nobody asks the webhook", kind="", error="there is no such configuration")
        else:
            self._complaints.settle("the configuration is there")
        return found

    async def _found(self, path: str, kind: type[T]) -> T | None:
        try:
            return await self._client.get(path, kind)
        except ApiError as error:
            if error.code == _NOT_FOUND:
                return None
            raise

    async def _make_believed(self, configuration: WebhookConfiguration, bundle: bytes) -> None:
        others = [each for each in configuration.webhooks or () if each.client_config.ca_bundle != bundle]
        if not others:
            return
        patch = WebhookConfiguration(
            metadata=ObjectMeta(resource_version=configuration.metadata.resource_version),
            webhooks=[Webhook(name=each.name, client_config=ClientConfig(ca_bundle=bundle)) for each in others],
        )
        path = f"{WEBHOOK_CONFIGURATIONS_PATH}/{self._place.configuration}"
        await self._client.patch(path, patch, WebhookConfiguration, content_type=STRATEGIC_PATCH)
        _log.info("wrote the CA into the webhook's configuration", configuration=self._place.configuration)


class Keeper:
    """Asks for certificates again and again, and reads whose clients are let in: everybody's, without a `client_ca`."""

    def __init__(self, certificates: Certificates, client_ca: Material | None = None) -> None:
        self._certificates = certificates
        self._client_ca = client_ca
        self._complaints = Complaints("certificates")
        self._shown: Serving | None = None
        self._trouble = ""

    @property
    def missing(self) -> str:
        """Why there is no certificate; "" if there is one, be it not the newest."""
        return "" if self._shown else f"there is no certificate yet{self._trouble and f': {self._trouble}'}"

    async def first(self) -> Serving:
        """What is of use, as soon as there is such."""
        while not await self._turn(serving_context):
            await asyncio.sleep(_SOON)
        assert self._shown
        return self._shown

    async def keep(self, show: Callable[[Serving], None]) -> None:
        """Have what is new shown, for ever. `show` raises ConfigError for what is of no use."""
        while True:
            well = await self._turn(show)
            await asyncio.sleep(self._certificates.period if well else _SOON)

    async def _turn(self, show: Callable[[Serving], object]) -> bool:
        """Whether all is well."""
        try:
            pair = await self._certificates.obtain()
            serving = Serving(pair, self._client_ca.read() if self._client_ca else None)
            if serving != self._shown:
                show(serving)
                self._shown = serving
                _log.info("there is a new certificate to show")
        except KubeError as error:
            self._trouble = str(error)
            self._complaints.make("there is no new certificate", kind=type(error).__name__, error=error)
            return False
        self._complaints.settle("certificates are well again")
        return True


def _read(secret: Secret, path: str) -> Issued | None:
    """What a Secret holds; None if it is empty. Raises ConfigError if it is not ours."""
    data = secret.data or {}
    if not data:
        return None
    if _CA_KEY not in data:
        raise ConfigError(
            f"{path} holds {', '.join(sorted(data))}, which is not of our making; name another Secret, or give the "
            "certificate as files"
        )
    return Issued(data.get(_CA, b""), data[_CA_KEY], KeyPair(data.get(_CERTIFICATE, b""), data.get(_KEY, b"")))
