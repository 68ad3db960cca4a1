"""The default attempt store."""

from collections.abc import Callable

from holdfast.holding.with_block import Body
from holdfast.surfaces.localqueue.attempts.stores import AttemptStore, URLAttemptStore

_chosen: list[AttemptStore] = []
_factories: list[Callable[[], AttemptStore]] = []
_made: dict[object, AttemptStore] = {}
"""What the factory made, by thread."""


def configure_default_store(store: AttemptStore | None = None) -> None:
    """Make this the default of every thread; None goes back to the store of `HOLDFAST_URL`, or the default file."""
    _factories.clear()
    _chosen[:] = [] if store is None else [store]


def configure_default_store_factory(factory: Callable[[], AttemptStore]) -> None:
    """Have each thread make its own default."""
    _chosen.clear()
    _factories[:] = [factory]


def close_default_store(all_threads: bool = False) -> None:  # noqa: FBT001, FBT002 - as documented
    """Close what the factory made for this thread, or for all of them."""
    threads = [*_made] if all_threads else [Body.current()]
    for thread in threads:
        store = _made.pop(thread, None)
        close = getattr(store, "close", None)
        if close is not None:
            close()


def chosen_store() -> AttemptStore | None:
    """What was configured, None where nothing was."""
    if _chosen:
        return _chosen[0]
    if not _factories:
        return None
    thread = Body.current()
    if thread not in _made:
        _made[thread] = _factories[0]()
    return _made[thread]


def default_store() -> AttemptStore:
    """What was configured, else the store that every handle without one uses."""
    return chosen_store() or URLAttemptStore()
