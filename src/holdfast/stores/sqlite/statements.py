"""The SQL of the files beside this one, by name: one statement a section.

Sets are passed as JSON arrays. What stands in braces is filled in here: `{columns}` are a message's columns without its value, `{bare}`
the same and whether the value lies apart.
"""

import re
from importlib.resources import files
from itertools import count

from holdfast.records import NEVER
from holdfast.stores.sqlite.rows import ADDED, BARE, CHANGED, COLUMNS

PARAMETER = re.compile(r"\?(\d+)")

PARTS = {
    "{columns}": COLUMNS,
    "{bare}": BARE,
    "{added}": ", ".join(ADDED),
    "{new row}": ", ".join("?" * len(ADDED)),
    "{never}": str(NEVER),
    "{changed}": ", ".join(f"{name} = ?" for name in CHANGED),
}

IN_TIME = re.compile(r"\{in time by (\S+?)(?: of (\w+))?\}")


def _in_time(found: re.Match[str]) -> str:
    """The condition that it is not too late, at a moment, to start a message."""
    now, of = found[1], f"{found[2]}." if found[2] else ""
    return f"({of}start_by is null or {of}start_by > {now} or {of}attempts > 0)"


def _load() -> dict[str, str]:
    statements = {}
    texts = [path.read_text("utf-8") for path in files(__package__).iterdir() if path.name.endswith(".sql")]
    for section in (section for text in texts for section in text.split("-- name: ")[1:]):
        name, _, text = section.partition("\n")
        text = IN_TIME.sub(_in_time, text.strip())
        for part, columns in PARTS.items():
            text = text.replace(part, columns)
        statements[name] = text
        if name.startswith("browse_"):
            statements[f"bare_{name}"] = text.replace(", m.value", ", m.value is null")
    return statements


SQL = _load()


def fixed(statement: str, values: dict[int, str]) -> str:
    """The statement with these values, as SQL, in place of parameters of these numbers, and the others renumbered.

    For the commonest statements: to pass a None takes sqlite3 longer than any other value.
    """
    numbers = count(1)
    rest = {place: f"?{next(numbers)}" for place in sorted({int(found) for found in PARAMETER.findall(statement)} - values.keys())}
    return PARAMETER.sub(lambda found: (rest | values)[int(found[1])], statement)
