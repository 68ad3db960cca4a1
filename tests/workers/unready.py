"""A function that no child process can import as long as UNREADY is set."""

import multiprocessing
import os

if "UNREADY" in os.environ and multiprocessing.parent_process() is not None:
    raise RuntimeError("this module cannot be imported here")


def double(value: int) -> int:
    return value * 2
