"""What can go wrong while a collection is listed and watched, and what each fault calls for."""

from __future__ import annotations

from typing import Final, TypeAlias

from cidrella.kube.errors import ApiError, KubeError, MalformedReplyError
from cidrella.kube.replica import RefusalError

_BAD_REQUEST: Final = 400
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_GONE: Final = 410
_UNSERVED: Final = "404 page not found"
"""How an API server words a path that it knows nothing about. Other 404s may be a load balancer's."""


class StallError(Exception):
    """Nothing was heard on a watch for too long."""


class ShortWatchError(Exception):
    """A watch ended in good order, but as soon as it had begun."""


Fault: TypeAlias = KubeError | RefusalError | StallError | ShortWatchError
FAULTS: Final = (KubeError, RefusalError, StallError, ShortWatchError)


def kind(fault: Fault) -> str:
    """What makes two faults the same to those who read logs."""
    code = f" {fault.code}" if isinstance(fault, ApiError | RefusalError) else ""
    return type(fault).__name__ + code


def told(fault: Fault, path: str) -> str:
    """The fault in words for people."""
    if is_refused(fault):
        assert isinstance(fault, ApiError)
        if fault.code == _FORBIDDEN:
            return f"we are not allowed to list and watch {path} (RBAC): {fault.message}"
        return f"the server does not accept our credentials for {path}: {fault.message}"
    return f"{path}: {fault}"


def is_refused(fault: Fault) -> bool:
    """Whether it takes a person to change it: we are not known, or not allowed."""
    return isinstance(fault, ApiError) and fault.code in {_UNAUTHORIZED, _FORBIDDEN}


def is_absence(fault: Fault) -> bool:
    """Whether the API server does not serve this, rather than something in between not know where to turn."""
    if not isinstance(fault, ApiError) or fault.code != _NOT_FOUND:
        return False
    return fault.reason == "NotFound" or fault.message.startswith(_UNSERVED)


def is_away(fault: Fault) -> bool:
    """Whether the server does not do its work. Forgetting a version and ending a watch are part of that work."""
    if isinstance(fault, ApiError):
        return fault.code != _GONE and not is_absence(fault)
    return not isinstance(fault, RefusalError | ShortWatchError)


def calls_for_list(fault: Fault) -> bool:
    """Whether a watch that met this is not to be tried again as it was."""
    if isinstance(fault, ApiError | RefusalError):
        return fault.code in {_BAD_REQUEST, _NOT_FOUND, _GONE}
    return isinstance(fault, MalformedReplyError)
