"""What a meter of this process has counted so far."""

from holdfast.telemetry.meters import Meter


def counted(meter: Meter) -> float:
    """The number of a meter without labels."""
    *_, line = meter.lines()
    return float(line.rpartition(" ")[2])
