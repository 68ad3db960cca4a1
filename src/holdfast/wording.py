"""Formats numbers and times for messages and log lines."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 job`, `2 jobs`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def seconds(duration_s: float) -> str:
    """A duration: `0.000091 s`, `0.25 s`, `2 s`, `3,600 s`."""
    if 0 < duration_s < 0.0001:  # noqa: PLR2004 - below it, `g` writes an exponent
        return f"{duration_s:.6f} s"
    return f"{duration_s:,.0f} s" if duration_s >= 100 else f"{duration_s:.3g} s"  # noqa: PLR2004 - more digits say nothing
