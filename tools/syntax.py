"""Parses Python files, whatever is collected meanwhile."""

import ast
import gc


def parsed(text: str) -> ast.Module:
    """The syntax tree of a module.

    On Python 3.11 `ast.parse` fails if a collection of garbage within it writes a traceback to a log: for that, lines are parsed, too.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if was_on:
            gc.enable()
