-- What the commands share: time, locks, the counter, hints, refusals.

-- The server's clock. Never now(): in an open transaction it stands still, and two workers hold one lease.
create or replace function server_us() returns bigint
language sql volatile as $$
  -- A float has room for it, to less than a quarter of a microsecond; extract() goes by way of numeric.
  select (date_part('epoch', clock_timestamp()) * 1000000)::bigint
$$;

-- The store's clock: the server's, which may be set back, and from then on as much ahead of it as keeps it from going back.
create or replace function clock_us() returns bigint
language plpgsql volatile as $$
declare
  -- Not by a query, which costs several times as much. Null until it is set for the first time.
  seen bigint := coalesce(pg_sequence_last_value('clock_seen'), 0);
  ahead bigint := coalesce(pg_sequence_last_value('clock_ahead'), 0);
  -- Last: what others see meanwhile must not look like a clock that was set back.
  shown bigint := server_us();
begin
  if shown + ahead < seen then
    ahead := seen - shown;
    perform setval('clock_ahead', ahead) where current_setting('transaction_read_only') = 'off';
  end if;
  return shown + ahead;
end
$$;

-- Let others know the moment of an event. Not whoever reads: this gives a transaction its number, and its commit is flushed to the disk.
create or replace function keep_moment(now bigint) returns bigint
language plpgsql volatile as $$
begin
  if is_new_moment(now) then
    perform setval('clock_seen', now);
  end if;
  return now;
end
$$;

-- Asked before by those for whom another call is dear.
create or replace function is_new_moment(now bigint) returns boolean
language sql volatile as $$
  select now >= coalesce(pg_sequence_last_value('clock_seen'), 0) + 10000
$$;

-- What to add to a moment of the store for people to recognise it: the server's clock is theirs.
create or replace function wall_offset_us() returns bigint
language plpgsql stable as $$
begin
  return (select -last_value from clock_ahead);
end
$$;

create or replace function moment_in(seconds double precision) returns bigint
language sql immutable as $$
  select round(seconds * 1000000)::bigint
$$;

create or replace function never() returns bigint
language sql immutable as $$
  select {never}
$$;

create or replace function end_of(now bigint, lease_s double precision) returns bigint
language sql immutable as $$
  select case when lease_s is null then never() else now + moment_in(lease_s) end
$$;

create or replace function seconds_in(span bigint) returns double precision
language sql immutable as $$
  select span / 1000000::double precision
$$;

-- How much one answer brings, in bytes.
create or replace function answer_bytes() returns bigint
language sql immutable as $$
  select {answer_bytes}::bigint
$$;

-- How many of the first records fit into an answer of which so much is used; one that is empty takes one at least.
create or replace function fitting(sizes bigint[], used bigint) returns integer
language plpgsql as $$
declare
  count integer := (
    select count(*)
    from (select sum(s.size) over (order by s.o) as upto from unnest(sizes) with ordinality as s (size, o)) as r
    where used + r.upto <= answer_bytes()
  );
begin
  if count = 0 and cardinality(sizes) > 0 then
    perform refuse_answer() where used > 0;
    return 1;
  end if;
  return count;
end
$$;

create or replace function refuse_answer() returns void
language plpgsql as $$
begin
  perform refuse('answer_too_large');
end
$$;

create or replace function object_lock(kind text, name text) returns bigint
language sql stable as $$
  select hashtextextended(kind || ':' || name, 'names'::regclass::oid::bigint)
$$;

-- Everyone who uses a queue or a dict shares it until the end of the transaction; who empties, removes or counts it needs it alone.
create or replace function lock_object(kind text, name text, alone boolean) returns void
language plpgsql as $$
declare
  lock bigint := object_lock(kind, name);
begin
  if not alone then
    perform pg_advisory_xact_lock_shared(lock);
  else
    perform lock_alone(lock);
  end if;
end
$$;

-- A caller's own transaction may share it for long. Those behind us in the queue for the lock must not wait as long:
-- we give up (55P03), and the client tries again.
create or replace function lock_alone(lock bigint) returns void
language plpgsql set lock_timeout = '250ms' as $$
begin
  perform pg_advisory_xact_lock(lock);
end
$$;

create or replace function latest() returns bigint
language plpgsql volatile as $$
begin
  return (
    select case when is_called then last_value else 0 end from numbers
  );
end
$$;

create or replace function append(topic text, event text, data text, now bigint) returns bigint
language plpgsql as $$
declare
  number bigint;
begin
  insert into events (n, at, topic, event, data)
  values (nextval('numbers'), now, topic, event, data)
  returning n into number;
  perform wake('watch:' || topic, {everyone}), keep_moment(now);
  return number;
end
$$;

create or replace function hint(topic text, count bigint) returns void
language sql volatile as $$
  select pg_notify('holdfast_' || md5(current_schema()), least(count, {everyone}) || ':' || topic)
$$;

-- Hint to those who said that they wait. A NOTIFY takes one lock for the whole server at commit, so nobody else is notified.
create or replace function wake(hinted text, count bigint) returns void
language plpgsql as $$
begin
  perform hint(topic, count)
  from listeners
  where topic = hinted and until > clock_timestamp();
end
$$;

-- The facts of a queue's event: ids, keys where there are any, and what else is to be told, as the inside of a JSON object.
create or replace function told(ids text[], keys text[], more text default '') returns text
language sql stable as $$
  select '{"ids":' || array_to_json(ids)
    || case when array_remove(keys, null) = '{}' then '' else ',"keys":' || array_to_json(keys) end
    || more || '}'
$$;

-- Refuse the command, by the name of the error in Python and the facts that it is worded with.
create or replace function refuse(error text, facts jsonb default '[]') returns void
language plpgsql as $$
begin
  raise exception using errcode = 'HF001', message = error, detail = facts;
end
$$;

create or replace function json_text(value text) returns text
language sql stable as $$
  select coalesce(to_json(value)::text, 'null')
$$;

create or replace function texts(list jsonb) returns text[]
language plpgsql immutable as $$
begin
  return (
    select coalesce(array_agg(t order by o), '{}') from jsonb_array_elements_text(list) with ordinality as l(t, o)
  );
end
$$;

-- What comes right behind all texts that begin with the prefix, in the order of their bytes; behind every key and name if that is empty.
-- An index is read up to there: starts_with() alone does not end a scan.
create or replace function end_of_prefix(prefix text) returns text
language plpgsql immutable as $$
declare
  last integer;
begin
  while prefix <> '' loop
    last := ascii(right(prefix, 1));
    prefix := left(prefix, -1);
    if last < 1114111 then
      -- No character lies between these two.
      return prefix || chr(case last when 55295 then 57344 else last + 1 end);
    end if;
  end loop;
  return repeat(chr(1114111), 101);
end
$$;

-- Whether nobody is in the middle of a command on the objects of these topics. Never waits, so nobody waits behind it.
create or replace function is_settled(topics text[]) returns boolean
language plpgsql set search_path from current as $$
begin
  return coalesce(bool_and(case o.kind
    -- Who makes its row has the lock, who has ended it the row.
    when 'lease' then pg_try_advisory_xact_lock(object_lock('lease:' || o.name, o.key)) and not is_used(o.name, o.key)
    else pg_try_advisory_xact_lock(object_lock(o.kind, o.name))
  end), true)
  from (
    select replace(m[1], 'room', 'queue') as kind, m[2] as name, null as key
    from unnest(topics) as t, regexp_match(t, '^(?:watch:)?(queue|room|dict):(.*)$') as m
    where m is not null
    union
    select 'lease', '', m[1]
    from unnest(topics) as t, regexp_match(t, '^line:[^:]*:(.*)$') as m
    where m is not null
    union
    -- The name of a queue or dict may have colons, as its keys have: it ends before one of the first eight of them. A name with more is not
    -- looked at: each takes a lock, and the whole server has a limit of those.
    select k.kind, array_to_string(p.parts[:n], ':'), array_to_string(p.parts[n + 1:], ':')
    from unnest(topics) as t
    join (values ('key:', 'queue'), ('lease:', 'dict'), ('lease:', 'lease'), ('watch:lease:', 'lease')) as k (begins, kind)
      on starts_with(t, k.begins)
    cross join lateral (select string_to_array(substr(t, length(k.begins) + 1), ':') as parts) as p
    cross join generate_series(1, least(cardinality(p.parts) - 1, 8)) as n
  ) as o;
end
$$;
