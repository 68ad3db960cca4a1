"""Checks of arguments, made before anything is sent."""

from collections.abc import Callable, Collection

from holdfast.codec import Limits, check_name
from holdfast.codec.fields import MAX_ATTEMPTS
from holdfast.records import State

RETURNS = ("back", "place", "front")
STATES: tuple[State, ...] = ("ready", "leased", "dead", "buffered", "done")
KINDS = ("queue", "dict")

KEY_LIMITS = Limits(name_bytes=Limits().key_bytes)


class _Names(dict[str, str]):
    """The names of queues that were found good, as many as are worth remembering: every put and claim asks."""

    def __missing__(self, name: str) -> str:
        check_name(name, "queue")
        if len(self) < KNOWN_NAMES:
            self[name] = name
        return name


KNOWN_NAMES = 10_000

check_queue: Callable[[str], str] = _Names().__getitem__
"""Refuse what cannot be the name of a queue."""


def check_choice(value: object, choices: Collection[object], what: str) -> None:
    """Refuse a word that is none of these."""
    if value not in choices:
        raise ValueError(f"{what} must be one of {', '.join(map(repr, choices))}, not {value!r}")


def check_budget(max_attempts: int | None, dead_letter: str | None) -> None:
    """Refuse a budget of nothing, or a dead-letter queue with a name that no queue has; None is no budget, and no queue."""
    MAX_ATTEMPTS.check(max_attempts)
    if dead_letter is not None:
        check_name(dead_letter, "dead-letter queue")


def check_key(key: object) -> None:
    """Refuse what cannot be the text of a key; by reference a key is any hashable, and nothing is refused."""
    if isinstance(key, str):
        check_name(key, "key", KEY_LIMITS)
