"""The SQL of the files beside this one, by name."""

from importlib.resources import files

from holdfast.records import NEVER
from holdfast.stores.sqlite.rows import ADDED, BARE, CHANGED, COLUMNS

PARTS = {
    "{columns}": COLUMNS,
    "{bare}": BARE,
    "{added}": ", ".join(ADDED),
    "{new row}": ", ".join("?" * len(ADDED)),
    "{never}": str(NEVER),
    "{changed}": ", ".join(f"{name} = ?" for name in CHANGED),
}


def _load() -> dict[str, str]:
    statements = {}
    texts = [(files(__package__) / f"{name}.sql").read_text("utf-8") for name in ("statements", "shares", "lanes", "counts")]
    for section in "\n".join(texts).split("-- name: ")[1:]:
        name, _, text = section.partition("\n")
        text = text.strip()
        for part, columns in PARTS.items():
            text = text.replace(part, columns)
        statements[name] = text
        if name.startswith("browse_"):
            statements[f"bare_{name}"] = text.replace(", m.value", ", m.value is null")
    return statements


SQL = _load()
