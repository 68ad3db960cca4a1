"""Formats numbers and times for messages and log lines."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 job`, `2 jobs`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def seconds(duration_s: float) -> str:
    """A duration: `0.25 s`, `2 s`, `3,600 s`."""
    return f"{duration_s:,.0f} s" if duration_s >= 100 else f"{duration_s:.3g} s"  # noqa: PLR2004 - more digits say nothing
