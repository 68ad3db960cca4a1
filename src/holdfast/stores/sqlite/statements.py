"""The SQL of `statements.sql`, by name."""

from importlib.resources import files

from holdfast.stores.sqlite.rows import BARE, COLUMNS

FILTER = """(:older is null or {since} < :older)
  and (:error is null or instr(m.last_error, :error) > 0)
  and (:prefix is null or substr(m.key, 1, length(:prefix)) = :prefix)"""


def _load() -> dict[str, str]:
    statements = {}
    for section in (files(__package__) / "statements.sql").read_text("utf-8").split("-- name: ")[1:]:
        name, _, text = section.partition("\n")
        since = "m.dead_at" if name == "browse_dead" else "m.created_at"
        statements[name] = (
            text.strip().replace("{columns}", COLUMNS).replace("{bare}", BARE).replace("{filter}", FILTER.replace("{since}", since))
        )
    return statements


SQL = _load()
