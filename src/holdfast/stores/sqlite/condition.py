"""The condition of a SQLite file."""

import sqlite3
from contextlib import closing
from pathlib import Path
from shutil import disk_usage

from holdfast.stores.condition import Condition, newer_form
from holdfast.stores.sqlite.file import migrations, refuse_if_missing, translate


def sqlite_condition(path: Path) -> Condition:
    """Look at the file; no store in this process may have it open."""
    refuse_if_missing(str(path))
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = connection.execute("select value from holdfast_meta where name = 'expanded'").fetchone()
            page_bytes, pages, unused = (
                connection.execute(f"pragma {name}").fetchone()[0] for name in ("page_size", "page_count", "freelist_count")
            )
    except sqlite3.Error as error:
        raise translate(error, str(path)) from error
    applied, known = int(found[0]) if found else 1, len(migrations())
    return Condition(
        f"{applied} steps of the schema are applied, and this release knows {known}",
        form_remedy=newer_form(applied, known),
        size_bytes=pages * page_bytes,
        unused_bytes=unused * page_bytes,
        free_bytes=disk_usage(path.absolute().parent).free,
        compact=f"New messages use the space again. To give it back, stop the programs and run `sqlite3 {path} vacuum`.",
    )
