"""Expressions in CEL: checked when a schema comes, and run on every object.

They are compiled twice. Once with types, where addresses, ranges and the objects of the schema are types of their own,
so that what does not fit is refused; nothing of that is run. And once without, on plain JSON, to be run. What is not
there (Kubernetes has more functions than those for addresses and texts) is refused the first time.

What an expression may cost is not estimated: that is for servers that many people share. But `matches` is Python's
where expressions run: CEL's evaluator compiles a pattern anew for every text, which takes seconds for a thousand texts.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.schemas.celaddresses import FUNCTIONS, NO_OVERLOAD
from cidrella.apiserver.schemas.celtypes import Types
from cidrella.apiserver.schemas.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from cidrella.apiserver.schemas.structural import Node

    Json = dict[str, Any]

_OPTIONAL_OLD: Final = "cel.bind(oldSelf, __has ? optional.of(__old) : optional.none(), (\n{}\n))"
"""On lines of its own, so that a column in a message is one of the rule."""
_PATTERNS: Final = 256
"""How many are kept compiled."""
_COMPARED: Final = ("_<_", "_<=_", "_>_", "_>=_")
NOT_A_WHOLE_NUMBER: Final = b"\0"
"""What stands for a number with a point where a whole one belongs: nothing can be done with it."""
NOT_WHOLE: Final = "invalid data, expected int, got float64"

LITERALS: Final = re.compile(r"\"\"\"(?s:.*?)\"\"\"|'''(?s:.*?)'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
"""Texts in an expression."""
_MATCHES: Final = re.compile(rf"{LITERALS.pattern}|\bmatches(?=\s*\()")
_PATTERN: Final = re.compile(r"\bmatches\s*\(\s*r?(?P<quote>['\"])(?P<pattern>[^'\"\\]*)(?P=quote)\s*\)")
_OWN_MATCHES: Final = "matchesPattern"

_ENDS: Final = re.compile(r"^\w+: |\s*\[\w+\]$")
_STRUCT: Final = re.compile(r"(undefined field '[^']*') not found in struct '[^']*'")
_ERRORS: Final = (
    # As CEL's evaluator in C++ says it, and the one in Go.
    (re.compile(r'Key not found in map : "(.*)"', re.DOTALL), "no such key: {}"),
    (re.compile(r"Index error: index=(-?\d+) size=\d+"), "index out of bounds: {}"),
    (re.compile(r"cannot convert (\w+) to (\w+)"), "type conversion error from '{}' to '{}'"),
    (re.compile(r"divide by zero"), "division by zero"),
    (re.compile(r"modulus by zero"), "modulus by zero"),
    (re.compile(r"No matching overloads found.*bytes.*", re.DOTALL), NOT_WHOLE),
    (re.compile(r"No matching overloads found.*", re.DOTALL), NO_OVERLOAD),
)


class MissingLibraryError(RuntimeError):
    """CEL is not installed."""


class ExpressionError(ValueError):
    """An expression that cannot be used, or that could not be evaluated; the message says why."""


@cache
def _library() -> tuple[ModuleType, list[Any]]:
    """CEL, and what of its extensions Kubernetes has."""
    try:
        from cel_expr_python import cel  # noqa: PLC0415 - only schemas with rules need it
        from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings  # noqa: PLC0415 - likewise
        from google.protobuf import descriptor_pool  # noqa: F401, PLC0415 - types come to CEL through it
    except ImportError as error:
        raise MissingLibraryError(
            "rules in schemas need a CEL library, which is not installed; install it with: pip install 'cidrella[up]'"
        ) from error
    return cel, [ext_strings.ExtStrings(), ext_optional.ExtOptional(), ext_bindings.ExtBindings()]


class Checker:
    """Checks the expressions of one schema. Raises `MissingLibraryError`."""

    def __init__(self, root: Node) -> None:
        self._cel, self._extensions = _library()
        self._types = Types(root)
        self._functions = _declared()
        self._environments: dict[str, Any] = {}

    def check(self, text: str, node: Node, wanted: str, *, optional_old: bool = False) -> None:
        """See that an expression about a node has this type, `BOOL` or `STRING`. Raises `ExpressionError`."""
        environment = self._environment(self._types.of(node))
        if optional_old:
            _compile_plainly(text)  # before anything is put around it
        try:
            compiled = environment.compile(_OPTIONAL_OLD.format(text) if optional_old else text)
        except RuntimeError as error:
            told = _STRUCT.sub(r"\1", _ENDS.sub("", str(error)))
            raise ExpressionError(told.replace("<input>:2:", "<input>:1:") if optional_old else told) from None
        _check_patterns(text)
        if compiled.return_type() != getattr(self._cel.Type, wanted):
            raise ExpressionError("")

    def _environment(self, signature: str) -> Any:
        if signature not in self._environments:
            kind = self._cel.Type(signature)
            variables = {"self": kind, "oldSelf": kind, "__old": kind, "__has": self._cel.Type.BOOL}
            self._environments[signature] = self._cel.NewEnv(
                self._types.pool, variables=variables, extensions=[*self._extensions, self._functions]
            )
        return self._environments[signature]


def _compile_plainly(text: str) -> None:
    try:
        _running().compile(text, disable_check=True)
    except RuntimeError as error:
        raise ExpressionError(_ENDS.sub("", str(error))) from None


def _check_patterns(text: str) -> None:
    """See that what is matched with are patterns, as far as they are written out."""
    for found in _PATTERN.finditer(text):
        try:
            _pattern(found["pattern"])
        except ValueError:
            at = found.start("quote")
            place = f"<input>:1:{at + 1}: invalid matches argument\n | {text}\n | {'.' * at}^"
            raise ExpressionError(f"ERROR: {place}") from None


@lru_cache(_PATTERNS)
def _pattern(text: str) -> re.Pattern[str]:
    return compile_pattern(text)


def _matches(text: str, pattern: str) -> bool:
    return _pattern(pattern).search(text) is not None


@cache
def _declared() -> Any:
    """Kubernetes' functions, with their types."""
    cel, _ = _library()
    declared: dict[str, list[Any]] = {}
    for at, each in enumerate(FUNCTIONS):
        declared.setdefault(each.name, []).append(
            cel.Overload(f"own_{at}", cel.Type(each.gives), list(map(cel.Type, each.takes)), each.member)
        )
    for operator in _COMPARED:  # whole numbers with others, as Kubernetes allows
        declared[operator] = [
            cel.Overload(f"own_{one}_{operator}_{other}", cel.Type.BOOL, [cel.Type(one), cel.Type(other)], False)
            for one, other in (("int", "double"), ("double", "int"))
        ]
    return cel.CelExtension("kubernetes", [cel.FunctionDecl(name, each) for name, each in declared.items()])


@cache
def _running() -> Any:
    """The environment in which expressions run: addresses and ranges are texts in it."""
    cel, extensions = _library()
    overloads: dict[str, dict[tuple[object, ...], Any]] = {}
    for at, each in enumerate(FUNCTIONS):
        if each.name == "string":
            continue  # of a text: CEL has it
        takes = [cel.Type.STRING for _ in each.takes]
        gives = cel.Type(each.gives) if "." not in each.gives else cel.Type.STRING
        overload = cel.Overload(f"own_{at}", gives, takes, each.member, each.does)
        overloads.setdefault(each.name, {})[each.member, len(takes)] = overload
    two = [cel.Type.STRING, cel.Type.STRING]
    overloads[_OWN_MATCHES] = {
        (member,): cel.Overload(f"own_matches_{member}", cel.Type.BOOL, two, member, _matches)
        for member in (True, False)
    }
    return cel.NewEnv(
        variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN, "__old": cel.Type.DYN, "__has": cel.Type.BOOL},
        extensions=extensions,
        functions=[cel.FunctionDecl(name, list(each.values())) for name, each in overloads.items()],
    )


def activation(value: Any, old: Any, *, has_old: bool) -> Any:
    """What an expression is evaluated with."""
    data: Mapping[str, Any] = {"self": value, "oldSelf": old, "__old": old, "__has": has_old}
    return _running().Activation(data)


class Program:
    """An expression that can be run."""

    def __init__(self, text: str, *, optional_old: bool = False) -> None:
        own = _MATCHES.sub(lambda each: _OWN_MATCHES if each[0] == "matches" else each[0], text)
        self._compiled = _running().compile(_OPTIONAL_OLD.format(own) if optional_old else own, disable_check=True)

    def evaluate(self, given: Any) -> Any:
        """What it comes to. Raises `ExpressionError` in the words of Kubernetes."""
        result = self._compiled.eval(given)
        if result.type() == _library()[0].Type.ERROR:
            raise ExpressionError(_in_words(str(result.value())))
        return result.value()


def _in_words(error: str) -> str:
    told = _ENDS.sub("", error)
    for pattern, words in _ERRORS:
        if found := pattern.search(told):
            return words.format(*found.groups())
    return told
