"""The command `holdfast copy`."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.commands import INTERRUPTED
from holdfast.cli.opening import AsJson
from holdfast.cli.owner import act_as_owner_of
from holdfast.cli.progress import Lines, progress_bar
from holdfast.cli.showing import print_result
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.results import CopyResult, CopyUndone


def copy(
    source: Annotated[str, typer.Argument(help="The URL of the store to move from.")],
    target: Annotated[
        str | None, typer.Argument(help="The URL of the store to move to, which must be empty. With --undo only if it needs a password.")
    ] = None,
    *,
    merge: Annotated[bool, typer.Option("--merge", help="Move into a store that is not empty; objects in both are refused.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Undo a copy of the source: seal the target, and reopen the source.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --undo: open the source even if the target was used since, or cannot be reached.")
    ] = False,
    progress: Lines = False,
    as_json: AsJson = False,
) -> None:
    """Move every queue and dict to another store, and seal the source.

    No claim or lease may be held in the source, and nothing may be written to it meanwhile. After an interruption it continues when it is
    called again.
    """
    from holdfast import copy as copy_store

    act_as_owner_of(*(url for url in (source, target) if url is not None))
    if undo:
        take_back(source, target, force=force, as_json=as_json)
        return
    refuse_what_is_lost(target)
    if force:
        raise ValueError("--force belongs to --undo")
    try:
        with progress_bar("counting", lines=progress, quiet=as_json) as show:
            result = copy_store(source, target or "", merge=merge, progress=lambda one: show(one.done, one.total, one.what))
    except KeyboardInterrupt:
        typer.echo("Interrupted: the source is as it was. Call it again to go on from here.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    print_result(result, as_text(result), as_json=as_json)


def refuse_what_is_lost(target: str | None) -> None:
    """Refuse no target at all, and one that would end with this command."""
    if target is None:
        raise ValueError("name a source and a target, as in: holdfast copy sqlite:///small.db lmdb:///large")
    if target.startswith("memory://"):
        raise ValueError(f"a copy in {target} would be gone when this command ends: name a file or a server")


def take_back(source: str, target: str | None, *, force: bool, as_json: bool) -> None:
    """Undo a copy, and say what became of it."""
    from holdfast import undo_copy

    undone = undo_copy(source, target, force=force)
    print_result(undone, as_sentences(undone), as_json=as_json)


def as_sentences(undone: "CopyUndone") -> str:
    """What became of a copy that was undone, for a person."""
    opened = f"{undone.source} can be used again, as it was before the copy."
    if undone.target_sealed:
        return f"{opened}\n{undone.target} is sealed in turn: delete it when you like."
    left = "work done there since the copy is not in the source, and work in both may be done twice. Delete it."
    return f"{opened}\n{undone.target} was left alone: {left}"


def as_text(result: "CopyResult") -> str:
    """The result for a person."""
    messages, queues = counted(result.messages, "message"), counted(result.queues, "queue")
    entries, dicts = counted(result.entries, "entry", "entries"), counted(result.dicts, "dict")
    return (
        f"Moved {messages} of {queues} and {entries} of {dicts} to {result.target}; every page was compared (checksum {result.checksum}).\n"
        f"{result.source} is sealed: opening it reports the new URL. To undo the copy: holdfast copy --undo '{result.source}'"
    )
