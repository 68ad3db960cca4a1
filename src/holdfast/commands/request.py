"""On whose behalf commands are executed."""

from contextvars import ContextVar


class Request:
    """One caller's commands, one after the other; a server makes one for each HTTP request."""

    __slots__ = ("whose",)

    def __init__(self, whose: str = "") -> None:
        self.whose = whose
        """Who asks: stores divide their time among these."""


NOBODY = Request()
"""What has no caller to speak of."""

current: ContextVar[Request] = ContextVar("holdfast_request", default=NOBODY)
"""The request that this task is for."""
