"""What the query of a request asks for, and what of it makes no sense.

Options are refused in the words of Kubernetes, under the name of the object that it reads them into.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from cidrella.apiserver.words.faults import forbidden, not_supported, quoted
from cidrella.apiserver.words.statuses import Fault, StatusError, bad_request, invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cidrella.apiserver.serving.calls import Call

IGNORE: Final = "Ignore"
WARN: Final = "Warn"
STRICT: Final = "Strict"
EXACT: Final = "Exact"
NOT_OLDER: Final = "NotOlderThan"

_VALIDATIONS: Final = ("", IGNORE, STRICT, WARN)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_INT64: Final = range(-(1 << 63), 1 << 63)
_VERBS: Final = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}


class WriteOptions(NamedTuple):
    """Of a write."""

    dry_run: bool = False
    validation: str = WARN
    """What becomes of unknown fields: IGNORE, WARN, STRICT."""


class ListOptions(NamedTuple):
    """Of a list or a watch."""

    watch: bool = False
    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""
    """Where a list goes on."""
    version: str = ""
    match: str = ""
    """What the version means: EXACT, NOT_OLDER, or nothing."""
    bookmarks: bool = False
    initial: bool | None = None
    """Whether a watch begins with what there is; None: as the version has it."""
    timeout: int | None = None
    """Seconds."""


def write_options(call: Call) -> WriteOptions:
    """Of a request that writes. Raises `StatusError`."""
    if not call.query:
        return WriteOptions()
    validation = call.option("fieldValidation")
    found = dry_run_faults(call.query.get("dryRun", ()))
    if validation not in _VALIDATIONS:
        found.append(not_supported("fieldValidation", validation, _VALIDATIONS))
    refuse(_VERBS[call.method], found)
    return WriteOptions("dryRun" in call.query, validation or WARN)


def dry_run_faults(asked: Sequence[str]) -> list[Fault]:
    """What is wrong with what is asked of a dry run."""
    if all(each == "All" for each in asked):
        return []
    listed = f"[{','.join(map(quoted, asked))}]"
    return [Fault("FieldValueNotSupported", "dryRun", f'Unsupported value: {listed}: supported values: "All"')]


def list_options(call: Call) -> ListOptions:
    """Of a request that lists or watches. Raises `StatusError`."""
    if not call.query:
        return ListOptions()
    options = ListOptions(
        watch=_flag(call, "watch"),
        labels=call.option("labelSelector"),
        fields=call.option("fieldSelector"),
        limit=max(number(call, "limit") or 0, 0),
        token=call.option("continue"),
        version=call.option("resourceVersion"),
        match=call.option("resourceVersionMatch"),
        bookmarks=_flag(call, "allowWatchBookmarks"),
        initial=_flag(call, "sendInitialEvents") if "sendInitialEvents" in call.query else None,
        timeout=number(call, "timeoutSeconds"),
    )
    refuse("ListOptions", _watch_faults(options) if options.watch else _list_faults(options))
    return options


def refuse(kind: str, found: list[Fault]) -> None:
    """Raise the refusal of options, if anything is wrong with them."""
    if found:
        raise invalid(kind, "meta.k8s.io", "", found)


def parse_version(text: str) -> int:
    """A version that an object names, 0 for none. Raises `StatusError`: the real server takes the fault on itself."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise StatusError(500, "", unreadable(text))
    return int(text)


def unreadable(text: str, what: str = "ParseUint") -> str:
    """Why a text is no number."""
    return f"strconv.{what}: parsing {quoted(text)}: invalid syntax"


def _list_faults(options: ListOptions) -> list[Fault]:
    match, name = options.match, "resourceVersionMatch"
    found: list[Fault] = []
    if match and not options.version:
        found.append(forbidden(name, f"{name} is forbidden unless resourceVersion is provided"))
    if match and options.token:
        found.append(forbidden(name, f"{name} is forbidden when continue is provided"))
    if match not in {"", EXACT, NOT_OLDER}:
        found.append(not_supported(name, match, (EXACT, NOT_OLDER, "")))
    if match == EXACT and options.version == "0":
        found.append(forbidden(name, f'{name} "exact" is forbidden for resourceVersion "0"'))
    if options.initial is not None:
        found.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return found


def _watch_faults(options: ListOptions) -> list[Fault]:
    match, name = options.match, "resourceVersionMatch"
    found: list[Fault] = []
    if options.initial is not None and match != NOT_OLDER:
        found.append(forbidden(name, f"sendInitialEvents requires setting {name} to NotOlderThan"))
    if match and options.initial is None:
        found.append(forbidden(name, f"{name} is forbidden for watch unless sendInitialEvents is provided"))
    if match not in {"", NOT_OLDER}:
        found.append(not_supported(name, match, (NOT_OLDER,)))
    if options.token:
        found.append(forbidden(name, f"{name} is forbidden when continue is provided"))
    return found


def _flag(call: Call, name: str) -> bool:
    """Whether something is asked for: by whatever value but these."""
    return name in call.query and call.option(name) not in {"false", "0"}


def number(call: Call, name: str) -> int | None:
    """A number in a query; None if nothing is said of it. Raises `StatusError`."""
    text = call.option(name)
    if not text:
        return None
    if not _INTEGER.fullmatch(text):
        raise bad_request(unreadable(text, "ParseInt"))
    if int(text) not in _INT64:
        raise bad_request(f"strconv.ParseInt: parsing {quoted(text)}: value out of range")
    return int(text)
