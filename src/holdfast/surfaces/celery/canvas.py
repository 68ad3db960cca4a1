"""The canvas: chains, groups and chords of signatures. Each is put as one flow of Holdfast."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast._sync.handles.flow import Flow
from holdfast._sync.handles.tasks import Tasks
from holdfast.ids import new_id
from holdfast.surfaces.celery.exceptions import ImproperlyConfigured
from holdfast.surfaces.celery.group_results import GroupResult
from holdfast.surfaces.celery.refusals import refused
from holdfast.surfaces.celery.results import CANVAS, RESULT, AsyncResult, EagerResult, Last
from holdfast.surfaces.celery.signatures import Signature

if TYPE_CHECKING:
    from holdfast.surfaces.celery.app import Celery

Line = list[Signature]
Stage = Signature | list[Line]
"""A task, or the members of a group, each a chain of tasks."""
Result = AsyncResult | EagerResult | GroupResult

IN_TASK = "give it to @app.task, or let a task that is called with it call the canvas"


class Canvas:
    """Stages, one after the other; each is called with the result of the one before as its first argument."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages: list[Stage] = list(stages)
        for signature in self._signatures():
            for option in signature.options:
                raise ImproperlyConfigured(f"{signature!r} in a canvas: the option {option!r} is not supported there; {IN_TASK}")

    def _signatures(self) -> list[Signature]:
        found = [[[stage]] if isinstance(stage, Signature) else stage for stage in self.stages]
        return [signature for lines in found for line in lines for signature in line]

    @property
    def app(self) -> "Celery":
        """The app of its tasks."""
        from holdfast.surfaces.celery.app import current_app  # noqa: PLC0415 - which imports this

        return next((signature.app for signature in self._signatures()), None) or current_app()

    def delay(self, *args: Any, **kwargs: Any) -> Any:
        """Put it, with more arguments for the tasks that come first."""
        return self.apply_async(args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.apply_async(args, kwargs)

    def apply_async(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Put it, with more arguments for the tasks that come first: an `AsyncResult`, or a `GroupResult` if it ends with a group."""
        for option in options:
            raise refused(f"{type(self).__name__}.apply_async", option, (), remedy=IN_TASK)
        stages = begun(self.stages, args, kwargs or {})
        if self.app.conf.task_always_eager:
            return run_here(stages, is_called=True)
        if not self._signatures():
            return GroupResult(new_id(), [])
        return put(stages, self.app)

    def apply(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run it here and now."""
        return run_here(begun(self.stages, args, kwargs or {}), is_called=False)

    def __or__(self, other: "Signature | Canvas") -> "chain":
        return chain(self, other)

    def __repr__(self) -> str:
        shown = [repr(stage) if isinstance(stage, Signature) else f"group({', '.join(map(_shown, stage))})" for stage in self.stages]
        return " | ".join(shown)


class chain(Canvas):  # noqa: N801 - Celery's name
    """Tasks, groups and chords, one after the other: `chain(a.s(1), b.s())`, or `a.s(1) | b.s()`."""

    def __init__(self, *parts: "Signature | Canvas | Iterable[Signature | Canvas]") -> None:
        super().__init__([stage for part in _parts(parts) for stage in _stages(part)])
        if not self.stages:
            raise ValueError("chain() has no tasks: give it signatures")


class group(Canvas):  # noqa: N801 - Celery's name
    """Tasks, or chains of tasks, side by side: `group(a.s(1), a.s(2))`."""

    def __init__(self, *members: "Signature | Canvas | Iterable[Signature | Canvas]") -> None:
        super().__init__([[_line(member) for member in _parts(members)]])


class chord(Canvas):  # noqa: N801 - Celery's name
    """A group, and a body that is called once with the list of its results: `chord([a.s(1), a.s(2)], total.s())`."""

    def __init__(self, header: "Canvas | Iterable[Signature | Canvas]", body: "Signature | Canvas | None" = None) -> None:
        made = header if isinstance(header, group) else group(header)
        self.body = body
        super().__init__([*made.stages, *([] if body is None else _stages(body))])

    def __call__(self, body: "Signature | Canvas | None" = None, **kwargs: Any) -> Any:
        """Put it, with a body if it has none."""
        if body is None:
            return self.apply_async((), kwargs)
        return chord(group(*self._header()), body).apply_async((), kwargs)

    def _header(self) -> list["Signature | Canvas"]:
        lines: Any = self.stages[0]
        return [chain(*line) for line in lines]

    def apply_async(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Put it, with more arguments for the header."""
        if self.body is None:
            raise ValueError("chord has no body: give it one, chord(header, body), or use group(header)")
        return super().apply_async(args, kwargs, **options)


def _parts(given: Sequence[Any]) -> list[Signature | Canvas]:
    """Parts that are given one by one, or as one iterable."""
    is_one = len(given) == 1 and isinstance(given[0], Iterable)
    parts = list(given[0]) if is_one else list(given)
    for part in parts:
        if not isinstance(part, Signature | Canvas):
            raise TypeError(f"a canvas is made of signatures, as task.s(…) gives, not of {part!r}")
    return parts


def _stages(part: Signature | Canvas) -> list[Stage]:
    return [part] if isinstance(part, Signature) else part.stages


def _line(member: Signature | Canvas) -> Line:
    """A member of a group as a chain of tasks; one that has groups in it is refused."""
    line = [stage for stage in _stages(member) if isinstance(stage, Signature)]
    if len(line) < len(_stages(member)):
        raise ImproperlyConfigured(
            f"{type(member).__name__} in a group or in the header of a chord is not supported, only tasks and chains of tasks: make "
            "one flat group, let a task call the inner one, or write a durable job of holdfast.Tasks, with job.map"
        )
    return line


def _shown(line: Line) -> str:
    return " | ".join(map(repr, line))


def begun(stages: Sequence[Stage], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Stage]:
    """The stages, with more arguments for the tasks that come first."""
    if not stages:
        return []
    first = stages[0]
    if isinstance(first, Signature):
        return [first.clone(args, kwargs), *stages[1:]]
    return [[[line[0].clone(args, kwargs), *line[1:]] for line in first], *stages[1:]]


def put(stages: Sequence[Stage], app: "Celery") -> AsyncResult | GroupResult:
    """Put stages as one flow."""
    tasks = app.collected()
    # As in Celery, a failure ends what depends on it and nothing else.
    flow = tasks.flow(CANVAS, on_failure="run_all")
    before: Any = None
    for stage in stages[:-1]:
        if isinstance(stage, Signature):
            before = _add(flow, tasks, stage, before)
        else:
            begins = [_begin(flow, tasks, line, before) for line in stage]
            before = [_add(flow, tasks, line[-1], begin) for line, begin in zip(stage, begins, strict=True)]
    end = stages[-1]
    if isinstance(end, Signature):
        last = Last(len(flow), None)
        _add(flow, tasks, end, before, RESULT)
    else:
        begins = [_begin(flow, tasks, line, before) for line in end]
        last = Last(len(flow), len(end))
        for number, (line, begin) in enumerate(zip(end, begins, strict=True)):
            _add(flow, tasks, line[-1], begin, str(number))
    job = flow.put(id=last.new_id())
    return AsyncResult(job.id, app=app, queue=job.queue) if last.size is None else GroupResult(job.id, app=app)


def _begin(flow: Flow, tasks: Tasks, line: Line, before: Any) -> Any:
    """Add all but the last task of a chain; what the last one comes after."""
    for signature in line[:-1]:
        before = _add(flow, tasks, signature, before)
    return before


def _add(flow: Flow, tasks: Tasks, signature: Signature, before: Any, name: str | None = None) -> Any:
    """Add a task that comes after a node, after a list of them, or after none."""
    nodes = before if isinstance(before, list) else [] if before is None else [before]
    given: dict[str, Any] = {}
    if before is not None and not signature.immutable:
        given = {"previous": nodes} | ({"gathered": True} if isinstance(before, list) else {})
    call = tasks.find(signature.task).args(list(signature.args), signature.kwargs, **given)
    return flow.add(call, after=nodes, name=name or f"{signature.task} #{len(flow) + 1}")


def run_here(stages: Sequence[Stage], *, is_called: bool) -> EagerResult | GroupResult:
    """Run stages at once; `is_called` is for `task_always_eager`, which may let exceptions pass."""
    given: tuple[Any, ...] = ()
    found: EagerResult | GroupResult = GroupResult(new_id(), [])
    for stage in stages:
        if isinstance(stage, Signature):
            found = _run_line([stage], given, is_called=is_called)
        else:
            found = GroupResult(new_id(), [_run_line(line, given, is_called=is_called) for line in stage])
        if found.failed():
            return found if stage is stages[-1] or isinstance(found, EagerResult) else _first_failed(found)
        given = (found.get(),)
    return found


def _first_failed(found: GroupResult) -> Any:
    return next(one for one in found.results if one.failed())


def _run_line(line: Line, given: tuple[Any, ...], *, is_called: bool) -> Any:
    result: Any = None
    for signature in line:
        result = signature.apply_async(given) if is_called else signature.apply(given)
        if result.failed():
            return result
        given = (result.get(),)
    return result
