"""Signatures: a task with arguments and options, to be called later."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.surfaces.celery.app import Celery
    from holdfast.surfaces.celery.canvas import Canvas, chain
    from holdfast.surfaces.celery.results import AsyncResult, EagerResult
    from holdfast.surfaces.celery.task import Task


class Signature:
    """What `task.s(…)` gives. An immutable one, `task.si(…)`, takes no further arguments."""

    def __init__(
        self,
        task: "Task",
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        immutable: bool = False,
    ) -> None:
        self._task = task
        self.args: tuple[Any, ...] = tuple(args)
        self.kwargs: dict[str, Any] = dict(kwargs or {})
        self.options: dict[str, Any] = dict(options or {})
        self.immutable: bool = immutable

    @property
    def task(self) -> str:
        """The name of its task."""
        return self._task.name

    @property
    def app(self) -> "Celery":
        """The app of its task."""
        return self._task.app

    def clone(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> "Signature":
        """The same with more arguments, which come first, and other options."""
        if self.immutable:
            return Signature(self._task, self.args, self.kwargs, {**self.options, **options}, immutable=True)
        return Signature(self._task, (*args, *self.args), {**self.kwargs, **(kwargs or {})}, {**self.options, **options})

    def set(self, *, immutable: bool | None = None, **options: Any) -> "Signature":
        """Set options, and return it."""
        self.options.update(options)
        if immutable is not None:
            self.immutable = immutable
        return self

    def delay(self, *args: Any, **kwargs: Any) -> "AsyncResult | EagerResult":
        """Put it, with more arguments."""
        return self.apply_async(args, kwargs)

    def apply_async(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> "AsyncResult | EagerResult":
        """Put it, with more arguments and options."""
        made = self.clone(args, kwargs, **options)
        return self._task.apply_async(made.args, made.kwargs, **made.options)

    def apply(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> "EagerResult":
        """Run it here and now."""
        made = self.clone(args, kwargs)
        return self._task.apply(made.args, made.kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = self.clone(args, kwargs)
        return self._task(*made.args, **made.kwargs)

    def __or__(self, other: "Signature | Canvas") -> "chain":
        from holdfast.surfaces.celery.canvas import chain  # noqa: PLC0415 - which imports this

        return chain(self, other)

    def __repr__(self) -> str:
        shown = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"{self.task}({', '.join(shown)})"


def signature(task: "str | Task", args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> Signature:
    """The signature of a task, which may be given by its name."""
    if isinstance(task, str):
        from holdfast.surfaces.celery.app import current_app  # noqa: PLC0415 - which imports this

        task = current_app().named(task)
    return Signature(task, args, kwargs, options)
