-- The commonest commands in their simple form: a few statements, each answered by an index. Whatever takes more goes on to execute().

-- Put messages without keys and options into a queue that exists and has no bounds.
create or replace function put(command_id text, again boolean, of_queue text, ids text[], priorities integer[], vals text[]) returns text
language plpgsql set search_path from current set plan_cache_mode = force_generic_plan as $$
declare
  now bigint;
  added text[];
  created boolean[];
begin
  perform pg_advisory_xact_lock_shared(object_lock('queue', of_queue));
  if again or not exists (select from names where kind = 'queue' and name = of_queue and maxsize is null) then
    return execute(jsonb_build_object('type', 'Put', 'id', command_id, 'queue', of_queue, 'items', (
      select jsonb_agg(jsonb_build_object('id', i.id, 'priority', coalesce(i.priority, 0), 'value', i.o) order by i.o)
      from unnest(ids, priorities) with ordinality as i (id, priority, o)
    )), vals);
  end if;
  now := clock_us();
  with new as (
    insert into messages (queue, id, priority, position, created_at, value)
    select of_queue, i.id, coalesce(i.priority, 0), now, now, i.value
    from unnest(ids, priorities, vals) as i (id, priority, value)
    on conflict do nothing
    returning id
  )
  select array_agg(id) into added from new;
  if cardinality(added) = cardinality(ids) then
    created := array_fill(true, array[cardinality(ids)]);
  else
    -- The first of those that share an id, where it was not there before.
    created := array(
      select coalesce(i.id = any (added), false) and row_number() over (partition by i.id order by i.o) = 1
      from unnest(ids) with ordinality as i (id, o)
      order by i.o
    );
    added := array(select i.id from unnest(ids, created) with ordinality as i (id, is_new, o) where i.is_new order by i.o);
  end if;
  if added <> '{}' then
    insert into events (n, at, topic, event, data)
    values (nextval('numbers'), now, 'queue:' || of_queue, 'put', '{"ids":' || array_to_json(ids_in_order(added, ids)) || '}');
    perform wake_queue(of_queue, cardinality(added));
  end if;
  return remember(command_id, now, '{"ids":' || array_to_json(ids) || ',"created":' || array_to_json(created) || '}');
end
$$;

create or replace function ids_in_order(added text[], ids text[]) returns text[]
language sql immutable as $$
  select case when cardinality(added) = cardinality(ids) then ids else added end
$$;

-- Hint to those who wait for messages and those who watch, with one look at who does.
create or replace function wake_queue(queue text, count bigint) returns void
language plpgsql as $$
begin
  perform pg_notify('holdfast_' || md5(current_schema()), count || ':' || topic)
  from listeners
  where topic in ('queue:' || queue, 'watch:queue:' || queue) and until > clock_timestamp();
end
$$;

-- Keep an answer for a client that does not hear it. One that is kept already means that this command was applied before: then all of it is
-- undone (23505), and asked for again.
create or replace function remember(command_id text, now bigint, answer text) returns text
language plpgsql as $$
begin
  if command_id <> '' then
    insert into answers (at, id, note) values (now, command_id, answer);
  end if;
  return answer;
end
$$;

-- Lease, or with `takes` remove, the first due messages of the highest priority in use, while no lease has ended.
create or replace function claim(
  command_id text, again boolean, of_queue text, of_holder text, lease_s double precision, most integer, takes boolean, expiry text,
  budget integer, grave text
) returns text
language plpgsql set search_path from current set plan_cache_mode = force_generic_plan as $$
declare
  now bigint;
  ends_at bigint;
  is_plain boolean;
  top integer;
  places tid[];
  ids text[];
  keys text[];
  number bigint;
  answer text;
begin
  perform pg_advisory_xact_lock_shared(object_lock('queue', of_queue));
  select s.maxsize is null and not s.paused and not again into is_plain from names as s where s.kind = 'queue' and s.name = of_queue;
  now := clock_us();
  if is_plain
    and not exists (select from messages where queue = of_queue and state = 'leased' and until <= now)
    and not exists (
      select from messages where queue = of_queue and state = 'ready' and start_by is not null and attempts = 0 and start_by <= now
    )
  then
    select priority into top from messages where queue = of_queue and state = 'ready' order by priority desc limit 1;
    select array_agg(h.ctid), array_agg(h.id), array_agg(h.key) into places, ids, keys
    from (
      select m.ctid, m.id, m.key
      from messages as m
      where m.queue = of_queue and m.state = 'ready' and m.priority = top and m.position <= now
      order by m.position, m.n
      limit most
      for update skip locked
    ) as h;
    if cardinality(ids) < most and exists (select from messages where queue = of_queue and state = 'ready' and priority < top) then
      ids := null;
    end if;
  end if;
  if ids is null then
    return execute(jsonb_strip_nulls(jsonb_build_object(
      'type', 'Claim', 'id', command_id, 'queue', of_queue, 'holder', of_holder, 'lease_s', lease_s, 'limit', most, 'take', takes,
      'expired_to', expiry, 'max_attempts', budget, 'dead_letter', grave
    )), '{}');
  end if;
  -- The rows are won: a later claim of any of them draws a larger number and begins later.
  now := clock_us();
  ends_at := end_of(now, lease_s);
  insert into events (n, at, topic, event, data)
  values (nextval('numbers'), now, 'queue:' || of_queue, 'claimed', told(ids, keys, ',"holder":' || to_json(of_holder)))
  returning n into number;
  perform wake('watch:queue:' || of_queue, 1073741824);
  with leased as (
    update messages as m
    set state = 'leased', attempts = m.attempts + 1, holder = of_holder, token = number, since = now, until = ends_at, expired_to = expiry
    where m.ctid = any (places)
    returning m.position, m.n, message_json(m) as told
  )
  select string_agg(told, ',' order by position, n) into answer from leased;
  if takes then
    delete from messages where queue = of_queue and id = any (ids);
    perform promote(of_queue, keys);
  end if;
  if command_id <> '' then
    insert into answers (at, id, note)
    values (now, command_id, case when takes then '[' || answer || ']' else json_build_array(to_json(ids), number)::text end);
  end if;
  return '{"messages":[' || answer || ']}';
end
$$;

-- Acknowledge claims of one queue.
create or replace function settle(command_id text, again boolean, of_queue text, ids text[], tokens bigint[]) returns text
language plpgsql set search_path from current set plan_cache_mode = force_generic_plan as $$
declare
  now bigint;
  done_ids text[];
  done_keys text[];
  held boolean[];
begin
  perform pg_advisory_xact_lock_shared(object_lock('queue', of_queue));
  if again or (cardinality(ids) > 1 and (select count(distinct id) from unnest(ids) as id) < cardinality(ids)) then
    return execute(jsonb_build_object('type', 'Settle', 'id', command_id, 'receipts', (
      select jsonb_agg(jsonb_build_array(of_queue, r.id, r.token) order by r.o) from unnest(ids, tokens) with ordinality as r (id, token, o)
    )), '{}');
  end if;
  now := clock_us();
  with gone as (
    delete from messages as m
    where m.ctid = any (array(
      -- Row by row through the primary key: it is the one index that knows ids, and the rest is looked at afterwards.
      select h.ctid
      from unnest(ids, tokens) as r (id, token)
      cross join lateral (
        select m.ctid, m.token, m.state, m.until from messages as m where m.queue = of_queue and m.id = r.id limit 1 for update
      ) as h
      where h.token = r.token and h.state = 'leased' and h.until > now
    ))
    returning m.id, m.key
  )
  select array_agg(id), array_agg(key) into done_ids, done_keys from gone;
  if cardinality(done_ids) = cardinality(ids) then
    held := array_fill(true, array[cardinality(ids)]);
  else
    held := array(select coalesce(i.id = any (done_ids), false) from unnest(ids) with ordinality as i (id, o) order by i.o);
  end if;
  if done_ids is not null then
    insert into events (n, at, topic, event, data)
    values (nextval('numbers'), now, 'queue:' || of_queue, 'settled', told_done(ids, done_ids, done_keys));
    perform wake('watch:queue:' || of_queue, 1073741824);
    perform promote(of_queue, done_keys) where array_remove(done_keys, null) <> '{}';
  end if;
  return remember(command_id, now, '{"held":' || array_to_json(held) || '}');
end
$$;

-- In the order asked. The planner takes lists for short and would compare each with each.
create or replace function told_done(ids text[], done_ids text[], done_keys text[]) returns text
language plpgsql stable set enable_nestloop = off set enable_hashjoin = on as $$
begin
  if cardinality(ids) = 1 then
    return told(done_ids, done_keys, ',"to":"done"');
  end if;
  return (
    select told(array_agg(d.id order by i.o), array_agg(d.key order by i.o), ',"to":"done"')
    from unnest(ids) with ordinality as i (id, o)
    join unnest(done_ids, done_keys) as d (id, key) on d.id = i.id
  );
end
$$;
