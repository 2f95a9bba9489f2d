"""Where settings come from: flags before environment variables before a config file before defaults.

Flags are read as Go's programs read theirs, because the manifests they are carried over from are written so:
`--leader-elect` alone is true, `--leader-elect=false` is false, and in `--leader-elect false` the second word is an
argument of its own, which is refused here. Other flags take `--name value` as well as `--name=value`. A flag given
twice counts as given last. `_` in a flag's name is as good as `-`.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from cidrella.app import yamlreader
from cidrella.app.settings import CommonSettings, table
from cidrella.app.values import VERBOSITY, BadValueError, Kind
from cidrella.model.flags import FlagError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cidrella.app.setting import Setting

S = TypeVar("S", bound=CommonSettings)

_CONFIG_MAX: Final = 1_000_000
"""Bytes: a hundred times what a config file can sensibly have."""
_NEAR: Final = 0.8
"""How alike a name must be to be what was meant."""
_VARIABLES: Final = "CIDRELLA_"


class SettingError(ValueError):
    """Settings that cannot be used: one line, for people."""


class HelpWanted(Exception):  # noqa: N818 - no error
    """The arguments ask for help."""


class Given(NamedTuple, Generic[S]):
    """What was read, and what is worth a warning about how."""

    settings: S
    warnings: tuple[str, ...]


class _Flag(NamedTuple):
    """Something that can be on the command line."""

    field: str
    kind: Kind[Any]
    meaning: Callable[[Any], Any] = lambda value: value


def read_settings(kind: type[S], arguments: Sequence[str], environment: Mapping[str, str]) -> Given[S]:
    """A command's settings, checked as a whole. Raises `SettingError` or `HelpWanted`.

    Reads no file but the config file.
    """
    rows = table(kind)
    from_flags = _from_flags(kind, arguments)
    from_variables = _from_variables(rows, environment)
    config = str({**from_variables, **from_flags}.get("config", ""))
    from_file = _from_file(rows, config) if config else {}
    try:
        settings = kind(**{**from_file, **from_variables, **from_flags}).checked()
    except FlagError as error:
        raise SettingError(str(error)) from error
    return Given(settings, (*_near_misses(rows, environment), *settings.warnings))


def _flags(kind: type[CommonSettings]) -> Mapping[str, _Flag]:
    """Every flag by how it is written: the table's, and other words for some of them."""
    known = {row.flag: _Flag(row.field, row.kind) for row in table(kind).values()}
    for opposite, name in kind.OPPOSITES.items():
        known[f"--{opposite}"] = known[f"--{name}"]._replace(meaning=lambda truth: not truth)
    known["-v"] = known["--v"] = _Flag("log_level", VERBOSITY)
    return known


def _from_flags(kind: type[CommonSettings], arguments: Sequence[str]) -> dict[str, Any]:
    known = _flags(kind)
    found: dict[str, Any] = {}
    rest = iter(arguments)
    before = ""
    for word in rest:
        if word in ("-h", "--help"):
            raise HelpWanted
        if not word.startswith("-") or word in ("-", "--"):
            raise SettingError(_stray(word, before))
        name, equals, value = _split(word)
        flag = known.get(name)
        if flag is None:
            advice = _suggestion(name, known) or f"; see cidrella {kind.COMMAND} --help"
            raise SettingError(f"unknown flag {name}{advice}")
        if not equals:
            value = "true" if flag.kind.is_truth else _next(rest, name)
        found[flag.field] = flag.meaning(_parsed(flag.kind, value, f"{name}="))
        before = name if flag.kind.is_truth and not equals else ""
    return found


def _split(word: str) -> tuple[str, bool, str]:
    """A flag's name, whether a value is joined to it, and that value. `-v4` is as `-v=4`."""
    if word.startswith("-v") and word[2:].isdecimal():
        return "-v", True, word[2:]
    name, equals, value = word.partition("=")
    return name.replace("_", "-"), bool(equals), value


def _next(rest: Iterator[str], name: str) -> str:
    for value in rest:
        return value
    raise SettingError(f"{name} needs a value; write {name}=VALUE")


def _stray(word: str, before: str) -> str:
    advice = f"; write {before}={word} if it belongs to the flag before it" if before else "; there are only flags"
    return f"unexpected argument {word!r}{advice}"


def _from_variables(rows: Mapping[str, Setting], environment: Mapping[str, str]) -> dict[str, Any]:
    """What the environment says. An empty variable is as none, for templates leave those behind."""
    return {
        row.field: _parsed(row.kind, environment[row.variable], f"{row.variable}=")
        for row in rows.values()
        if environment.get(row.variable)
    }


def _near_misses(rows: Mapping[str, Setting], environment: Mapping[str, str]) -> Iterator[str]:
    """Variables that are almost a setting. Others with our prefix are none of ours: Kubernetes sets some."""
    known = [row.variable for row in rows.values()]
    for name in sorted(environment):
        if name.startswith(_VARIABLES) and name not in known and (near := get_close_matches(name, known, 1, _NEAR)):
            yield f"the environment variable {name} is not known and has no effect; did you mean {near[0]}?"


def _from_file(rows: Mapping[str, Setting], name: str) -> dict[str, Any]:
    data = _read(name)
    try:
        documents = list(yamlreader.read(data))
    except yamlreader.YamlError as error:
        raise SettingError(f"{name}:{error.line or 1}: {error.message}") from error
    if len(documents) > 1:
        raise SettingError(f"{name} holds {len(documents)} documents; settings are one")
    settings = documents[0] if documents else None
    if settings is None:
        return {}
    if not isinstance(settings, dict):
        raise SettingError(f"{name}:1: must be a mapping of settings to values, such as 'leader-elect: false'")
    lines = {key: place.line for key, place in yamlreader.places(data)[0].inside.items()}
    found = {key: _row(rows, key, f"{name}:{lines.get(key, 1)}") for key in settings}
    return {
        row.field: _from_plain(row, settings[key], f"{name}:{lines.get(key, 1)}")
        for key, row in found.items()
        if settings[key] is not None
    }


def _read(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            data = file.read(_CONFIG_MAX + 1)
    except (OSError, ValueError) as error:  # a name with a NUL in it is a ValueError
        raise SettingError(f"the config file {name!r} cannot be read: {getattr(error, 'strerror', error)}") from error
    if len(data) > _CONFIG_MAX:
        raise SettingError(f"the config file {name!r} is larger than {_CONFIG_MAX:,} bytes; is it one?")
    return data


def _row(rows: Mapping[str, Setting], key: object, where: str) -> Setting:
    row = rows.get(str(key))
    if row is None or row.field == "config":
        names = [each for each in rows if each != "config"]
        raise SettingError(f"{where}: {str(key)!r} is no setting{_suggestion(str(key), names)}")
    return row


def _from_plain(row: Setting, raw: object, where: str) -> object:
    try:
        return row.kind.parse_plain(raw)
    except BadValueError as error:
        raise SettingError(f"{where}: {row.name}: {shortened(raw)} {error}") from error


def _parsed(kind: Kind[Any], text: str, where: str) -> object:
    try:
        return kind.parse(text)
    except BadValueError as error:
        raise SettingError(f"{where}{text!r} {error}") from error


def _suggestion(name: str, known: Iterable[str]) -> str:
    """What may have been meant. Case, dashes and underscores do not count: a clusterCIDR is near a cluster-cidr."""
    bare = {each.replace("-", ""): each for each in known}
    near = get_close_matches(name.replace("-", "").replace("_", "").lower(), bare, 1, _NEAR)
    return f"; did you mean {bare[near[0]]}?" if near else ""
