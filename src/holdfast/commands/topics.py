"""The topics that can be waited for and watched."""

from collections.abc import Callable
from typing import Final

from holdfast.codec import Limits, check_name

TOPIC_LIMITS: Final = Limits(name_bytes=700)
"""The longest name and the longest key, with room for the words around them."""


def check_topic(topic: str) -> None:
    """Refuse what is longer than any topic can be."""
    check_name(topic, "topic", TOPIC_LIMITS)


def queue_topic(queue: str) -> str:
    """Something may have become claimable in the queue."""
    return f"queue:{queue}"


def key_topic(queue: str, key: str) -> str:
    """The message under one key may have become claimable."""
    # Equal keys of a store by reference may differ in text (1 and True), never in hash.
    return f"key:{queue}:{key}" if type(key) is str else f"key:{queue}:#{hash(key)}"


def room_topic(queue: str) -> str:
    """A bounded queue may have room."""
    return f"room:{queue}"


def dict_topic(name: str) -> str:
    """An entry of the dict, or a lease on one of its keys, may have changed."""
    return f"dict:{name}"


def lease_topic(name: str | None, key: str) -> str:
    """The lease may have become free."""
    return f"lease:{'' if name is None else name}:{key}"


def line_topic(key: str, lease_id: str) -> str:
    """The waiter in line for a lease under this id may be granted it."""
    return f"line:{lease_id}:{key}"


def log_topic(name: str | None, key: str) -> str:
    """Where the events of a lease are written: its dict's log, or one of its own."""
    return f"lease::{key}" if name is None else dict_topic(name)


def worker_topic(incarnation: str) -> str:
    """One worker may have something to do; only its own process says so."""
    return f"worker:{incarnation}"


def watch_topic(topic: str) -> str:
    """An event was written to the topic."""
    return f"watch:{topic}"


TOPICS: Final[dict[str, Callable[[str], str]]] = {"queue": queue_topic, "dict": dict_topic}
"""The topic of a queue or a dict, by kind."""
