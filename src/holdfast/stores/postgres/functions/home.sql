-- Numbers after a restore: what was given out and lost is never given out again, and whoever has it is told so.

-- Where the store lives: which cluster, whose transaction numbers the log names; which schema, since a restored dump makes another; and which
-- run of the server, since files are only exchanged while it is down. schema.py has the same words.
create or replace function home() returns text
language sql stable as $$
  select concat_ws(
    '/',
    (select system_identifier from pg_control_system()), (select relnamespace from pg_class where oid = 'meta'::regclass),
    extract(epoch from pg_postmaster_start_time())
  )
$$;

-- Begin to serve the store here; answer 'new', 'started', or 'restored' where the data was put here from elsewhere. Under the lock of schema.py.
--
-- The numbers leap to the clock. None is ever ahead of it (nobody draws a million a second), so they are above all that were given out and
-- then lost with the files or the schema that a backup replaced. Those who have one of the lost numbers are known by it: it lies in the gap.
-- Others may draw meanwhile, but not so many that they come to where the sequence is set to.
create or replace function begin_here() returns text
language plpgsql set search_path from current as $$
declare
  -- Earlier versions noted the cluster alone.
  was text := coalesce((select value from meta where name = 'home'), (select value from meta where name = 'cluster'));
  before bigint := latest();
  number bigint := greatest(clock_us(), before + 1000);
  too_many bigint;
begin
  perform setval('numbers', number), save_meta('home', home());
  if was is null then
    return 'new';
  end if;
  if split_part(was, '/', 1) <> split_part(home(), '/', 1) then
    -- Transaction numbers and snapshots of the log are none here: it begins anew.
    delete from events;
    delete from topics;
    perform save_meta('floor', number::text);
    return 'restored';
  end if;
  insert into gaps (n, behind) values (number, before);
  select n into too_many from gaps order by n desc limit 1 offset 10000;
  if found then
    delete from gaps where n <= too_many;
    perform save_meta('floor', greatest(too_many, store_floor())::text);
  end if;
  return case when split_part(was, '/', 2) in ('', split_part(home(), '/', 2)) then 'started' else 'restored' end;
end
$$;

-- Whether numbering leapt over it.
create or replace function was_skipped(number bigint) returns boolean
language plpgsql stable as $$
begin
  return coalesce((select behind < number from gaps where n > number order by n limit 1), false);
end
$$;
