"""Converts commands to calls of SQL functions, and their rows to results."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from msgspec import UNSET, Raw, json
from msgspec.structs import fields

from holdfast.commands import Acquire, Acquired, Command, Configure, Import, Put, Together, Write, encode_command
from holdfast.commands.command import with_fields
from holdfast.commands.together import only_reads
from holdfast.errors import LeaseHeld, LineFull
from holdfast.ids import new_id
from holdfast.records import Lease, Message
from holdfast.stores.postgres.fast import FastCalls, item_options, text_of
from holdfast.stores.postgres.placeholders import COLUMNS
from holdfast.stores.postgres.statements import Call, in_schema

R = TypeVar("R")

OPEN_S = 0.5
"""When to ask again for what is being acquired in another open transaction."""

FIELDS: dict[str, Any] = {field.name: field.default for field in fields(Message)}


class Calls:
    """The calls of one schema."""

    def __init__(self, schema: str) -> None:
        self._execute = in_schema("select {}.execute(%s::jsonb, %s::text[], %s::jsonb)", schema)
        self._read = in_schema("select {}.read(%s::jsonb)", schema)
        self._execute_text = in_schema(
            "select current_database()::text, "
            "case when current_database() = %s::text then {}.execute(%s::text::jsonb, %s::text::text[], %s::text::jsonb) end",
            schema,
        )
        self._fast = FastCalls(schema)
        self.moved: Call = Call(in_schema("select max(value) from {}.meta where name = 'moved'", schema), ())
        self._prune = Call(in_schema("select {}.prune_some()", schema), ())

    def call(self, command: Command[Any], command_id: str, *, again: bool) -> Call:
        """The call that answers the command; under an id it is applied once, however often it is made.

        `again` says that it was perhaps made before: then the answer is looked for first.
        """
        fast = self._fast.call(command, command_id, again=again)
        if fast is not None:
            return fast
        return Call(self._read, (encoded(command),)) if only_reads(command) else self._general_call(command, command_id)

    def text_call(self, command: Command[Any], command_id: str) -> Call:
        """The general call whose parameters are all text, the first of them the name of the database; in another one it does nothing.

        Its row has the name of the database and the answer.
        """
        return Call(self._execute_text, self._general_call(command, command_id).parameters)

    def prune(self) -> Call:
        """The call that removes a little of what is no longer needed."""
        return self._prune

    def _general_call(self, command: Command[Any], command_id: str) -> Call:
        texts: list[str] = []
        apart = values_apart(command, texts)
        if command_id != apart.id:
            apart = with_fields(apart, id=command_id)
        return Call(self._execute, (encoded(apart), texts, json.encode(objects_of(command)).decode()))


@cache
def calls_of(schema: str) -> Calls:
    """Those of the schema, made once: a store on a borrowed connection is often made for a single command."""
    return Calls(schema)


class Asking:
    """One command being asked: every call it makes has the same id, and all but the first look for an answer first.

    Nor need the first of a put, claim or settling, though a caller's own id may have been used before: then it is undone, for no two
    events have one id.
    """

    def __init__(self, calls: Calls, command: Command[Any]) -> None:
        self._calls = calls
        self._command = command
        self._id = command.id or new_id()
        self.was_sent: bool = False

    def call(self) -> Call:
        """The call, which is sent now."""
        call = self._calls.call(self._command, self._id, again=self.was_sent)
        self.was_sent = True
        return call

    def named(self) -> Command[Any]:
        """The command under the id of its calls."""
        named: Command[Any] = with_fields(self._command, id=self._id)
        return named


def objects_of(command: Command[Any]) -> list[tuple[str, str, bool]]:
    """The queues and dicts that a command uses, sorted, and whether it needs each alone, as it does to empty or to count one."""
    objects: dict[tuple[str, str], bool] = {}
    for part in command.commands if isinstance(command, Together) else (command,):
        is_shared = isinstance(part, Configure) and not isinstance(part.maxsize, int) and not changes_lines(part)
        for (kind, *names), changes in part.touches():
            if kind in ("queue", "dict") and names[0] is not None:
                objects[kind, names[0]] = objects.get((kind, names[0]), False) or (changes and not is_shared)
    return [(kind, name, is_alone) for (kind, name), is_alone in sorted(objects.items())]


def changes_lines(command: Configure) -> bool:
    """Whether a change of policies may count messages again or put them into other lanes."""
    changed = (command.groups, command.group_limit, command.limit, command.order, command.aging_s)
    return command.group is None and any(one is not UNSET for one in changed)


def answer(command: Command[R], text: str) -> R:
    """The answer in its own type."""
    if isinstance(command, Together):
        parts = json.decode(text, type=list[Raw])
        answers: Any = [json.decode(part, type=one.answer_type) for one, part in zip(command.commands, parts, strict=True)]
    else:
        answers = json.decode(text, type=command.answer_type)
    found: R = answers
    return found


def encoded(command: Command[Any]) -> str:
    """The command as JSON."""
    return encode_command(command).decode()


def values_apart(command: Command[Any], texts: list[str]) -> Any:
    """The same command, in which every value is the place of its text in `texts`.

    Only so do values come back byte for byte: jsonb reorders and renumbers, and taking JSON apart refuses the character 0.
    """

    def place(value: Raw | None) -> Raw | None:
        if value is None:
            return None
        texts.append(bytes(value).decode())
        return Raw(str(len(texts)).encode())

    if isinstance(command, Put):
        items = [{"id": item.id, "value": place(item.value), **item_options(item)} for item in command.items]
        return with_fields(command, items=items)
    if isinstance(command, Write):
        return with_fields(command, changes=[_change_apart(change, place) for change in command.changes])
    if isinstance(command, Acquire) and command.default is not None:
        return with_fields(command, default=place(command.default))
    if isinstance(command, Import):
        entries = [with_fields(one, value=text_of(one.value)) for one in command.entries]
        return with_fields(command, messages=[_row(one) for one in command.messages], entries=entries)
    if isinstance(command, Together):
        return with_fields(command, commands=[values_apart(part, texts) for part in command.commands])
    return command


def _row(message: Message) -> dict[str, Any]:
    """The columns of a message, and what else it has that is not as by default."""
    row = {name: value for name, default in FIELDS.items() if (value := getattr(message, name)) != default or name in COLUMNS}
    history = [json.encode(ending).decode() for ending in message.history] or None
    level = None if message.lane is None else message.level
    texts = {"value": text_of(message.value), "metadata": text_of(message.metadata), "history": history}
    return row | texts | {"level": level, "tied": message.tied or None}


def _change_apart(change: Any, place: Callable[[Raw | None], Raw | None]) -> Any:
    by = place(Raw(json.encode(change.by))) if change.do == "increment" else None
    return with_fields(change, value=place(change.value), expected=place(change.expected), by=by)


def answer_held(command: Command[R], held: LeaseHeld) -> R:
    """The answer to an acquire that met an open transaction, which cannot be read: the lease in force, or one that is not the caller's."""
    if not isinstance(command, Acquire) or command.all_or_none or isinstance(held, LineFull):
        raise held
    unknown = Lease(command.dict, command.key, holder="", lease_id="", token=0, since=0, until=0)
    found: Any = Acquired(held.lease, held.expires_in_s) if held.lease else Acquired(unknown, ends_in_s=OPEN_S)
    answer: R = found
    return answer
