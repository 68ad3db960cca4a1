"""The condition of an LMDB environment."""

from pathlib import Path
from shutil import disk_usage

import lmdb

from holdfast.stores.condition import Condition
from holdfast.stores.lmdb.backups import opened
from holdfast.stores.lmdb.environment import FORMAT, refuse_if_missing
from holdfast.stores.lmdb.failures import translate


def lmdb_condition(folder: Path) -> Condition:
    """Look at the folder; no store in this process may have it open."""
    refuse_if_missing(str(folder))
    try:
        with opened(folder) as environment, environment.begin() as txn:
            tables = [environment.open_db(bytes(name), txn=txn, create=False) for name, _ in txn.cursor()]
            stats = [environment.stat(), *(txn.stat(table) for table in tables)]
            page_bytes, pages = stats[0]["psize"], environment.info()["last_pgno"] + 1
    except lmdb.Error as error:
        raise translate(error, str(folder)) from error
    used = sum(stat[kind] for stat in stats for kind in ("branch_pages", "leaf_pages", "overflow_pages"))
    return Condition(
        f"format {FORMAT}, which this release writes",
        size_bytes=pages * page_bytes,
        unused_bytes=(pages - used) * page_bytes,
        free_bytes=disk_usage(folder).free,
        compact="New messages use the space again. To give it back, stop the programs, `holdfast backup`, `holdfast restore --from`.",
    )
