"""Messages as the command line shows them, and the options by which they are found."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer
from msgspec import json, to_builtins

from holdfast.cli.opening import seconds_of
from holdfast.cli.showing import moment_at, shown

if TYPE_CHECKING:
    from holdfast import QueueMessage

QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The name of the queue.")]
Label = Annotated[str | None, typer.Option("--label", help="Only those with this label.")]
Limit = Annotated[int, typer.Option("-n", "--limit", min=1, max=10_000, help="How many at most.")]

WIDTH = 60
"""Longer values and errors are cut in tables; JSON has all of them."""


def age_s(age: str | None) -> float | None:
    """The age that was given, in seconds."""
    return None if age is None else seconds_of(age)


class FoundBy(TypedDict):
    """The options that say which messages are meant."""

    older_than_s: Annotated[
        str | None,
        typer.Option("--older-than", help="Only those that are older, as in 90s, 15m, 12h or 30d; dead ones since their burial."),
    ]
    newer_than_s: Annotated[str | None, typer.Option("--newer-than", help="Only those that are newer, counted in the same way.")]
    error_contains: Annotated[str | None, typer.Option("--error", help="Only those whose last error contains this text.")]
    error_class: Annotated[str | None, typer.Option("--error-class", help="Only those whose last error is this up to its first colon.")]
    value_contains: Annotated[str | None, typer.Option("--value", help="Only those whose value, as JSON, contains this text.")]
    prefix: Annotated[str | None, typer.Option("--key-prefix", help="Only those whose key, a text, begins so.")]
    label: Label
    group: Annotated[str | None, typer.Option("--group", help="Only those of this group; '' is those without one.")]


def filter_options(given: FoundBy) -> Any:
    """The same as `FilterOptions`, which the methods of a queue take."""
    return {**given, "older_than_s": age_s(given["older_than_s"]), "newer_than_s": age_s(given["newer_than_s"])}


class PutBy(TypedDict):
    """What a command that puts messages says of each."""

    priority: Annotated[int, typer.Option(help="Higher ones are handed out first.")]
    max_attempts: Annotated[int | None, typer.Option(help="After how many failures it is dead.")]
    dead_letter_queue: Annotated[str | None, typer.Option(help="The queue that it goes to when it is dead.")]
    labels: Annotated[list[str] | None, typer.Option("--label", help="A label to find it by; may be given several times.")]
    group: Annotated[str | None, typer.Option(help="The group whose limits, rate and order it follows.")]


def put_options(given: PutBy) -> Any:
    """The same as `PutOptions`, which a put takes."""
    return {**given, "labels": tuple(given["labels"] or ())}


def as_data(value: Any) -> Any:
    """A result as plain data; what JSON cannot say is said as text."""
    return to_builtins(value, enc_hook=str)


def table(messages: "Sequence[QueueMessage]") -> str:
    """Messages for people, one per line."""
    heads = ("id", "key", "priority", "attempts", "put at", "due at", "claimer", "error", "value")
    return shown(heads, [_row(message) for message in messages]) if messages else "No messages."


def line(value: Any) -> str:
    """A value as one line of JSON."""
    return json.encode(value, enc_hook=str).decode()


def _row(message: "QueueMessage") -> tuple[str, ...]:
    return (
        message.id,
        "" if message.key is None else str(message.key),
        str(message.priority),
        str(message.attempts),
        moment_at(message.created_at),
        moment_at(message.due_at),
        message.claimer or "",
        cut(message.last_error or ""),
        cut(line(message.value)),
    )


def cut(text: str) -> str:
    """The text, or its beginning."""
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
