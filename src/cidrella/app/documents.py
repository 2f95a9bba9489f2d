"""Reading YAML and JSON: files, directories, standard input; several documents to a file.

A document remembers where it came from. The line of a field is looked up only when there is something to say about
it, by reading the text a second time: the first reading stays fast.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cidrella.app import yamlreader
from cidrella.app.yamlreader import YamlError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cidrella.app.yamlreader import Place

    FieldPath = tuple[str | int, ...]

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"


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


@dataclass(frozen=True)
class Source:
    """One file's text."""

    name: str
    data: bytes = field(repr=False)

    def documents(self, progress: Callable[[int], None]) -> Iterator[Document]:
        """What the file holds, empty documents left out. `progress` is told of bytes as they are read."""
        if self._text.lstrip()[:1] in ("{", "["):
            try:
                raw = json.loads(self._text, object_pairs_hook=_distinct)
            except KeyError as error:
                raise UnreadableError(self.name, None, f"the key {error.args[0]!r} is given twice; keep one") from error
            except (ValueError, RecursionError):
                pass  # YAML may begin with a bracket too, and its parser knows the line
            else:
                progress(len(self.data))
                yield Document(self, 0, raw)
                return
        try:
            for number, raw in enumerate(yamlreader.read(_Counted(self.data, progress))):
                if raw is not None:
                    yield Document(self, number, raw)
        except YamlError as error:
            raise UnreadableError(self.name, error.line, error.message) from error

    def line(self, number: int, path: FieldPath) -> int | None:
        """The line of a field of a document, or of the closest thing around it that is there."""
        if number >= len(self._places):
            return None
        place = self._places[number]
        for step in path:
            if step not in place.inside:
                break
            place = place.inside[step]
        return place.line

    @cached_property
    def _places(self) -> list[Place]:
        return yamlreader.places(self.data)

    @cached_property
    def _text(self) -> str:
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise UnreadableError(
                self.name, line, f"is not text: byte 0x{self.data[error.start]:02x} is no UTF-8; give YAML or JSON"
            ) from error


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
            if STDIN not in sources:
                sources[STDIN] = _standard_input()
            continue
        for path in _files(name, recursive=recursive):
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


def _standard_input() -> Source:
    if sys.stdin is None:  # closed by the shell
        raise UnreadableError("<stdin>", None, "is closed: there is nothing to read")
    return Source("<stdin>", sys.stdin.buffer.read())


def _files(name: str, *, recursive: bool) -> list[Path]:
    path = Path(name)
    try:
        if not name or not path.exists():
            raise UnreadableError(name or "''", None, "there is no such file or directory")
        if not path.is_dir():
            return [path]
        entries = path.rglob("*") if recursive else path.iterdir()
        found = sorted(each for each in entries if each.suffix in SUFFIXES and not each.is_dir())
    except OSError as error:
        raise UnreadableError(name, None, f"cannot be read: {error.strerror}") from error
    if not found:
        hint = "" if recursive else "; -R looks into the directories below it"
        raise UnreadableError(name, None, f"has no file that ends in {', '.join(SUFFIXES)}{hint}")
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


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object, of which no key is given twice. Raises `KeyError` with the one that is."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        seen: set[str] = set()
        raise KeyError(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return mapping
