"""Whom clients of the embedded API believe, and whom it lets in: certificates, tokens, and the kubeconfig with both.

Rules:

- It is always TLS: kubectl sends no token over anything less. The certificate is given as files, or of our own making:
  then it is kept with the data, and made anew when its time comes.
- Who connects from this machine needs no token, unless there is a file with some. Who can connect from elsewhere does.
- A file with tokens is as kube-apiserver has it: `token,user,uid` or `token,user,uid,"group1,group2"` on each line.
- The kubeconfig carries a token in any case: kubectl asks for a name and a password where it finds nothing to show.
"""

from __future__ import annotations

import base64
import csv
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from cidrella.apiserver.serving.users import ADMIN, User
from cidrella.app.up_place import write_private
from cidrella.kube.credentials import Access, Header
from cidrella.kube.errors import ConfigError
from cidrella.kube.files import Fixed, read_file
from cidrella.kube.loopback import is_loopback
from cidrella.kube.tls import KeyPair, Serving, Tls, serving_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from datetime import datetime

    from cidrella.app.up_place import Place
    from cidrella.app.up_settings import UpSettings
    from cidrella.kube.issuing import Issued

CONTEXT: Final = "cidrella"
"""The names of everything in the kubeconfig."""
_UNASKED: Final = "nobody-asks-for-this"
_FILES: Final = ("ca.crt", "ca.key", "tls.crt", "tls.key")
_TOKENS: Final = "tokens.csv"
_EVERYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104 -- to know them


SERVER: Final = User("system:apiserver")
CONTROLLER: Final = User("system:serviceaccount:kube-system:cidrella")


class Trust(NamedTuple):
    """Everything that server and clients need to trust each other."""

    pair: KeyPair
    ca: bytes
    """What clients believe, in PEM."""
    users: Mapping[str, User]
    """By token, those of this process among them; none: everybody is let in."""

    def access(self, url: str, user: User) -> Access:
        """The way of a part of this process to the server at this URL."""
        token = next((token for token, each in self.users.items() if each is user), _UNASKED)
        return Access(url, tls=Tls(Fixed(self.ca)), identity=Header(f"Bearer {token}"))

    def context(self) -> ssl.SSLContext:
        """To listen with. Raises `ConfigError`."""
        return serving_context(Serving(self.pair))

    def kubeconfig(self, server: str) -> bytes:
        """For a client of the server at this URL."""
        import yaml  # noqa: PLC0415 -- of no use before

        ca = base64.b64encode(self.ca).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": CONTEXT, "cluster": {"server": server, "certificate-authority-data": ca}}],
            "users": [{"name": CONTEXT, "user": {"token": next(iter(self.users), _UNASKED)}}],
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
            "current-context": CONTEXT,
        }
        return yaml.safe_dump(config, sort_keys=False, width=1_000_000).encode()


def settle_trust(settings: UpSettings, place: Place, now: datetime) -> Trust:
    """Read what is there, and make what is missing. Raises `ConfigError`, `PlaceError`."""
    if users := _users(settings, place):
        users |= {secrets.token_urlsafe(32): each for each in (SERVER, CONTROLLER)}
    if settings.tls_cert_file:
        pair = KeyPair(read_file(Path(settings.tls_cert_file)), read_file(Path(settings.tls_private_key_file)))
        return Trust(pair, pair.certificate, users)
    issued = _issued(_names(settings.host), place, now)
    return Trust(issued.pair, issued.bundle, users)


def reachable(url: str) -> str:
    """The URL for clients on this machine: what listens on every interface is reached on the loopback one."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _names(host: str) -> list[str]:
    """What the certificate is for: this machine, by every name that it goes by."""
    names = ["localhost", "127.0.0.1", "::1"]
    if not is_loopback(host):
        names += [socket.gethostname() if host in _EVERYWHERE else host]
    return [each for each in dict.fromkeys(names) if each and each.isascii()]


def _issued(names: list[str], place: Place, now: datetime) -> Issued:
    """What is kept, if it lasts, else what is made, and kept where things are."""
    from cidrella.kube.issuing import Issued, issue  # noqa: PLC0415 -- of no use where the certificate is given

    kept = None
    if place.lasting:
        bundle, ca_key, certificate, key = (place.read(name) for name in _FILES)
        kept = Issued(bundle, ca_key, KeyPair(certificate, key))
        if kept.lasting(names, now):
            return kept
    made = issue(names, now, kept)
    if place.lasting:
        for name, data in zip(_FILES, (made.bundle, made.ca_key, *made.pair), strict=True):
            place.write(name, data)
    return made


def _users(settings: UpSettings, place: Place) -> dict[str, User]:
    """Whom to let in. A file of tokens that is not there is made, with one in it."""
    if settings.token_auth_file:
        path = Path(settings.token_auth_file)
        if not path.exists():
            write_private(path, _fresh_token())
        return _read_users(read_file(path), str(path))
    if is_loopback(settings.host):
        return {}
    data = place.read(_TOKENS) if place.lasting else b""
    if not data:
        data = _fresh_token()
        if place.lasting:
            place.write(_TOKENS, data)
    return _read_users(data, str(place.directory / _TOKENS))


def _fresh_token() -> bytes:
    return f"{secrets.token_urlsafe(32)},{ADMIN.name},{ADMIN.name}\n".encode()


def _read_users(data: bytes, source: str) -> dict[str, User]:
    """Every line of a file of tokens. Raises `ConfigError`: to let in everybody by mistake is not for us."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source} is not text; write token,user,uid on each line") from error
    users: dict[str, User] = {}
    rows = csv.reader(text.splitlines(), skipinitialspace=True)
    for row in filter(None, rows):
        token, name, uid, *groups = (*(each.strip() for each in row), "", "", "")[: max(3, len(row))]
        if not _is_token(token) or not name:
            raise ConfigError(f"{source}:{rows.line_num}: is no line with a token; write token,user,uid")
        users[token] = User(name, uid, tuple(filter(None, ",".join(groups).split(","))))
    if not users:
        raise ConfigError(f"{source} has no token in it; write token,user,uid on a line, or remove the file")
    return users


def _is_token(text: str) -> bool:
    """Whether it can stand in a header."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text
