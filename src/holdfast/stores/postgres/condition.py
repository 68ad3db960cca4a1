"""The condition of a schema in PostgreSQL, and of what is before its server."""

from psycopg import sql

from holdfast.stores.condition import Condition, Transaction, newer_form
from holdfast.stores.postgres.address import parse
from holdfast.stores.postgres.maintenance import administering
from holdfast.stores.postgres.schema import newest
from holdfast.stores.postgres.sessions import PROCESS, has_session
from holdfast.wording import counted

FORM = """
select coalesce(max(value) filter (where name = 'expanded'), '0'), count(*) filter (where starts_with(name, 'functions '))
from {}.meta
"""
SPACE = """
select coalesce(sum(pg_total_relation_size(relid)), 0)::bigint,
  coalesce(sum(pg_total_relation_size(relid) * n_dead_tup / greatest(n_live_tup + n_dead_tup, 1)), 0)::bigint
from pg_stat_user_tables
where schemaname = %s
"""
OLDEST = """
select pid, coalesce(usename, '?'), coalesce(application_name, ''), extract(epoch from clock_timestamp() - xact_start)::float8
from pg_stat_activity
where backend_type = 'client backend' and datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
order by xact_start
limit 1
"""
PRUNE = "Once no program of another release uses the store: `holdfast prune-functions URL`."
VACUUM = "See that autovacuum is on and that no transaction stays open; `vacuum` makes the space usable again, without a pause for anyone."
END = "Have its program commit, or end it: `select pg_terminate_backend({})`. idle_in_transaction_session_timeout does so by itself."


def postgres_condition(url: str) -> Condition:
    """Look at the schema that the URL names."""
    address = parse(url)
    with administering(address) as session:
        is_pooled = not has_session(session, session.execute(PROCESS).fetchone())
        expanded, releases = session.execute(sql.SQL(FORM).format(sql.Identifier(address.schema))).fetchone() or ("0", 0)
        size_bytes, unused_bytes = session.execute(SPACE, (address.schema,)).fetchone() or (0, 0)
        oldest = session.execute(OLDEST).fetchone()
    return Condition(
        f"{expanded} steps of the schema are applied, and this release knows {newest()}; functions of {counted(releases, 'release')}",
        form_remedy=newer_form(int(expanded), newest()) or (PRUNE if releases > 1 else ""),
        is_pooled=is_pooled,
        size_bytes=size_bytes,
        unused_bytes=unused_bytes,
        compact=VACUUM,
        oldest=None if oldest is None else _transaction(*oldest),
    )


def _transaction(pid: int, user: str, program: str, open_s: float) -> Transaction:
    return Transaction(f"server process {pid} of user {user}{f' ({program})' if program else ''}", open_s, END.format(pid))
