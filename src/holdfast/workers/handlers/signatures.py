"""Checks the signature of a handler, and reads its types."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

from msgspec import Struct

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def check_callable(function: Callable[..., Any], what: str) -> None:
    """Raise `TypeError` unless calling the function does its work: calling a generator function does nothing of it."""
    if not callable(function):
        raise TypeError(f"{what}, not {type(function).__name__}")
    called = (function, getattr(function, "__call__", None))  # noqa: B004 - asked of an object with a method __call__
    if any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in called):
        raise TypeError(
            f"{_shown(function)} is a generator function, and nothing of it would be run: return a list instead of yielding, "
            "or put a job for each part"
        )


def wants_job(function: Callable[..., Any]) -> bool:
    """Whether the function has a parameter `job` behind the value; raises `TypeError` if it cannot be called with one value."""
    parameters = _parameters(function)
    if parameters is None:
        return False
    # The first parameter is the value, whatever it is called.
    first, others = next(iter(parameters), None), parameters[1:]
    if first is None or first.kind not in (*POSITIONAL, inspect.Parameter.VAR_POSITIONAL):
        raise TypeError(
            f"{_shown(function)} takes no value: the function of a worker takes the value of the job as its first parameter, "
            f"so write def {_name(function)}(value); put None where there is nothing to say"
        )
    more = [one.name for one in others if one.default is one.empty and one.kind not in VARIADIC and one.name != "job"]
    if more:
        raise TypeError(
            f"{_shown(function)} takes {1 + len(more)} values, and a job has one: take one value, such as a dict or a dataclass, "
            f"and read {first.name!r} and {', '.join(map(repr, more))} from it"
        )
    return any(one.name == "job" for one in others)


def types_of(function: Callable[..., Any]) -> tuple[Any, Any]:
    """The types of the value and of the result, where the annotations name a class that plain data cannot stand for, else None.

    Those are dataclasses, msgspec Structs and pydantic models.
    """
    parameters = _parameters(function)
    try:
        hints = get_type_hints(function if inspect.isroutine(function) else type(function).__call__)
    except Exception:  # noqa: BLE001 - a name that is not known where the function was defined; then nothing is known
        return None, None
    value = hints.get(parameters[0].name) if parameters else None
    return declared(value), declared(hints.get("return"))


def declared(hint: Any) -> Any:
    """The type if it is one that plain data cannot stand for, else None."""
    if not isinstance(hint, type):
        return None
    is_declared = dataclasses.is_dataclass(hint) or issubclass(hint, Struct) or hasattr(hint, "model_validate_json")
    return hint if is_declared else None


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # Some built-in functions have none to show.
        return None


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _shown(function: Callable[..., Any]) -> str:
    return f"{_name(function)}({', '.join(one.name for one in _parameters(function) or [])})"
