"""The file that `holdfast export` writes and `holdfast import` reads: JSON, one object per line.

The first line says what it is, each of the others is a page of records, and the last says how many there were: a file that was cut off is
noticed.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice, pairwise
from typing import IO, Final, NamedTuple, TypeVar

from msgspec import DecodeError, Struct, ValidationError, json

from holdfast.commands.surveying import Surveyed
from holdfast.errors import StoreCorrupted
from holdfast.views.copy_pages import Page

R = TypeVar("R", bound=Struct)

FORMAT: Final = 1


class Header(Struct, frozen=True):
    """The first line."""

    holdfast_export: int
    url: str
    survey: Surveyed


class Trailer(Struct, frozen=True):
    """The last line."""

    pages: int
    messages: int
    entries: int
    checksum: str
    """Of the lines before it."""


def write_export(file: IO[str], header: Header, pages: Iterable[Page]) -> Trailer:
    """Write an export; return its last line."""
    digest, count, messages, entries = sha256(_written(file, header)), 0, 0, 0
    for page in pages:
        digest.update(_written(file, page))
        count, messages, entries = count + 1, messages + len(page.messages), entries + len(page.entries)
    trailer = Trailer(count, messages, entries, digest.hexdigest())
    _written(file, trailer)
    return trailer


def check_export(lines: Iterable[bytes], name: str) -> tuple[Header, Trailer]:
    """Read an export from its first line to its last, before anything is done with it, and keep none of its pages.

    Raises `StoreCorrupted`, with the number of the line, for what is not a whole one.
    """
    rows = _rows(lines)
    first, last = next(rows, None), next(rows, None)
    if first is None or last is None:
        raise StoreCorrupted(f"{name} is not an export of a store: it has no lines; nothing was imported")
    header, digest, count = _header(first, name), sha256(first.text), 0
    for row in rows:
        _decoded(last, Page, name)
        digest.update(last.text)
        last, count = row, count + 1
    trailer = _decoded(last, Trailer, name)
    if trailer.pages != count or trailer.checksum != digest.hexdigest():
        raise StoreCorrupted(f"{name} was changed since it was written; nothing was imported: export again")
    return header, trailer


def pages_in(lines: Iterable[bytes], name: str) -> Iterator[Page]:
    """The pages of an export that was checked, each read when it is asked for."""
    for row, _ in pairwise(islice(_rows(lines), 1, None)):
        yield _decoded(row, Page, name)


class _Row(NamedTuple):
    """A line that is not empty."""

    number: int
    text: bytes


def _rows(lines: Iterable[bytes]) -> Iterator[_Row]:
    for number, line in enumerate(lines, 1):
        if text := line.rstrip():
            yield _Row(number, text + b"\n")


def _header(row: _Row, name: str) -> Header:
    try:
        header = json.decode(row.text, type=Header)
    except (DecodeError, ValidationError, UnicodeDecodeError) as error:
        raise StoreCorrupted(f"{name} is not an export of a store; nothing was imported") from error
    if header.holdfast_export != FORMAT:
        raise StoreCorrupted(f"{name} is an export of format {header.holdfast_export}, and this version reads {FORMAT}: upgrade Holdfast")
    return header


def _decoded(row: _Row, kind: type[R], name: str) -> R:
    try:
        return json.decode(row.text, type=kind)
    except (DecodeError, ValidationError, UnicodeDecodeError) as error:
        raise StoreCorrupted(f"{name} is cut off or changed: line {row.number} cannot be read ({error}); nothing was imported") from error


def _written(file: IO[str], value: Struct) -> bytes:
    text = json.encode(value) + b"\n"
    file.write(text.decode())
    return text
