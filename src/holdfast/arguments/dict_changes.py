"""Converts a dict's arguments to changes of its entries, and refusals to errors."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from holdfast.codec import Codec, decode_key, encode_key
from holdfast.codec.fields import COST
from holdfast.codec.limits import shown
from holdfast.commands import Change, Written
from holdfast.errors import LeaseLost, Refused
from holdfast.rates import Rate
from holdfast.results import Missing

K = TypeVar("K")
V = TypeVar("V")


def change_of(key: Hashable, *, revision: int | None = None, by: float = 0, **what: Any) -> Change:
    """The change of one key; a revision is what to compare with."""
    if revision is not None:
        what |= {"expect": "revision", "revision": revision}
    return Change(encode_key(key), by=by, **what)


def pace_of(key: str, rate: Rate, cost: int) -> Change:
    """The change of the key with this text that uses units of a rate."""
    return Change(key, "pace", interval_us=rate.interval_us, burst=rate.burst, cost=COST.check(cost))


def expectation(expected: object, codec: Codec) -> dict[str, Any]:
    """What a comparison is to find: a value, with None a missing key too, with MISSING nothing else."""
    if isinstance(expected, Missing):
        return {"expect": "absent"}
    if expected is None:
        return {"expect": "null"}
    return {"expect": "value", "expected": codec.encode(expected)}


def pairs_of(values: Mapping[K, V] | Iterable[tuple[K, V]]) -> dict[str, tuple[K, V]]:
    """Keys and values by the text of the key, the last where one stands twice."""
    listed = values.items() if isinstance(values, Mapping) else values
    if isinstance(values, str | bytes) or not isinstance(listed, Iterable):
        raise TypeError(f"update takes a dict, or a list of pairs of key and value, not {shown(values)} ({type(values).__name__})")
    pairs = {encode_key(key): (key, value) for key, value in map(_pair, listed)}
    refuse_equal(key for key, _ in pairs.values())
    return pairs


def _pair(pair: tuple[K, V]) -> tuple[K, V]:
    if isinstance(pair, str | bytes) or not isinstance(pair, Sequence) or len(pair) != 2:  # noqa: PLR2004 - a pair
        raise TypeError(f"update takes a dict, or a list of pairs of key and value: {shown(pair)} ({type(pair).__name__}) is not a pair")
    return pair


def same_keys(keys: Iterable[K]) -> dict[str, K]:
    """Keys by their text."""
    if isinstance(keys, str | bytes):
        raise TypeError(f"keys must be a list, not one {type(keys).__name__}: give [{keys!r}]")
    texts = {encode_key(key): key for key in keys}
    refuse_equal(texts.values())
    return texts


def refuse_equal(keys: Iterable[Hashable]) -> None:
    """Refuse keys that are different here and equal in a Python dict, where one would hide the other."""
    seen: dict[Hashable, Hashable] = {}
    for key in keys:
        if key in seen:
            raise ValueError(f"{seen[key]!r} and {key!r} are two keys here but one in a Python dict: read them one by one")
        seen[key] = key


def raise_refused(name: str, change: Change, written: Written) -> None:
    """Raise what stood in the way of a write: its lease, or its fence."""
    if written.because not in ("lease", "fence"):
        return
    key = decode_key(change.key)
    if written.because == "lease":
        raise LeaseLost(f"lease {change.lease} on key {key!r} of dict {name!r} is no longer held; nothing was written: acquire it again")
    raise Refused(
        f"key {key!r} of dict {name!r} was written under a higher token than {change.fence}: its owner holds it now; nothing was written"
    )
