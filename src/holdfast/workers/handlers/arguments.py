"""The arguments of a task: one JSON object by the names of its parameters, and the handler that calls the function with them."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Union, get_type_hints

from msgspec import UNSET, Raw, UnsetType, defstruct, json

from holdfast.codec import Codec, typed
from holdfast.workers.handlers.handler import Handler
from holdfast.workers.handlers.jobs import JobContext
from holdfast.workers.handlers.outcomes import Bury, UnknownTask, shown
from holdfast.workers.handlers.resources import Resource
from holdfast.workers.handlers.signatures import check_callable

REFUSED = {
    inspect.Parameter.POSITIONAL_ONLY: "positional-only",
    inspect.Parameter.VAR_POSITIONAL: "variadic",
    inspect.Parameter.VAR_KEYWORD: "variadic",
}


class Arguments:
    """A codec of the arguments of one function, as a dict by parameter; those with a default may be left out.

    With a codec of the user's the dict is encoded by that, and the types are not checked.
    """

    name: str
    takes_job: bool
    result_type: Any
    """The annotation of what the function returns, or `inspect.Signature.empty`."""

    def __init__(self, function: Callable[..., Any], codec: Codec | None = None) -> None:
        self.name = getattr(function, "__qualname__", type(function).__qualname__)
        signature = inspect.signature(function)
        hints = self.read_hints(function)
        parameters = list(signature.parameters.values())
        self.takes_job = bool(parameters) and _is_job(hints.get(parameters[0].name))
        if self.takes_job:
            parameters = parameters[1:]
        for one in parameters:
            if _is_job(hints.get(one.name)):
                raise TypeError(f"task {self.name} is given the job as its first parameter: move {one.name!r} to the front")
            if one.kind in REFUSED:
                raise TypeError(
                    f"task {self.name} has the {REFUSED[one.kind]} parameter {one.name!r}: the arguments of a job are kept by name, "
                    "so give each parameter a name of its own"
                )
        self.uses: dict[str, Resource] = {one.name: one.default for one in parameters if isinstance(one.default, Resource)}
        parameters = [one for one in parameters if one.name not in self.uses]
        self.parameters: tuple[str, ...] = tuple(one.name for one in parameters)
        self.optional: tuple[str, ...] = tuple(one.name for one in parameters if one.default is not one.empty)
        # How many arguments are all of them by position, which need no binding; None if some go by name only.
        self._in_order = None if any(one.kind is one.KEYWORD_ONLY for one in parameters) else len(parameters)
        self.result_type = hints.get("return", inspect.Signature.empty)
        self._signature = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
        fields = [_field(one, hints.get(one.name, Any)) for one in parameters]
        self._struct: Any = defstruct("arguments", [*fields], forbid_unknown_fields=True, kw_only=True)
        self._codec = typed(self._struct)
        self._own_codec = codec

    def read_hints(self, function: Callable[..., Any]) -> dict[str, Any]:
        """The types of what one job gives the function, and of what it gets."""
        return hints_of(function)

    def bind(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The arguments by name; TypeError if the function cannot be called with them."""
        if not kwargs and len(args) == self._in_order:
            return dict(zip(self.parameters, args, strict=True))
        if given := sorted(kwargs.keys() & self.uses):
            raise TypeError(f"{self.name}(): {', '.join(map(repr, given))} is given by the worker, as Use(…) says, and cannot be put")
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None

    def encode(self, value: object) -> Raw:
        if self._own_codec is not None:
            return self._own_codec.encode(value)
        try:
            return self._codec.encode(self._struct(**value))  # type: ignore[arg-type] # a dict, of `bind`
        except TypeError as error:
            raise TypeError(f"the arguments of {self.name} cannot be kept: {error}") from error

    def decode(self, raw: Raw | bytes | memoryview) -> dict[str, Any]:
        """The arguments that were given; `UnknownTask` for one that the function does not have, `Bury` for others it cannot take."""
        try:
            if self._own_codec is None:
                found = self._codec.decode(raw)
                return {name: given for name in self.parameters if (given := getattr(found, name)) is not UNSET}
            arguments: dict[str, Any] = self._own_codec.decode(raw)
            self._signature.bind(**arguments)
        except Exception as error:
            if more := sorted(self._names(raw) - set(self.parameters)):
                raise UnknownTask(f"{self.name} has no parameter {', '.join(map(repr, more))} here") from error
            raise Bury(f"{self.name} cannot be called with its arguments: {shown(error)}") from error
        return arguments

    def _names(self, raw: Any) -> set[str]:
        """The names in a stored value, as far as it has any."""
        try:
            found = json.decode(raw) if self._own_codec is None else self._own_codec.decode(raw)
        except Exception:  # noqa: BLE001 - foreign data, and perhaps a foreign codec
            return set()
        return {name for name in found if isinstance(name, str)} if isinstance(found, dict) else set()


class TaskHandler(Handler):
    """The function of a task: called with its arguments, and first with the job if its first parameter is annotated as one."""

    codec: Arguments
    arguments_type: type[Arguments] = Arguments

    def __init__(self, function: Callable[..., Any], codec: Codec | None = None) -> None:
        check_callable(function, "a task must be a function")
        self.function = function
        self.given_codec = codec
        self.codec = self.arguments_type(function, codec)
        self.takes_job: bool = self.codec.takes_job
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - asked of an object with a method __call__

    def __call__(self, job: JobContext) -> Any:
        return self.function(job, **job.value) if self.takes_job else self.function(**job.value)

    @property
    def uses(self) -> Mapping[str, Resource]:
        return self.codec.uses

    def call(self, job: JobContext, given: Mapping[str, Any]) -> Any:
        return self.function(job, **job.value, **given) if self.takes_job else self.function(**job.value, **given)

    def beside(self, function: Callable[..., Any]) -> Handler:
        return type(self)(function, self.given_codec)

    def keyed(self, function: Callable[..., Any], job: JobContext) -> Any:
        return function(**job.value)


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function, as far as they are known."""
    try:
        return get_type_hints(function if inspect.isroutine(function) else type(function).__call__)
    except Exception:  # noqa: BLE001 - a name that is not known where the function was defined; then nothing is known
        return {}


def _is_job(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, JobContext)


def _field(parameter: inspect.Parameter, hint: Any) -> Any:
    if parameter.default is parameter.empty:
        return parameter.name, hint
    # Left out where it is not given: another version of the code may have another default, or not have it at all.
    return parameter.name, Union[hint, UnsetType], UNSET  # noqa: UP007 - of what is only known now
