"""What the page is made of: files of this package, read once."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from aiohttp import web

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

PAGE: Final = "index.html"
LOGIN_PAGE: Final = "login.html"
FOR_LOGIN: Final = frozenset({"login.js", "login.css", "style.css", "icon.svg"})
"""What the login is made of: nothing in it says that there is more."""

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
}


class Assets:
    """The files by name; those of a kind that browsers are not sent are left out."""

    def __init__(self, directory: Traversable | None = None) -> None:
        where = directory or files("cidrella.web") / "page"
        found = where.iterdir() if where.is_dir() else ()
        self._files = {
            each.name: each.read_bytes() for each in found if each.is_file() and PurePath(each.name).suffix in _TYPES
        }
        self._tags = {name: f'"{hashlib.sha256(data).hexdigest()[:32]}"' for name, data in self._files.items()}

    def answer(self, request: web.Request, name: str) -> web.Response:
        """A file, unless the browser has it already. Raises `HTTPNotFound`."""
        if name not in self._files:
            raise web.HTTPNotFound
        headers = {"ETag": self._tags[name], "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match") == self._tags[name]:
            return web.Response(status=304, headers=headers)
        return web.Response(body=self._files[name], headers={"Content-Type": _TYPES[PurePath(name).suffix], **headers})
