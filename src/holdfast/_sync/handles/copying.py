# Generated from src/holdfast/_async/handles/copying.py by tools/unasync.py; do not edit.
"""Moves data from one store to another, by URL."""

from holdfast._sync.flows.copying import Progress, copy_all, list_names, raise_numbers
from holdfast.commands import EndImport, Seal, Survey
from holdfast.connect import connect, is_private, seal_of
from holdfast.errors import HoldfastError, NotAllowed, Refused, StoreMoved
from holdfast.passwords import without_password
from holdfast.process.blocking_calls import call
from holdfast.results import CopyResult, CopyUndone
from holdfast.stores import Store
from holdfast.stores.seals import Sealed


def copy(source_url: str, target_url: str, *, merge: bool = False, progress: Progress | None = None) -> CopyResult:
    """Move every queue and dict from one store to another, and seal the source: opening or using it raises `StoreMoved`.

    Ids, attempts, failures, histories, positions, priorities, keys, buffered copies, budgets, dead letters, settings, revisions and fences
    are kept; what remains of delays and times to live is carried over; tokens go on above the source's, and watches start again. Every page
    is read back and compared.

    Raises `StoreMissing` if there is no source, and `Refused`, with the source unchanged, if nothing was ever kept in it, while claims or
    leases live in it, if it is written to meanwhile, and if the target is not empty; with `merge=True` it may be, and only what is in both
    is refused. `progress` is called after each page. Interrupted anywhere, it goes on from there when it is called again. Keep the target
    unused until it is done. `undo_copy` takes it back.
    """
    if is_private(target_url):
        raise ValueError(
            "a copy in memory:// would be gone when this call returns: name a file, a server, or memory://NAME of this process"
        )
    try:
        source = connect(source_url, create=False)
    except StoreMoved as moved:
        return _finish(without_password(source_url), target_url, moved)
    try:
        target = connect(target_url)
        try:
            return _copy(source, target, merge=merge, progress=progress)
        finally:
            _close(target)
    finally:
        _close(source)


def _copy(source: Store, target: Store, *, merge: bool, progress: Progress | None) -> CopyResult:
    names = without_password(source.url), without_password(target.url)
    if names[0] == names[1]:
        raise ValueError(f"{names[0]} is source and target: name two stores")
    copying, contents, is_resumed = copy_all(source, target, *names, merge=merge, progress=progress)
    return CopyResult(*names, len(contents.queues), len(contents.dicts), copying.messages, copying.entries, copying.checksum, is_resumed)


def _finish(source_name: str, target_url: str, moved: StoreMoved) -> CopyResult:
    """Go on after an interruption that came when the source was sealed already; raise where there is nothing left to do."""
    target = connect(target_url)
    try:
        target_name = without_password(target.url)
        copying = target.execute(EndImport()) if moved.url == target_name else None
        if copying is None:
            raise moved
        queues, dicts = list_names(target, "queue"), list_names(target, "dict")
    finally:
        _close(target)
    counts = (len(queues), len(dicts), copying.messages, copying.entries)
    return CopyResult(source_name, target_name, *counts, copying.checksum, resumed=True)


def undo_copy(source_url: str, target_url: str | None = None, *, force: bool = False) -> CopyUndone:
    """Take a copy back: seal its target, and let its source be used again as it was.

    Name the target only if its URL has a password, which the source does not know. Raises `Refused`, with nothing changed, if the source is
    not sealed, and if the target was used since, was merged with something else or cannot be reached. With `force=True` the source is
    opened nevertheless and the target left alone: what was done there since is not in the source, and what is in both may be done twice.
    Tokens go on above those of the target, and watches start again.
    """
    seal = seal_of(source_url)
    sealed = call(seal.read)
    if sealed is None:
        raise Refused(f"{seal.url} is not sealed: there is no copy to undo")
    target_url = sealed.to if target_url is None else target_url
    try:
        _seal_target(target_url, sealed, seal.url)
    except HoldfastError as error:
        if not force:
            raise _not_undone(seal.url, sealed.to, error) from error
        latest = _latest(target_url)
        call(seal.remove)
        _raise_numbers(source_url, latest)
        return CopyUndone(seal.url, sealed.to, target_sealed=False)
    call(seal.remove)
    return CopyUndone(seal.url, sealed.to, target_sealed=True)


def _not_undone(source_name: str, target_name: str, error: HoldfastError) -> Refused:
    if isinstance(error, NotAllowed):
        return Refused(f"{source_name} stays sealed: {error}; name the target's URL with its password as well")
    return Refused(f"{source_name} stays sealed: {error}; if you still need the source, stop all users of {target_name} and force it")


def _seal_target(target_url: str, sealed: Sealed, source_name: str) -> None:
    """Seal the target if it is as the copy left it."""
    if sealed.target_at is None:
        raise Refused(f"it was merged into {sealed.to}, and whether that was used since is unknown")
    try:
        target = connect(target_url, create=False)
    except StoreMoved as moved:
        # The undoing was interrupted behind this point.
        if moved.url != source_name:
            raise
        return
    try:
        if without_password(target.url) != sealed.to:
            raise ValueError(f"{source_name} was copied to {sealed.to}, not to {without_password(target.url)}")
        if (target.execute(Survey())).latest != sealed.target_at:
            raise Refused(f"{sealed.to} was written to since the copy")
        target.execute(Seal(source_name, sealed.target_at))
    finally:
        _close(target)


def _latest(url: str) -> int:
    """The newest number that the store gave out; 0 if it cannot be reached."""
    try:
        store = connect(url, create=False)
        try:
            return (store.execute(Survey())).latest
        finally:
            _close(store)
    except HoldfastError:
        return 0


def _raise_numbers(url: str, above: int) -> None:
    store = connect(url)
    try:
        raise_numbers(store, above)
    finally:
        _close(store)


def _close(store: Store) -> None:
    # What is in memory, others of this process have too, and it would be gone.
    if store.guarantees.shared_by != "threads":
        store.close()
