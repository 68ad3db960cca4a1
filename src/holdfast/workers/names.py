"""The dicts beside a queue, and the keys of what workers keep of its jobs."""

from holdfast.codec import encode_key


def results_of(queue: str) -> str:
    """The dict of a queue's results, by the id of their message."""
    return f"{queue}-results"


def progress_of(queue: str) -> str:
    """The dict of a queue's reports, by the id of their message."""
    return f"{queue}-progress"


def errors_of(queue: str) -> str:
    """The dict of the errors of a queue's jobs: the newest three of each, by its id and a number."""
    return f"{queue}-errors"


def ledger_of(queue: str) -> str:
    """The dict that remembers which effects of a queue's jobs have happened."""
    return f"{queue}-once"


def failure_key(message_id: str) -> str:
    """Where it is kept why a job has no result."""
    return encode_key(("failed", message_id))


def breaker_of(queue: str) -> str:
    """The dict with the state of the breaker that a queue's workers share."""
    return f"{queue}-breaker"
