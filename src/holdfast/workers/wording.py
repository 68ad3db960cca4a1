"""Numbers and times as log lines say them."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 job`, `2 jobs`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
