"""The file that `holdfast export` writes and `holdfast import` reads: JSON, one object per line.

The first line says what it is, each of the others is a page of records, and the last says how many there were: a file that was cut off is
noticed.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import IO, Final

from msgspec import DecodeError, Struct, ValidationError, json

from holdfast.commands.surveying import Surveyed
from holdfast.copy_pages import Page
from holdfast.errors import StoreCorrupted

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


def read_export(lines: Iterable[str], name: str) -> tuple[Header, list[Page], Trailer]:
    """Read an export, all of it before anything is done with it; `StoreCorrupted` for what is not a whole one."""
    digest, texts = sha256(), [line for line in lines if line.strip()]
    if len(texts) <= 1:
        raise StoreCorrupted(f"{name} is not an export of a store: it has no lines; nothing was imported")
    header = _header(texts[0], name)
    try:
        trailer = json.decode(texts[-1], type=Trailer)
        pages = list(_pages(texts[1:-1]))
    except (DecodeError, ValidationError) as error:
        raise StoreCorrupted(f"{name} is cut off or changed ({error}); nothing was imported: export again") from error
    for text in texts[:-1]:
        digest.update(text.encode())
    if trailer.checksum != digest.hexdigest():
        raise StoreCorrupted(f"{name} was changed since it was written; nothing was imported: export again")
    return header, pages, trailer


def _header(text: str, name: str) -> Header:
    try:
        header = json.decode(text, type=Header)
    except (DecodeError, ValidationError) as error:
        raise StoreCorrupted(f"{name} is not an export of a store; nothing was imported") from error
    if header.holdfast_export != FORMAT:
        raise StoreCorrupted(f"{name} is an export of format {header.holdfast_export}, and this version reads {FORMAT}: upgrade Holdfast")
    return header


def _pages(texts: Iterable[str]) -> Iterator[Page]:
    for text in texts:
        yield json.decode(text, type=Page)


def _written(file: IO[str], value: Struct) -> bytes:
    text = json.encode(value) + b"\n"
    file.write(text.decode())
    return text
