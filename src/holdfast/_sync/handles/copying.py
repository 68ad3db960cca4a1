# Generated from src/holdfast/_async/handles/copying.py by tools/unasync.py; do not edit.
"""Moving from one store to another, by URL."""

from holdfast._sync.flows.copying import Progress, copy_all, list_names
from holdfast.commands import EndImport
from holdfast.connect import connect
from holdfast.copies import without_password
from holdfast.errors import StoreMoved
from holdfast.results import CopyResult
from holdfast.stores import Store


def copy(source_url: str, target_url: str, *, merge: bool = False, progress: Progress | None = None) -> CopyResult:
    """Move every queue and dict from one store to another, and seal the source: whoever opens or uses it gets `StoreMoved`.

    Ids, attempts, failures, histories, positions, priorities, keys, buffered copies, budgets, dead letters, settings, revisions and fences
    are kept; what remains of delays and times to live is carried over; tokens go on above the source's, and watches begin anew. Every page
    is read back and compared.

    Raises `Refused`, with the source unchanged, while claims or leases live in it, if it is written to meanwhile, and if the target is not
    empty; with `merge=True` it may be, and only what is in both is refused. `progress` is called after each page. Interrupted anywhere, it
    goes on from there when it is called again. Keep the target unused until it is done.
    """
    try:
        source = connect(source_url)
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


def _close(store: Store) -> None:
    # What is in memory, others of this process have too, and it would be gone.
    if store.guarantees.shared_by != "threads":
        store.close()
