"""Options that a TypedDict lists: refusing others, and showing each of them in the signature of what takes them."""

import inspect
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from typing import Annotated, Final, TypeVar, Unpack, get_args, get_origin

from msgspec import NODEFAULT, UNSET, UnsetType
from msgspec.structs import fields

from holdfast.commands import Item

H = TypeVar("H")

DEFAULTS: Final = {field.name: field.default for field in fields(Item) if field.default is not NODEFAULT}
"""What an option is if it is not given, and cannot be None."""


def refuse_unknown(what: str, options: Mapping[str, object], known: AbstractSet[str]) -> None:
    """Raise a TypeError that names the first option that does not exist."""
    if options.keys() <= known:
        return
    name = next(name for name in options if name not in known)
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise TypeError(f"{what} has no option {name!r}: {hint}supported: {', '.join(sorted(known))}")


def show_options(handle: H) -> H:
    """Let `help` and `inspect.signature` show `**options: Unpack[Options]` as what `Options` lists: of a function or a class's methods."""
    for method in vars(handle).values() if isinstance(handle, type) else [handle]:
        function = getattr(method, "__func__", method)
        if inspect.isfunction(function) and function.__code__.co_flags & inspect.CO_VARKEYWORDS:
            signature = inspect.signature(function)
            *parameters, options = signature.parameters.values()
            if get_origin(options.annotation) is Unpack:
                function.__signature__ = signature.replace(parameters=[*parameters, *_listed(options)])  # type: ignore[attr-defined]
    return handle


def _listed(options: inspect.Parameter) -> Iterator[inspect.Parameter]:
    (listing,) = get_args(options.annotation)
    for name, annotation in listing.__annotations__.items():
        kinds = get_args(get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation)
        default = UNSET if UnsetType in kinds else None if type(None) in kinds else DEFAULTS.get(name, ...)
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
