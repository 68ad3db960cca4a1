"""Modules of a store that are broken in one way, and made whole again."""

import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType, ModuleType
from unittest.mock import patch


@contextmanager
def broken(module: ModuleType, find: str, instead: str) -> Iterator[None]:
    """Replace what a pattern finds in the text of a module's functions while the block runs, wherever they were imported."""
    text, count = re.subn(find, instead, inspect.getsource(module))
    assert count, f"{module.__name__} has no {find!r} any more: break what has taken its place"
    made = dict(vars(module))
    exec(compile(text, str(module.__file__), "exec"), made)  # noqa: S102 - the project's own code, a little changed
    whole = {one: made[name] for name, one in vars(module).items() if isinstance(one, FunctionType) and one.__module__ == module.__name__}
    with ExitStack() as stack:
        for other in [other for name, other in sys.modules.items() if name.startswith("holdfast.")]:
            for name, one in list(vars(other).items()):
                if isinstance(one, FunctionType) and one in whole:
                    stack.enter_context(patch.object(other, name, whole[one]))
        yield
