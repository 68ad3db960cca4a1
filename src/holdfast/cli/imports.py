"""The commands `holdfast import …`."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Annotated

import typer
from msgspec import Struct

from holdfast.cli.commands import DefaultGroup
from holdfast.cli.opening import AsJson, StoreUrl, reached
from holdfast.cli.owner import act_as_owner_of
from holdfast.cli.progress import Lines, progress_bar
from holdfast.cli.showing import print_result
from holdfast.wording import counted


class Imported(Struct, frozen=True):
    """How much was put into the store."""

    messages: int
    entries: int
    source: str
    target: str


HELP = "Read an export, or what another library wrote, into a store. `holdfast import FILE` reads an export."


class ImportGroup(DefaultGroup):
    """In which what names no command is the file of an export."""

    default = "file"


imports: typer.Typer = typer.Typer(name="import", cls=ImportGroup, no_args_is_help=True, help=HELP)


@imports.command()
def file(
    name: Annotated[str, typer.Argument(metavar="FILE", help="What `holdfast export` wrote; - is the standard input.")],
    *,
    url: StoreUrl = None,
    merge: Annotated[bool, typer.Option("--merge", help="Into a store that is not empty; what is in both is refused.")] = False,
    progress: Lines = False,
    as_json: AsJson = False,
) -> None:
    """Read an export into a store, page by page, each read back and compared.

    The export is read to its end first: if a line of it is broken, the line is named and nothing is imported. Ids, attempts, histories,
    delays, keys, revisions and fences are kept, and tokens continue above those of the exported store. After an interruption it continues
    when it is called again.
    """
    from holdfast._sync.flows.importing import import_pages
    from holdfast.cli.export_file import check_export, pages_in

    with twice_readable(name) as source:
        header, trailer = check_export(source, name)
        source.seek(0)
        with reached(url, create=True) as store, progress_bar("importing pages", lines=progress, quiet=as_json) as show:
            told, pages = f"export of {header.url}@{trailer.checksum[:16]}", pages_in(source, name)
            copying = import_pages(store, told, header.survey, pages, merge=merge, progress=lambda done: show(done, trailer.pages))
            imported = Imported(copying.messages, copying.entries, header.url, store.url)
    print_imported(imported, as_json=as_json)


@contextmanager
def twice_readable(name: str) -> Iterator[IO[bytes]]:
    """The file to read: it is checked before it is imported. What comes through a pipe is kept in a file of its own meanwhile."""
    with ExitStack() as stack:
        source = sys.stdin.buffer if name == "-" else stack.enter_context(Path(name).open("rb"))
        if not source.seekable():
            kept = stack.enter_context(TemporaryFile())
            copyfileobj(source, kept)
            kept.seek(0)
            source = kept
        yield source


def print_imported(imported: Imported, *, as_json: bool) -> None:
    """Say how much was imported."""
    counts = f"{counted(imported.messages, 'message')} and {counted(imported.entries, 'record')}"
    print_result(imported, f"Imported {counts} from {imported.source} to {imported.target}.", as_json=as_json)


@imports.command()
def localqueue(
    file: Annotated[Path, typer.Argument(help="The SQLite file or LMDB folder; it is only read.")],
    *,
    url: StoreUrl = None,
    merge: Annotated[bool, typer.Option("--merge", help="Into a store that is not empty; what is in both is refused.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put what localqueue kept, its queues, attempts, ledger and results, into a store.

    Stop localqueue's workers first: a message that is leased is refused. After an interruption it continues when it is called again.
    """
    from holdfast.client import client_for
    from holdfast.surfaces.localqueue.legacy_import import import_localqueue

    act_as_owner_of(file, url)
    with client_for(url) as client:
        imported = import_localqueue(file, client, merge=merge)
    print_imported(Imported(imported.messages, imported.entries, imported.source, imported.target), as_json=as_json)
