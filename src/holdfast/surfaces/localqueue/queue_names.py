"""Valid names of queues."""

from holdfast.codec import check_name


def queue_name(name: str) -> str:
    """The name, refused where it is empty or has a colon, which stands in names that are not queues of users."""
    if not name or ":" in name:
        raise ValueError(f"a queue name cannot be empty or contain ':', and is {name!r}")
    return check_name(name, "queue")


def subscriber_queue_name(queue_name: str, subscriber: str) -> str:
    """The name of the queue of a subscriber: `events.billing`."""
    if not subscriber:
        raise ValueError("subscriber cannot be empty")
    return f"{queue_name}.{subscriber}"
