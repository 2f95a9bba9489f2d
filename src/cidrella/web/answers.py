"""Answers in the forms that all of them have."""

from __future__ import annotations

from typing import Final

import msgspec
from aiohttp import web

from cidrella.web.api import Fault

JSON: Final = "application/json; charset=utf-8"


def json(body: bytes, status: int = 200, **headers: str) -> web.Response:
    """Something encoded. It is of this moment, and for nobody else."""
    return web.Response(
        body=body, status=status, headers={"Content-Type": JSON, "Cache-Control": "no-store", **headers}
    )


def fault(status: int, error: str, **headers: str) -> web.Response:
    """No success, and why."""
    return json(msgspec.json.encode(Fault(error=error)), status, **headers)
