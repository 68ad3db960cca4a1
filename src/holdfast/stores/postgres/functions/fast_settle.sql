-- Settle claims of one queue: a few statements, each answered by an index. Whatever takes more goes on to execute().

-- Acknowledge claims of one queue on different messages.
create or replace function fast_settle(command_id text, again boolean, of_queue text, ids text[], tokens bigint[]) returns text
language plpgsql {fast} as $$
declare
  shared text := pg_advisory_xact_lock_shared(object_lock('queue', of_queue));
  now bigint := clock_us();
  done_ids text[];
  done_keys text[];
  are_all boolean;
  have_keys boolean;
begin
  if again then
    return settle_fully('{"type":"Settle"}', command_id, of_queue, ids, tokens);
  elsif cardinality(ids) = 1 then
    delete from messages as m
    where m.queue = of_queue and m.id = ids[1] and is_held(m.state, m.token, m.until, tokens[1], now)
    returning array[m.id], array[m.key] into done_ids, done_keys;
  else
    select r.done_ids, r.done_keys into done_ids, done_keys from remove_held(of_queue, ids, tokens, now) as r;
  end if;
  if done_ids is null then
    return remember(command_id, now, '{"held":' || array_to_json(array_fill(false, array[cardinality(ids)])) || '}');
  end if;
  are_all := cardinality(done_ids) = cardinality(ids);
  have_keys := array_remove(done_keys, null) <> '{}';
  insert into events (n, at, topic, event, data, command)
  values (
    nextval('numbers'), now, 'queue:' || of_queue, 'settled',
    case when are_all and not have_keys then '{"ids":' || array_to_json(ids) || ',"to":"done"}' else told_done(ids, done_ids, done_keys) end,
    nullif(command_id, '')
  );
  perform keep_moment(now);
  if exists (select from listeners as l where l.topic = 'watch:queue:' || of_queue and l.until > clock_timestamp()) then
    perform wake('watch:queue:' || of_queue, {everyone});
  end if;
  if have_keys then
    perform promote(of_queue, done_keys);
  end if;
  if are_all then
    return '{"held":[true' || repeat(',true', cardinality(ids) - 1) || ']}';
  end if;
  return '{"held":' || array_to_json(firsts_among(ids, done_ids)) || '}';
end
$$;

-- Remove those messages that their claims still hold.
create or replace function remove_held(of_queue text, ids text[], tokens bigint[], now bigint, out done_ids text[], out done_keys text[])
language plpgsql as $$
begin
  if tokens[1] = all (tokens) then
    -- A row that somebody changes meanwhile may be left for the next statement.
    with gone as (
      delete from messages as m
      where is_held(m.state, m.token, m.until, tokens[1], now) and m.ctid = any (array(
        select h.ctid
        from unnest(ids) as r (id)
        cross join lateral (select m.ctid from messages as m where m.queue = of_queue and m.id = r.id limit 1) as h
      ))
      returning m.id, m.key
    )
    select array_agg(id), array_agg(key) into done_ids, done_keys from gone;
  end if;
  if done_ids is null or cardinality(done_ids) < cardinality(ids) then
    -- What changed while we waited for its row is seen only by a statement that begins afterwards.
    perform lock_rows(of_queue, ids);
    with gone as (
      delete from messages as m
      where m.ctid = any (array(
        select h.ctid
        from unnest(ids, tokens) as r (id, token)
        cross join lateral (
          select m.ctid, m.token, m.state, m.until from messages as m where m.queue = of_queue and m.id = r.id limit 1
        ) as h
        where is_held(h.state, h.token, h.until, r.token, now)
      ))
      returning m.id, m.key
    )
    select array_cat(done_ids, array_agg(id)), array_cat(done_keys, array_agg(key)) into done_ids, done_keys from gone;
  end if;
end
$$;

create or replace function lock_rows(of_queue text, ids text[]) returns void
language plpgsql as $$
begin
  perform
  from unnest(ids) as r (id)
  cross join lateral (select from messages as m where m.queue = of_queue and m.id = r.id limit 1 for update) as h;
end
$$;

-- Release or fail claims of one queue on different messages without keys, while all are held and none has spent its budget. `command` is
-- all of the command but its id and receipts.
create or replace function fast_return(
  command_id text, again boolean, of_queue text, ids text[], tokens bigint[], command jsonb
) returns text
language plpgsql {fast} as $$
declare
  shared text := pg_advisory_xact_lock_shared(object_lock('queue', of_queue));
  now bigint;
  are_all boolean := false;
begin
  if not again then
    perform lock_rows(of_queue, ids) where cardinality(ids) > 1;
    now := clock_us();
    are_all := return_held(of_queue, ids, tokens, command, now);
  end if;
  if not are_all then
    return settle_fully(command, command_id, of_queue, ids, tokens);
  end if;
  insert into events (n, at, topic, event, data, command)
  values (nextval('numbers'), now, 'queue:' || of_queue, 'settled', '{"ids":' || array_to_json(ids) || ',"to":"ready"}', nullif(command_id, ''));
  perform keep_moment(now), wake_queue(of_queue, cardinality(ids));
  return '{"held":[true' || repeat(',true', cardinality(ids) - 1) || ']}';
end
$$;

-- Whether all messages are back in line, none if not. Several rows are locked before; a single one that somebody changes is left as it is.
create or replace function return_held(of_queue text, ids text[], tokens bigint[], command jsonb, now bigint) returns boolean
language plpgsql as $$
declare
  counts boolean := coalesce((command ->> 'counts')::boolean, false);
  budget integer := command ->> 'max_attempts';
  error text := command ->> 'error';
  goes_to text := coalesce(command ->> 'return_to', 'back');
  delay bigint := moment_in(coalesce((command ->> 'delay_s')::double precision, 0));
begin
  with held as materialized (
    select h.ctid as place
    from names as s, unnest(ids, tokens) as r (id, token)
    cross join lateral (
      select m.ctid, m.token, m.state, m.until, m.key, m.failures, m.max_attempts
      from messages as m
      where m.queue = of_queue and m.id = r.id
      limit 1
    ) as h
    where s.kind = 'queue' and s.name = of_queue and s.maxsize is null
      and is_held(h.state, h.token, h.until, r.token, now) and h.key is null
      and (counts and h.failures + 1 >= coalesce(h.max_attempts, budget)) is not true
  )
  update messages as m
  set
    state = 'ready', failures = m.failures + counts::integer, endings = m.endings + 1, last_error = coalesce(error, m.last_error),
    position = position_in(
      goes_to, m.position, case goes_to when 'front' then head_position(of_queue, m.priority, now) end, now, delay, now
    ),
    history = history_with(
      m.history, m.holder, m.token, m.since, now, case when counts then 'failed' else 'released' end, error
    )
  where m.ctid = any (array(select place from held)) and (select count(*) from held) = cardinality(ids);
  return found;
end
$$;

-- Settle by the full rules.
create or replace function settle_fully(command jsonb, command_id text, of_queue text, ids text[], tokens bigint[]) returns text
language plpgsql as $$
begin
  return execute(command || jsonb_build_object('id', command_id, 'receipts', (
    select jsonb_agg(jsonb_build_array(of_queue, r.id, r.token) order by r.o) from unnest(ids, tokens) with ordinality as r (id, token, o)
  )), '{}', only_object('queue', of_queue));
end
$$;

-- Whether a claim still holds its message. So written that no index on the state answers it: the row is found by its id, among few or many.
create or replace function is_held(state state, token bigint, until bigint, claimed bigint, now bigint) returns boolean
language sql immutable as $$
  select case when state = 'leased' and token = claimed then until > now else false end
$$;

-- In the order asked. The planner takes lists for short and would compare each with each.
create or replace function told_done(ids text[], done_ids text[], done_keys text[]) returns text
language plpgsql stable set enable_nestloop = off set enable_hashjoin = on as $$
begin
  return (
    select told(array_agg(d.id order by i.o), array_agg(d.key order by i.o), ',"to":"done"')
    from unnest(ids) with ordinality as i (id, o)
    join unnest(done_ids, done_keys) as d (id, key) on d.id = i.id
  );
end
$$;
