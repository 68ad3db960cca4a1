"""Where the threads of this process stand."""

import gc
import sys
from types import FrameType


def frames_of_threads() -> dict[int, FrameType]:
    """The frame of each thread, by its identifier.

    No collection of garbage begins meanwhile: up to Python 3.11 that can stop the whole process for ever (CPython issue 106883).
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()  # noqa: SLF001 - there is no other way to ask
    finally:
        if is_enabled:
            gc.enable()
