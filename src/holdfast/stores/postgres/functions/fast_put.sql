-- Put messages that meet no others of their keys: a few statements, each answered by an index. Whatever takes more goes on to execute().
--
-- One message at a time is the commonest of all, and has statements of its own: lists and their order cost as much as the rest.

-- Put messages into a queue that exists and has no bounds. `options` has an object for each item, null where all are as by default. Only a
-- single message may have a key: two batches could wait for each other's keys.
create or replace function fast_put(command_id text, again boolean, of_queue text, ids text[], vals text[], options jsonb) returns text
language plpgsql {fast} as $$
declare
  shared text := pg_advisory_xact_lock_shared(object_lock('queue', of_queue)); -- an assignment costs less than a statement
  now bigint := clock_us();
  of_key text; added text[]; facts text; answer text;
  is_awaited boolean;
begin
  if not again and options is null and cardinality(ids) = 1 then
    insert into messages (queue, id, position, created_at, value)
    select of_queue, ids[1], now, now, vals[1]
    from names as s
    where s.kind = 'queue' and s.name = of_queue and s.maxsize is null and (s.rules & 5 > 0) is not true
    on conflict (queue, id) do nothing;
    added := case when found then ids end;
  elsif not again and (options @? '$[*].group') is not true then
    added := case when cardinality(ids) = 1 then add_message(of_queue, ids[1], vals[1], options -> 0, now) else add_messages(of_queue, ids, vals, options, now) end;
    of_key := options #>> '{0,key}';
  end if;
  if added is null then
    return put_otherwise(command_id, again, of_queue, ids, vals, options, now);
  end if;
  if cardinality(added) = cardinality(ids) then
    facts := '{"ids":' || array_to_json(ids);
    answer := facts || ',"created":[true' || repeat(',true', cardinality(ids) - 1) || ']}';
  else
    facts := '{"ids":' || array_to_json(array(select i.id from unnest(ids) with ordinality as i (id, o) where i.id = any (added) order by i.o));
    answer := put_answer(ids, firsts_among(ids, added));
  end if;
  -- Who waits is looked at only now that the queue is shared: see is_settled.
  with counted as (insert into shifts (queue, ready) values (of_queue, cardinality(added)))
  insert into events (n, at, topic, event, data, command)
  values (
    nextval('numbers'), now, 'queue:' || of_queue, 'put', facts || coalesce(',"keys":[' || to_json(of_key) || ']}', '}'), nullif(command_id, '')
  )
  returning exists (
    select from listeners as l where l.topic in ('queue:' || of_queue, 'watch:queue:' || of_queue) and l.until > clock_timestamp()
  ) into is_awaited;
  now := case when is_new_moment(now) then keep_moment(now) else now end;
  if is_awaited then
    perform wake_queue(of_queue, cardinality(added));
  end if;
  if of_key is not null then
    perform wake('key:' || of_queue || ':' || of_key, 1);
  end if;
  return answer;
end
$$;

-- Put what does not simply stand in the one line of a queue.
create or replace function put_otherwise(
  command_id text, again boolean, of_queue text, ids text[], vals text[], options jsonb, now bigint
) returns text
language plpgsql as $$
declare
  answer text;
begin
  if not again then
    answer := put_in_queue_with_lanes(command_id, of_queue, ids, vals, options, now);
  end if;
  return coalesce(answer, put_fully(command_id, of_queue, ids, vals, options));
end
$$;

-- Put by the full rules.
create or replace function put_fully(command_id text, of_queue text, ids text[], vals text[], options jsonb) returns text
language plpgsql as $$
begin
  return execute(jsonb_build_object('type', 'Put', 'id', command_id, 'queue', of_queue, 'items', (
    select jsonb_agg(coalesce(options -> (i.o - 1)::integer, '{}') || jsonb_build_object('id', i.id, 'value', i.o) order by i.o)
    from unnest(ids) with ordinality as i (id, o)
  )), vals, only_object('queue', of_queue));
end
$$;

-- Add a message with options where the queue is there and has no bounds; null, or its id where it was not there before. One whose key is taken
-- is not added: its policies decide.
create or replace function add_message(of_queue text, of_id text, value text, options jsonb, now bigint) returns text[]
language plpgsql as $$
begin
  insert into messages (queue, id, position, start_by, created_at, value, {kept_columns}, extra)
  select of_queue, of_id, d.at, d.at + moment_in((i.o ->> 'start_within_s')::double precision), now, add_message.value, {option_values}, extra_of(i.o)
  from names as s
  cross join lateral (select options as o offset 0) as i
  cross join lateral (select due_at(i.o, now) as at) as d
  where s.kind = 'queue' and s.name = of_queue and s.maxsize is null and (s.rules & 5 > 0) is not true
  on conflict do nothing;
  return case when found then array[of_id] end;
end
$$;

-- The same of several messages; the ids that were not there before. None has a key.
create or replace function add_messages(of_queue text, ids text[], vals text[], options jsonb, now bigint) returns text[]
language plpgsql as $$
declare
  added text[];
begin
  if options is null then
    with new as (
      insert into messages (queue, id, position, created_at, value)
      select of_queue, i.id, now, now, i.value
      from names as s, unnest(ids, vals) as i (id, value)
      where s.kind = 'queue' and s.name = of_queue and s.maxsize is null and (s.rules & 5 > 0) is not true
      on conflict do nothing
      returning id
    )
    select array_agg(id) into added from new;
  else
    with new as (
      insert into messages (queue, id, position, start_by, created_at, value, {kept_columns}, extra)
      select of_queue, i.id, d.at, d.at + moment_in((i.o ->> 'start_within_s')::double precision), now, i.value, {option_values}, extra_of(i.o)
      from names as s, rows from (unnest(ids), unnest(vals), jsonb_array_elements(options)) as i (id, value, o)
      cross join lateral (select due_at(i.o, now) as at) as d
      where s.kind = 'queue' and s.name = of_queue and s.maxsize is null and (s.rules & 5 > 0) is not true
      on conflict do nothing
      returning id
    )
    select array_agg(id) into added from new;
  end if;
  return added;
end
$$;

-- Which of the ids are among those found, each the first time it is named: what a put added, what a settle ended.
create or replace function firsts_among(ids text[], found_ids text[]) returns boolean[]
language plpgsql immutable as $$
begin
  return array(
    select i.id = any (found_ids) and row_number() over (partition by i.id order by i.o) = 1
    from unnest(ids) with ordinality as i (id, o)
    order by i.o
  );
end
$$;

create or replace function put_answer(ids text[], created boolean[]) returns text
language sql immutable as $$
  select '{"ids":' || array_to_json(ids) || ',"created":' || array_to_json(created) || '}'
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
