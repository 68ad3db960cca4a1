"""What the SQL files name in braces: values that Python has already, filled in when the functions are installed."""

import re
from importlib.resources import files
from typing import get_args

from holdfast.backoff import Backoff
from holdfast.commands import AnyCommand
from holdfast.commands.allowance import ANSWER_BYTES
from holdfast.commands.breaking import BROKEN
from holdfast.commands.claim_line import SWEEP
from holdfast.commands.events import RETAINED, RETAINED_S, RETRY_S
from holdfast.commands.filtered import LOOKED_AT
from holdfast.commands.groups import LANES_COUNTED
from holdfast.commands.hints import ALL
from holdfast.commands.putting import KEPT, Item
from holdfast.commands.stats import HELD_SEEN, PART_SEEN
from holdfast.records import HISTORY, NEVER, Message
from holdfast.records.policies import Policy
from holdfast.records.shares import SHARED_HOLDER

SETTINGS: dict[str, str] = {
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "holdfast.counting": "by_triggers",
}
"""Plans are made once, perhaps while the tables are empty, and must be those for full ones. A scan that is ruled out counts as dear enough
to compile, so `jit` is off."""

BY_HAND: tuple[str, str] = ("holdfast.counting", "by_hand")
"""What the fast functions set: they say themselves what they change of the counts. See schema/0007.sql."""

SESSION_SETTINGS: bytes = ", ".join(
    [
        "select set_config('search_path', quote_ident(%s), false), set_config('client_encoding', 'UTF8', false)",
        *(f"set_config('{name}', '{value}', false)" for name, value in (SETTINGS | dict([BY_HAND])).items()),
    ]
).encode()
"""What fast functions set for themselves elsewhere, at a tenth of what a put costs the server; of the schema's name."""

BY_INDEX: dict[str, str] = {"enable_hashjoin": "off", "enable_mergejoin": "off", "enable_material": "off"}
"""Lists meet tables by their indexes, row by row."""


def _column_types() -> dict[str, str]:
    first, added = ((files(__package__) / "schema" / name).read_text("utf-8") for name in ("0001.sql", "0006.sql"))
    (table,) = re.findall(r"^create table messages \((.*?)^\)", first, re.MULTILINE | re.DOTALL)
    (more,) = re.findall(r"^alter table messages\n(.*?);$", added, re.MULTILINE | re.DOTALL)
    types = dict(re.findall(r"^(?:  |add column )(\w+) (\w+)", table + more, re.MULTILINE))
    return {name: types[name] for name in Message.__struct_fields__ if name in types}


TYPES: dict[str, str] = _column_types()
COLUMNS: tuple[str, ...] = tuple(TYPES)
"""The fields of a message that have columns. All others are kept together in the column `extra`, so a new one needs no new column."""


def set_in_function(settings: dict[str, str]) -> str:
    """The settings as the head of a function has them."""
    return " ".join(f"set {name} = {value}" for name, value in settings.items())


KEPT_COLUMNS: tuple[str, ...] = tuple(name for name in KEPT if name in COLUMNS)
KNOWN: tuple[str, ...] = tuple(name for name in dict.fromkeys((*COLUMNS, *Item.__struct_fields__)) if name in COLUMNS or name not in KEPT)
"""The fields of items and messages that are not kept in `extra`."""

REBUILT = 10_000
"""So many messages are put into other lanes, or counted, in one step."""

READINGS: tuple[str, ...] = tuple(command.__name__ for command in get_args(AnyCommand) if command.reads_only)
"""The commands that only read: the function `answer_` and the name of each returns its answer."""

PLACEHOLDERS: dict[str, str] = {
    "settings": f"set search_path from current {set_in_function(SETTINGS)}",
    "fast_settings": f"set search_path from current {set_in_function(SETTINGS | dict([BY_HAND]))}",
    "by_index": set_in_function(BY_INDEX),
    "message_columns": ", ".join(COLUMNS),
    "kept_columns": ", ".join(KEPT_COLUMNS),
    "kept_values": ", ".join(f"r.{name}" for name in KEPT_COLUMNS).replace("r.priority", "coalesce(r.priority, 0)"),
    # Each by itself: jsonb_populate_record() looks for every column of the table.
    "option_values": ", ".join(f"(i.o ->> '{name}')::{TYPES[name]}" for name in KEPT_COLUMNS).replace(
        "(i.o ->> 'priority')::integer", "coalesce((i.o ->> 'priority')::integer, 0)"
    ),
    "item_values": ", ".join(f"(o ->> '{name}')::{TYPES[name]}" for name in KEPT_COLUMNS).replace(
        "(o ->> 'priority')::integer", "coalesce((o ->> 'priority')::integer, 0)"
    ),
    # Not too late to be started: the indexes are of this very condition's columns.
    "in_time": "(@start_by is null or @start_by > now or @attempts > 0)",
    "known_fields": ",".join(KNOWN),
    "readings": ",".join(READINGS),
    "answers": " ".join(f"when '{name}' then answer_{name.lower()}(c, now, used)" for name in READINGS),
    "policies": ",".join(Policy.__struct_fields__),
    "rebuilt": str(REBUILT),
    "lanes_counted": str(LANES_COUNTED),
    "backoff_first_s": str(Backoff().first_s),
    "backoff_most_s": str(Backoff().most_s),
    "everyone": str(ALL),
    "sweep": str(SWEEP),
    "broken": str(BROKEN),
    "never": str(NEVER),
    "shared_holder": SHARED_HOLDER,
    "answer_bytes": str(ANSWER_BYTES),
    "held_seen": str(HELD_SEEN),
    "looked_at": str(LOOKED_AT),
    "part_seen": str(PART_SEEN),
    "history": str(HISTORY),
    "retained": str(RETAINED),
    "retained_s": str(RETAINED_S),
    "retry_s": str(RETRY_S),
}

FILLED_IN = re.compile(r"\{([a-z_]+)(?: of (\w+))?\}")
"""A placeholder; `of` names the table that the columns behind an @ are of."""

DEFINITION = re.compile(r"^create or replace function (\w+)\(.*?(?=^create or replace|\Z)", re.MULTILINE | re.DOTALL)


def filled_in(text: str) -> str:
    """The text of a file, with two functions for each that has `{fast}` in its head.

    One brings the settings along, which costs a tenth of a put. The other is for a session of ours, which has them.
    """
    return FILLED_IN.sub(lambda found: PLACEHOLDERS[found[1]].replace("@", f"{found[2]}." if found[2] else ""), DEFINITION.sub(_both, text))


def _both(definition: re.Match[str]) -> str:
    text = definition[0]
    if " {fast} " not in text:
        return text
    in_session = text.replace(f"function {definition[1]}(", f"function {definition[1]}_in_session(", 1).replace(" {fast} ", " ", 1)
    return text.replace("{fast}", "{fast_settings}", 1) + in_session
