"""Words that messages are made of."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number and its noun: "1 message", "2 messages"."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
