"""Where the key of a retry comes from: an argument of the call, or an attribute of one."""

import inspect
from collections.abc import Callable
from typing import Any

KeyFn = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], str]


def key_from_argument(name: str) -> KeyFn:
    """Make a `key_fn` that takes the key from the argument with this name, however it was passed."""
    _check_given(name, "argument name")

    def key_fn(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return str(_argument(name, fn, args, kwargs))

    return key_fn


def key_from_attr(argument_name: str, attribute_name: str, *, prefix: str | None = None) -> KeyFn:
    """Make a `key_fn` that takes it from an attribute of an argument; `prefix` tells apart what shares a store."""
    _check_given(argument_name, "argument name")
    _check_given(attribute_name, "attribute name")
    if prefix is not None:
        _check_given(prefix, "prefix")

    def key_fn(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        argument = _argument(argument_name, fn, args, kwargs)
        if not hasattr(argument, attribute_name):
            raise ValueError(f"could not derive a persistent retry key from {argument_name}.{attribute_name}: there is no such attribute")
        key = getattr(argument, attribute_name)
        return f"{prefix}:{key}" if prefix is not None else str(key)

    return key_fn


def idempotency_key_from_id(argument_name: str, *, prefix: str | None = None) -> KeyFn:
    """Make a `key_fn` that takes it from the `id` of an argument."""
    return key_from_attr(argument_name, "id", prefix=prefix)


def _check_given(name: str, what: str) -> None:
    if not name:
        raise ValueError(f"{what} cannot be empty")


def _argument(name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = inspect.signature(fn).bind_partial(*args, **kwargs)
    bound.apply_defaults()
    if name not in bound.arguments:
        raise ValueError(f"could not derive a persistent retry key from argument {name!r}: the call has none of that name")
    return bound.arguments[name]
