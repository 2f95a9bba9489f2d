"""Reading YAML and JSON: files, directories, standard input; several documents to a file.

A document remembers where it came from. The line of a field is looked up only when there is something to say about
it, by reading the text a second time: the first reading stays fast.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    FieldPath = tuple[str | int, ...]

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"

_DEPTH_MAX = 200
_BRACKETS = re.compile(r"[\[\]{}]")
_COMPACT_NESTING = re.compile(r"^ {400}|(?:[-?:][ \t]+){50}", re.MULTILINE)
"""What many levels without brackets look like: far to the right, or `- - - -`."""


class Progress(Protocol):
    """Told how much of what there is to read has been read."""

    def __call__(self, done: int, total: int, /) -> None:
        """So many bytes of so many."""


class UnreadableError(Exception):
    """A file that cannot be read or parsed: what is wrong, and where."""

    def __init__(self, source: str, line: int | None, message: str) -> None:
        super().__init__(message)
        self.source = source
        self.line = line
        self.message = message


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it: no timestamps, and a key given twice is an error, not a guess."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - how PyYAML is told
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) < len(node.value):
            seen: set[object] = set()
            for key, _ in node.value:
                name = self.construct_object(key)
                if name in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {name!r} is given twice; keep one", key.start_mark
                    )
                seen.add(name)
        return mapping


@dataclass(frozen=True)
class Source:
    """One file's text."""

    name: str
    data: bytes = field(repr=False)

    def documents(self, progress: Callable[[int], None]) -> Iterator[Document]:
        """What the file holds, empty documents left out. `progress` is told of bytes as they are read."""
        text = self._text
        if text.lstrip()[:1] in ("{", "["):
            try:
                raw = msgspec.json.decode(self.data)
            except (msgspec.DecodeError, RecursionError):
                pass  # YAML may begin with a bracket too, and its parser knows the line
            else:
                progress(len(self.data))
                yield Document(self, 0, raw)
                return
        try:
            if _may_be_deep(text):
                _refuse_depth(self.name, text)
            for number, raw in enumerate(yaml.load_all(_Counted(self.data, progress), Loader=_Loader)):
                if raw is not None:
                    yield Document(self, number, raw)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise UnreadableError(self.name, mark.line + 1 if mark else None, _one_line(error)) from error
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise UnreadableError(self.name, None, f"is no YAML: {_one_line(error)}") from error

    def line(self, number: int, path: FieldPath) -> int | None:
        """The line of a field of a document, or of the closest thing around it that is there."""
        if number >= len(self._composed):
            return None
        node = self._composed[number]
        line = int(node.start_mark.line) + 1
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            at, node = found
            line = int(at.start_mark.line) + 1
        return line

    @cached_property
    def _text(self) -> str:
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise UnreadableError(
                self.name, line, f"is not text: byte 0x{self.data[error.start]:02x} is no UTF-8; give YAML or JSON"
            ) from error

    @cached_property
    def _composed(self) -> list[yaml.Node]:
        try:
            return list(yaml.compose_all(self.data, Loader=_Loader))
        except (yaml.YAMLError, RecursionError):
            return []  # JSON that is no YAML: its objects are named without a line


@dataclass(frozen=True)
class Document:
    """One document of a file, or one item of a list in it."""

    source: Source
    number: int
    raw: object = field(repr=False)
    path: FieldPath = ()

    def item(self, *path: str | int, raw: object) -> Document:
        """A part of this document as one of its own."""
        return Document(self.source, self.number, raw, self.path + path)

    def line(self, path: FieldPath = ()) -> int | None:
        """The line of a field."""
        return self.source.line(self.number, self.path + path)


def read_sources(names: Iterable[str], *, recursive: bool = False) -> list[Source]:
    """The files behind names: a file, a directory's YAML and JSON files, or `-` for standard input.

    A file named twice is read once. Raises `UnreadableError`.
    """
    sources: dict[str, Source] = {}
    for name in names:
        if name == STDIN:
            sources.setdefault(STDIN, Source("<stdin>", sys.stdin.buffer.read()))
            continue
        for path in _files(Path(name), recursive=recursive):
            try:
                source = Source(str(path), path.read_bytes())
                sources.setdefault(str(path.resolve()), source)
            except OSError as error:
                raise UnreadableError(str(path), None, f"cannot be read: {error.strerror}") from error
    return list(sources.values())


def read_documents(sources: list[Source], progress: Progress) -> Iterator[Document | UnreadableError]:
    """Every document; a file that cannot be parsed gives the error in the place of the rest of it."""
    total, before = sum(len(source.data) for source in sources), 0
    for source in sources:
        empty = True
        try:
            for document in source.documents(lambda done, before=before: progress(before + done, total)):  # type: ignore[misc]
                empty = False
                yield document
            if empty:
                yield UnreadableError(source.name, None, "is empty: there is no object in it")
        except UnreadableError as error:
            yield error
        before += len(source.data)


def _files(path: Path, *, recursive: bool) -> list[Path]:
    if not path.is_dir():
        if not path.exists():
            raise UnreadableError(str(path), None, "there is no such file or directory")
        return [path]
    found = sorted(each for each in (path.rglob("*") if recursive else path.iterdir()) if each.suffix in SUFFIXES)
    if not found:
        hint = "" if recursive else "; -R looks into the directories below it"
        raise UnreadableError(str(path), None, f"has no file that ends in {', '.join(SUFFIXES)}{hint}")
    return found


class _Counted(BytesIO):
    """A stream that says how far it has been read."""

    def __init__(self, data: bytes, progress: Callable[[int], None]) -> None:
        super().__init__(data)
        self._progress = progress

    def read(self, size: int | None = -1) -> bytes:
        chunk = super().read(size)
        self._progress(self.tell())
        return chunk


def _may_be_deep(text: str) -> bool:
    """Whether a glance does not rule out that something is nested deeper than the parser can bear: it would crash."""
    if _COMPACT_NESTING.search(text):
        return True
    depth = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "[{" else -1
        if depth > _DEPTH_MAX:
            return True
    return False


def _refuse_depth(source: str, text: str) -> None:
    """Look closely, without recursion. Raises `UnreadableError` where it is too deep."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEPTH_MAX:
            line = event.start_mark.line + 1
            raise UnreadableError(source, line, f"is nested more than {_DEPTH_MAX} deep; no object of ours is")


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Where a step of a path stands, and what it leads to."""
    if isinstance(node, yaml.MappingNode) and isinstance(step, str):
        return next(((key, value) for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None


def _one_line(error: Exception) -> str:
    parts = [error.context, error.problem] if isinstance(error, yaml.MarkedYAMLError) else [str(error)]
    return re.sub(r"\s+", " ", ": ".join(part for part in parts if part))
