"""Registers which function works on which queue: one per queue, because jobs do not name a function."""

import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Function = Callable[..., Any]
Place = tuple[object, str]
"""A store, as far as it is known where a worker is defined, and the name of a queue in it."""

# Guards _defined.
_lock = threading.Lock()
_defined: dict[Place, "weakref.ref[Function]"] = {}


def define(function: Function, store: object, queue: str) -> None:
    """Note that the function works on the queue; ValueError if another one does.

    Only functions at the top of a module count: one made inside another function may have been made for a moment, as in a test.
    """
    if "<locals>" in getattr(function, "__qualname__", "<locals>"):
        return
    with _lock:
        known = _defined.get((store, queue))
        other = None if known is None else known()
        if other is not None:
            refuse_two([(other, (store, queue)), (function, (store, queue))])
        _defined[store, queue] = weakref.ref(function)


def refuse_two(functions: Iterable[tuple[Function, Place]]) -> None:
    """Raise `ValueError` if two different functions are to work on one queue."""
    found: dict[Place, Function] = {}
    for function, place in functions:
        other = found.setdefault(place, function)
        if not is_same(function, other):
            raise ValueError(
                f"queue {place[1]!r} has the functions {name_of(other)} and {name_of(function)}, and each would get jobs that were put for "
                "the other: give each function a queue of its own"
            )


def is_same(one: Function, other: Function) -> bool:
    """Whether both are one function, perhaps defined again: its module was reloaded, or imported under another name."""
    if one is other:
        return True
    names = [getattr(function, "__qualname__", None) for function in (one, other)]
    return None not in names and names[0] == names[1] and (one.__module__ == other.__module__ or _file(one) == _file(other) != "")


def name_of(function: Function) -> str:
    """What people call a function, with its module, also where that is the program itself."""
    module = getattr(function, "__module__", "?")
    return f"{_program() if module == '__main__' else module}.{getattr(function, '__qualname__', type(function).__qualname__)}"


def _program() -> str:
    """The name by which other programs would import this one."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    return spec.name.removesuffix(".__main__") if spec is not None else Path(getattr(main, "__file__", "__main__")).stem


def _file(function: Function) -> str:
    code = getattr(function, "__code__", None)
    return getattr(code, "co_filename", "")
