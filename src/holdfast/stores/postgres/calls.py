"""Commands as calls of the store's SQL functions, and answers from what those return: pure, for threads and tasks alike."""

from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any, TypeVar

from msgspec import Raw, Struct, json
from msgspec.structs import force_setattr

from holdfast.commands import Acquire, Acquired, Claim, Command, Import, Item, Put, Settle, Together, Write, encode_command
from holdfast.commands.plain import uses_only
from holdfast.commands.together import only_reads
from holdfast.errors import LeaseHeld
from holdfast.ids import new_id
from holdfast.records import Lease, Receipt
from holdfast.stores.postgres.singles import Singles
from holdfast.stores.postgres.statements import Call, as_array, function, in_schema

R = TypeVar("R")

OPEN_S = 0.5
"""When to ask again for what is being acquired in somebody's open transaction."""

_is_put = uses_only(Put, "id", "queue", "items")
_is_item = uses_only(Item, "id", "value", "if_ready", "if_leased", "priority")
_is_claim = uses_only(Claim, "id", "queue", "holder", "lease_s", "limit", "take", "expired_to", "max_attempts", "dead_letter")
_is_done = uses_only(Settle, "id", "receipts", "return_to", "delay_s", "error", "counts", "max_attempts", "dead_letter")


class Calls:
    """The calls of one schema."""

    def __init__(self, schema: str) -> None:
        self._execute = in_schema("select {}.execute(%s::jsonb, %s::text[])", schema)
        self._read = in_schema("select {}.read(%s::jsonb)", schema)
        self._put = function("put", "%s, %s, %s, %s::text[], %s::integer[], %s::text[]", schema)
        self._claim = function("claim", "%s, %s, %s, %s, %s, %s, %s, %s, %s, %s", schema)
        self._settle = function("settle", "%s, %s, %s, %s::text[], %s::bigint[]", schema)
        self._singles = Singles(schema)
        self.moved: Call = Call(in_schema("select max(value) from {}.meta where name = 'moved'", schema), ())
        self._prune = Call(in_schema("select {}.prune_some()", schema), ())

    def call(self, command: Command[Any], command_id: str, *, again: bool) -> Call:
        """The call that answers the command; under an id it is applied once, however often it is made.

        `again` says that it was perhaps made before: then the answer is looked for first.
        """
        if only_reads(command):
            return self._singles.call(command, "") or Call(self._read, (encoded(command),))
        if isinstance(command, Put) and command.items and _is_put(command) and all(map(_is_item, command.items)):
            return self._put_call(command, command_id, again)
        if isinstance(command, Claim) and _is_claim(command):
            return self._claim_call(command, command_id, again)
        if isinstance(command, Settle) and is_simple(command):
            receipts = command.receipts
            ids, tokens = as_array(receipt.id for receipt in receipts), as_array(str(receipt.token) for receipt in receipts)
            return self._settle.call(command_id, again, receipts[0].queue, ids, tokens)
        # What was perhaps made before is answered by the general function, which looks for the answer. So is what its caller named:
        # a single command that changes nothing writes no event which a second of its id would meet, and would be carried out again.
        single = None if again or command.id else self._singles.call(command, command_id)
        return single or self._general_call(command, command_id)

    def prune(self) -> Call:
        """The call that removes a little of what nobody needs any more."""
        return self._prune

    def _put_call(self, command: Put, command_id: str, again: bool) -> Call:  # noqa: FBT001 - as `call` says
        items = command.items
        priorities = as_array(str(item.priority) for item in items) if any(item.priority for item in items) else None
        texts = as_array(bytes(item.value).decode() for item in items)
        return self._put.call(command_id, again, command.queue, as_array(item.id for item in items), priorities, texts)

    def _claim_call(self, command: Claim, command_id: str, again: bool) -> Call:  # noqa: FBT001 - as `call` says
        rest = (command.take, command.expired_to, command.max_attempts, command.dead_letter)
        return self._claim.call(command_id, again, command.queue, command.holder, command.lease_s, command.limit, *rest)

    def _general_call(self, command: Command[Any], command_id: str) -> Call:
        texts: list[str] = []
        apart = values_apart(command, texts)
        if command_id != apart.id:
            apart = with_fields(apart, id=command_id)
        return Call(self._execute, (encoded(apart), texts))


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


def is_simple(command: Settle) -> bool:
    """Whether it acknowledges claims of one queue, each for itself."""
    receipts = command.receipts
    return bool(receipts) and _is_done(command) and (len(receipts) == 1 or all(each.queue == receipts[0].queue for each in receipts))


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
        items = [with_fields(item, value=place(item.value), metadata=place(item.metadata)) for item in command.items]
        return with_fields(command, items=items)
    if isinstance(command, Write):
        return with_fields(command, changes=[_change_apart(change, place) for change in command.changes])
    if isinstance(command, Acquire) and command.default is not None:
        return with_fields(command, default=place(command.default))
    if isinstance(command, Import):
        messages = [with_fields(one, value=place(one.value), metadata=place(one.metadata)) for one in command.messages]
        return with_fields(command, messages=messages, entries=[with_fields(one, value=place(one.value)) for one in command.entries])
    if isinstance(command, Together):
        return with_fields(command, commands=[values_apart(part, texts) for part in command.commands])
    return command


def _change_apart(change: Any, place: Callable[[Raw | None], Raw | None]) -> Any:
    by = place(Raw(json.encode(change.by))) if change.do == "increment" else None
    return with_fields(change, value=place(change.value), expected=place(change.expected), by=by)


def with_fields(record: Any, **fields: Any) -> Any:
    """A copy with other fields, unchecked: what it becomes is the wire's."""
    changed = copy(record)
    for name, value in fields.items():
        force_setattr(changed, name, value)
    return changed


def answer_held(command: Command[R], held: LeaseHeld) -> R:
    """The answer to an acquire that met an open transaction, which nobody can look into: a lease that is not the caller's."""
    if not isinstance(command, Acquire) or command.all_or_none:
        raise held
    lease = Lease(command.dict, command.key, holder="", lease_id="", token=0, since=0, until=0)
    found: Any = Acquired(lease, ends_in_s=OPEN_S)
    answer: R = found
    return answer


class Held(Struct):
    """What a refusal to acquire carries."""

    lease: Lease | None = None
    expires_in_s: float | None = None


decode_receipts: Callable[[str], list[Receipt]] = json.Decoder(list[Receipt]).decode
decode_held: Callable[[str], Held] = json.Decoder(Held).decode
