"""`app.on_after_configure` and `app.on_after_finalize`: functions that set an app up, most often its periodic tasks."""

from collections.abc import Callable
from typing import Any

from holdfast.surfaces.celery.refusals import refuse_unknown


class Moment:
    """Functions that are called once, with the app as `sender`, before a worker looks at its tasks and schedules."""

    def __init__(self) -> None:
        self._receivers: list[Callable[..., Any]] = []

    def connect(self, receiver: Callable[..., Any] | None = None, /, **options: Any) -> Callable[..., Any]:
        """Call this function then: `@app.on_after_configure.connect`."""
        refuse_unknown("connect", options, ("weak",))  # Every function is kept.
        if receiver is None:
            return self.connect
        self._receivers.append(receiver)
        return receiver

    def tell(self, app: Any) -> None:
        """Call them, each once."""
        while self._receivers:
            self._receivers.pop(0)(sender=app, signal=self, source=app.conf)
