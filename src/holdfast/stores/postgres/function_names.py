"""The SQL functions of this release, whose names end with a digest of their texts: each release calls its own, beside those of others.

The files write plain names, with the bracket right behind them in a call. A function in `from` has an alias: its own name is another.
"""

import re
from functools import cache
from hashlib import sha256
from importlib.resources import files

from holdfast.stores.postgres.placeholders import DEFINITION, filled_in

CREATED = re.compile(r"^create or replace function (\w+)\(", re.MULTILINE)


@cache
def texts_in(folder: str) -> list[str]:
    """The SQL files of a folder, in the order of their names."""
    found = [path for path in (files(__package__) / folder).iterdir() if path.name.endswith(".sql")]
    return [path.read_text("utf-8") for path in sorted(found, key=lambda path: path.name)]


@cache
def function_texts() -> list[str]:
    """The functions file by file, as they are installed but for their names."""
    return [filled_in(text) for text in texts_in("functions")]


@cache
def digest() -> str:
    """What the names of this release's functions end with."""
    return sha256("\0".join(function_texts()).encode()).hexdigest()[:12]


@cache
def names() -> frozenset[str]:
    """The functions, as the files call them."""
    return frozenset(name for text in function_texts() for name in CREATED.findall(text))


@cache
def _call() -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(names())})(?=\()")


def own(text: str) -> str:
    """The SQL with this release's functions under the names that they are installed by."""
    return _call().sub(rf"\1_{digest()}", DEFINITION.sub(_own_parameters, text))


def _own_parameters(definition: re.Match[str]) -> str:
    """A definition whose parameters are qualified by the function's own name, as in `promote.queue`."""
    return re.sub(rf"\b{definition[1]}(?=\.\w)", f"{definition[1]}_{digest()}", definition[0])
