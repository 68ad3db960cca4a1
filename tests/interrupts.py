"""Interrupt a call at every point where a Ctrl-C can strike, one after the other.

The interpreter looks for signals where a function begins, after calls of C functions and where a loop begins again, and nowhere else. An
exception raised by a trace function would strike also where no signal can. So the interrupt is a real one, made pending just before the
n-th such point, and the interpreter decides where it strikes.
"""

import ctypes
import dis
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, cast

import holdfast

LIBRARY = str(Path(holdfast.__file__).parent)
"""Only points inside the library count, and those of the call itself."""

BEGINS = " at its first instruction"
"""Marks a strike before the function that the call called has done anything."""

# A trace function that needs no bytecode of its own, so that the interrupt cannot strike in it. What it is given it ignores.
_pend = ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.py_object, ctypes.py_object)(("PyErr_SetInterrupt", ctypes.pythonapi))


def interrupt_at(n: int, call: Callable[[], Any]) -> str | None:
    """Call with an interrupt at the n-th point; answer where it struck, None if the call ended before.

    Raises an AssertionError if the interrupt struck and was swallowed.
    """
    assert threading.current_thread() is threading.main_thread(), "signals strike in the main thread"
    points = _Points(n, cast("FunctionType", call).__code__)
    former = signal.signal(signal.SIGINT, points.struck)
    try:
        sys.settrace(points.begin)
        call()
        sys.settrace(None)
    except KeyboardInterrupt:
        assert points.where
        return points.where
    finally:
        _settle_signals()
        signal.signal(signal.SIGINT, former)
    assert not points.where, f"the interrupt at {points.where} was swallowed"
    return None


def interrupts(call: Callable[[], Any], *, first: int = 1, step: int = 1) -> Iterator[str]:
    """Call again and again, interrupted later each time, until the call ends before its interrupt; answers where each one struck."""
    n = first
    while (where := interrupt_at(n, call)) is not None:
        yield where
        n += step


class _Points:
    """Counts the points of a call, and pends the interrupt before the n-th."""

    def __init__(self, n: int, call: CodeType) -> None:
        self.left = n
        self.call = call
        self.where = ""

    def begin(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        code = frame.f_code
        if self.left <= 0 or (code is not self.call and not code.co_filename.startswith(LIBRARY)):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._counted(frame)

    def look(self, frame: FrameType, event: str, _arg: Any) -> Any:
        return self._counted(frame) if event == "opcode" and frame.f_lasti in points_of(frame.f_code) else self.look

    def _counted(self, frame: FrameType) -> Any:
        self.left -= 1
        if self.left > 0:
            return self.look
        caller = frame.f_back
        while caller is not None:
            caller.f_trace = None
            caller = caller.f_back
        return _pend

    def struck(self, _number: int, frame: FrameType | None) -> None:
        sys.settrace(None)
        while frame is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        if frame is not None:
            code, caller = frame.f_code, frame.f_back
            begins = dis.opname[code.co_code[frame.f_lasti]] == "RESUME" and caller is not None and caller.f_code is self.call
            self.where = f"{code.co_filename.removeprefix(LIBRARY)}:{frame.f_lineno} {code.co_qualname}{BEGINS if begins else ''}"
        raise KeyboardInterrupt


@cache
def points_of(code: CodeType) -> frozenset[int]:
    """The instructions just before those at which the interpreter looks for signals."""
    looking = ("CALL", "JUMP_BACKWARD", "POP_JUMP_BACKWARD")
    return frozenset(before.offset for before, op in pairwise(dis.get_instructions(code)) if op.opname.startswith(looking))


def _settle_signals() -> None:
    """Let an interrupt that is still pending, because the call ended first, strike here."""
    try:
        sys.settrace(None)
        for _ in range(3):
            int("1")
    except KeyboardInterrupt:
        sys.settrace(None)
