"""From the declarations of fields: every field of every command, with values at its edges and beyond them."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from holdfast.codec.fields import Each, Field, Flag, JsonObject, Number, Row, Seconds, Text, Whole
from holdfast.codec.limits import DURATION_MAX_S
from holdfast.codec.scalars import INT_MAX, INT_MIN
from holdfast.commands import (
    Acquire,
    BeginImport,
    Break,
    Browse,
    Change,
    Changes,
    Claim,
    Clear,
    Command,
    Configure,
    Count,
    Counts,
    Extend,
    Fences,
    Filter,
    Groups,
    Import,
    Item,
    LeaseName,
    Leases,
    LowerFences,
    Move,
    Names,
    Prune,
    Put,
    Read,
    Release,
    Renew,
    Resize,
    Seal,
    Settle,
    Write,
)
from holdfast.commands.imported import RECORDS, SURVEYED
from holdfast.commands.moving import CURSORS
from holdfast.commands.surveying import Surveyed
from holdfast.commands.transaction import Fenced
from holdfast.records import Ending, Entry, Message, Receipt
from holdfast.records.policies import Lane, Settings

ONE = Raw(b"1")
NUMBERS = 2**53 - 1


class Case(Struct, frozen=True):
    """One field of a struct that is a command or a part of one."""

    base: Struct
    field: Field
    asked: Callable[[Any], Command[Any]]
    """The command of which the struct is a part."""
    path: tuple[str | int, ...] = ()
    """Where in the command's JSON the struct is."""

    def __str__(self) -> str:
        return f"{type(self.base).__name__}.{self.field.name}"

    def command(self, value: object) -> Command[Any]:
        return self.asked(replace(self.base, **{self.field.name: value}))

    def body(self, value: object) -> bytes:
        """The command as JSON, with any value in the field."""
        whole: Any = json.decode(json.encode(self.asked(self.base)))
        part = whole
        for step in self.path:
            part = part[step]
        where = self.base.__struct_fields__.index(self.field.name) if isinstance(part, list) else self.field.name
        part[where] = value
        return json.encode(whole)


def imported(record: Any) -> Command[Any]:
    kind = next(kind for base, kind in RECORDED if type(base) is type(record))
    return replace(Import("s", "", "p", ""), **{kind: [record]})


def survey(surveyed: Any) -> Command[Any]:
    return BeginImport("s", surveyed)


COMMANDS: list[Any] = [
    Claim("q"),
    Extend([Receipt("q", "a", 1)], 1.0),
    Settle([Receipt("q", "a", 1)]),
    Move("q", "gone"),
    Browse("q"),
    Read("d"),
    Write("d", [Change("k", value=ONE)]),
    Acquire("d", "k", "me", "mine", 1.0),
    Renew([LeaseName(None, "k", "mine")], 1.0),
    Resize("k", 4),
    Break(None, "k", "why"),
    Leases("d"),
    Release([LeaseName(None, "k", "mine")]),
    Configure("queue", "q"),
    Clear("queue", "other"),
    LowerFences("d"),
    Names("queue"),
    Counts(),
    Groups("q"),
    Changes("queue:q"),
    Prune(),
    Fences(),
    BeginImport("s", Surveyed(0, 0, 0)),
    Import("s", "", "p", ""),
    Seal("memory://", NUMBERS),
]
SHARE = Acquire(None, "k", "me", "mine", 1.0, capacity=2**20)
BASES = {"capacity": SHARE, "weight": SHARE, "in_line_s": SHARE, "max_waiters": replace(SHARE, in_line_s=1.0)}
"""The command in which a field that means something only beside others is tried."""
PARTS: list[tuple[Any, Callable[[Any], Command[Any]], tuple[str | int, ...]]] = [
    (Item("a", ONE, key="k", if_ready="postpone"), lambda item: Put("q", [item]), ("items", 0)),
    (Receipt("q", "a", 1), lambda receipt: Settle([receipt]), ("receipts", 0)),
    (Filter(error_contains="x"), lambda which: Browse("q", which=which), ("which",)),
    (Filter(error_contains="x"), lambda which: Count("q", which), ("which",)),
    (Change("k", value=ONE), lambda change: Write("d", [change]), ("changes", 0)),
    (LeaseName(None, "k", "mine"), lambda name: Renew([name], 1.0), ("names", 0)),
]
RECORDED: list[tuple[Any, str]] = [
    (Settings("queue", "q"), "settings"),
    (Message("q", "a", ONE), "messages"),
    (Fenced("d", "k", 1), "fences"),
    (Entry("d", "k", ONE, 1), "entries"),
    (Lane("q", "g"), "lanes"),
]


def base_for(command: Any, field: Field) -> Any:
    if isinstance(command, Configure) and field.name in ("weight", "forget"):
        return replace(command, group="g")
    if isinstance(command, Clear) and field.name == "prefix":
        return replace(command, kind="dict")
    return BASES.get(field.name, command) if isinstance(command, Acquire) else command


def cases() -> Iterator[Case]:
    """Every declared field of everything that is sent."""
    for command in COMMANDS:
        yield from (Case(base_for(command, field), field, lambda whole: whole) for field in command.checked)
    for part, asked, path in PARTS:
        yield from (Case(part, field, asked, path) for field in part.checked)
    yield from (Case(Surveyed(0, 0, 0), field, survey, ("survey",)) for field in SURVEYED)
    for record, kind in RECORDED:
        yield from (Case(record, field, imported, (kind, 0)) for field in RECORDS[type(record)])
    ending = Ending("me", 1, 0, 0, "failed")
    told: Callable[[Any], Command[Any]] = lambda ended: imported(Message("q", "a", ONE, history=(ended,)))  # noqa: E731
    yield from (Case(ending, field, told, ("messages", 0, "history", 0)) for field in RECORDS[Ending])
    for state, cursor in CURSORS.items():
        yield Case(Browse("q", state=state), cursor, lambda whole: whole)
        yield Case(Move("q", "gone", state=state), cursor, lambda whole: whole)


CASES = {f"{number}-{case}": case for number, case in enumerate(cases())}


def edges(field: Field) -> list[Any]:
    """The lowest and the highest that a field may hold."""
    match field:
        case Whole():
            return [field.least, field.most, *([None] if field.optional else [])]
        case Seconds():
            return [0.0 if field.zero else 1e-6, DURATION_MAX_S, *([None] if field.optional else [])]
        case Number():
            return [INT_MIN, INT_MAX, -1.5e300]
        case Flag():
            return [True, False]
        case Text():
            return ["x" * field.most, "é" * (field.most // 2), "x" * field.least, *([None] if field.optional else [])]
        case Each():
            return [[edge] for edge in edges(field.of)] + ([["x"] * field.most, []] if field.most else [])
        case Row():
            return [tuple(edges(part)[0] for part in field.parts), tuple(edges(part)[1] for part in field.parts)]
        case JsonObject():
            return [Raw(b"{}"), Raw(b'{"a":[1.5,null,"\\u0000"]}')]
    raise TypeError(f"say here what the edges of a {type(field).__name__} are")


def beyond(field: Field) -> list[Any]:
    """One step over each edge, other types, and far too much."""
    match field:
        case Whole():
            over = [field.least - 1, field.most + 1, 2**63, 10**30, 1.5, True, "1", [1]]
            return over if field.optional else [*over, None]
        case Seconds():
            return [-1.0, DURATION_MAX_S * 1.001, 1e300, True, "1", [1], *([] if field.zero else [0.0])]
        case Number():
            return [INT_MIN - 1, INT_MAX + 1, 10**30, True, "1", [1], None]
        case Flag():
            return [1, 0, "true", None]
        case Text():
            over = ["x" * (field.most + 1), "é" * (field.most // 2 + 1), "x" * 70_000, "\0"]
            return over if field.is_key else [*over, 1, ["x"]]
        case Each():
            return [[bad] for bad in beyond(field.of)] + ([["x"] * (field.most + 1), "x", 1] if field.most else [])
        case Row():
            good = [edges(part)[0] for part in field.parts]
            wrong = [[*good[:at], bad, *good[at + 1 :]] for at, part in enumerate(field.parts) for bad in beyond(part)]
            return [good[:-1], [*good, 1], [], *wrong]
        case JsonObject():
            return [Raw(bad) for bad in (b"[1]", b"null", b'"x"', b"5", b"{", b'{"a":1e400}', b'{"a":' + b"1" * 5_000 + b"}")]
    raise TypeError(f"say here what is beyond a {type(field).__name__}")
