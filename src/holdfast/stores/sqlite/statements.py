"""The SQL of the files beside this one, by name."""

from importlib.resources import files

from holdfast.records import NEVER
from holdfast.stores.sqlite.rows import ADDED, BARE, CHANGED, COLUMNS

FILTER = """(:older is null or {since} < :older)
  and (:error is null or instr(m.last_error, :error) > 0)
  and (:prefix is null or substr(m.key, 1, length(:prefix)) = :prefix)
  and (:label is null or exists (
    select l.value from json_each(cast(m.extra as text), '$.labels') as l where l.value = :label
  ))
  and (:group is null or coalesce(json_extract(cast(m.extra as text), '$.group'), '') = :group)
  and (:newer is null or {since} >= :newer)
  and (:class is null or substr(m.last_error, 1, instr(m.last_error || ':', ':') - 1) = :class)
  and (:text is null or instr(coalesce(m.value, (select v.value from holdfast_values as v where v.n = m.n)), :text) > 0)"""


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
        text = text.strip().replace("{filter}", FILTER.replace("{since}", "m.dead_at" if name == "browse_dead" else "m.created_at"))
        for part, columns in PARTS.items():
            text = text.replace(part, columns)
        statements[name] = text
    return statements


SQL = _load()
