-- Put: where each item goes, worked out one after the other as if each were put alone.

create or replace function check_put(c jsonb, now bigint, reserved bigint) returns jsonb
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  settings names;
  plan jsonb := place_items(c, now);
  wanted bigint := plan -> 'wanted';
  used bigint;
begin
  select * into settings from names where kind = 'queue' and name = of_queue;
  if settings.maxsize is not null and wanted > 0 then
    used := settings.size - cardinality((plan ->> 'late')::messages[]) + reserved;
    if used + wanted > settings.maxsize then
      perform refuse('queue_full', jsonb_build_array(of_queue, used, settings.maxsize, wanted));
    end if;
  end if;
  return plan;
end
$$;

-- When an item is due.
create or replace function due_at(item jsonb, now bigint) returns bigint
language sql stable as $$
  select greatest(
    now + moment_in(coalesce((item ->> 'delay_s')::double precision, 0)),
    case when item ->> 'at' is not null then (item ->> 'at')::bigint - wall_offset_us() end
  )
$$;

-- The fields of an item or a message that have no column of their own, null where there are none.
create or replace function extra_of(fields jsonb) returns jsonb
language sql immutable as $$
  select nullif(fields - '{{known_fields}}'::text[], '{}')
$$;

-- The place of each item's key among the keys. The planner takes lists for short and would compare each with each.
create or replace function places_of(item_keys text[], keys text[]) returns integer[]
language plpgsql stable set enable_nestloop = off set enable_hashjoin = on as $$
begin
  return array(
    select k.o
    from unnest(item_keys) with ordinality as i (key, o)
    left join unnest(keys) with ordinality as k (key, o) on k.key = i.key
    order by i.o
  );
end
$$;

-- The message that an item puts; in place of its value it has the place of that among the texts.
create or replace function new_message(of_queue text, item jsonb, now bigint) returns messages
language plpgsql stable as $$
declare
  m messages := jsonb_populate_record(null::messages, item);
begin
  m.queue := of_queue;
  m.state := 'ready';
  m.created_at := now;
  m.position := due_at(item, now);
  m.start_by := m.position + moment_in((item ->> 'start_within_s')::double precision);
  m.extra := extra_of(item);
  return m;
end
$$;

-- For the place of each key its living message and the copy behind that.
create or replace function keyed_messages(of_queue text, keys text[]) returns table (place bigint, message messages)
language sql stable as $$
  select k.o, m.message
  from unnest(keys) with ordinality as k (key, o)
  cross join lateral (
    (select m as message from messages as m where m.queue = of_queue and m.key = k.key and m.key is not null and m.state in ('ready', 'leased') limit 1)
    union all
    (select m from messages as m where m.queue = of_queue and m.key = k.key and m.state = 'buffered' limit 1)
  ) as m
$$;

create or replace function place_items(c jsonb, now bigint) returns jsonb
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  keys text[] := array(select distinct i ->> 'key' from jsonb_array_elements(c -> 'items') as i where i ->> 'key' is not null);
  places integer[] := places_of(array(select i ->> 'key' from jsonb_array_elements(c -> 'items') as i), keys);
  item record;
  ids text[] := '{}';
  created boolean[] := '{}';
  is_added boolean[]; -- by the first item with the same id
  -- The messages that the items make, by the place of the item, and behind them those that were there under their keys.
  found messages[];
  late messages[] := '{}'; -- too late to be started: they swallow no new work
  changed integer[]; -- for each of them the item that changed it first
  -- For each key where in `found` its living message is, and the copy behind that.
  lives integer[];
  copies integer[];
  live integer;
  copy integer;
  fresh messages;
  policy text;
begin
  for item in select k.place, k.message from keyed_messages(of_queue, keys) as k loop
    live := greatest(array_upper(found, 1), jsonb_array_length(c -> 'items')) + 1;
    if (item.message).state = 'ready' and is_late(item.message, now) then
      late := late || item.message;
      continue;
    end if;
    found[live] := item.message;
    if (item.message).state = 'buffered' then
      copies[item.place] := live;
    else
      lives[item.place] := live;
    end if;
  end loop;
  for item in
    select i.o::integer as o, i.fields, places[i.o] as place, m.id is not null as is_taken,
      first_value(i.o) over (partition by i.fields ->> 'id' order by i.o)::integer as twin
    from jsonb_array_elements(c -> 'items') with ordinality as i (fields, o)
    left join lateral (select m.id from messages as m where m.queue = of_queue and m.id = i.fields ->> 'id' limit 1) as m on true
    order by i.o
  loop
    live := lives[item.place];
    copy := copies[item.place];
    fresh := new_message(of_queue, item.fields, now);
    policy := case
      when item.is_taken or is_added[item.twin] then 'ignore'
      when live is null then 'add'
      when (found[live]).state = 'leased' and (found[live]).until > now then coalesce(item.fields ->> 'if_leased', 'buffer')
      else coalesce(item.fields ->> 'if_ready', 'update')
    end;
    ids[item.o] := fresh.id;
    created[item.o] := policy = 'add' or (policy = 'buffer' and copy is null);
    if policy = 'reject' then
      perform refuse('key_in_flight', jsonb_build_array(of_queue, fresh.key, (found[live]).state = 'leased' and (found[live]).until > now));
    elsif created[item.o] then
      is_added[item.twin] := true;
      if policy = 'buffer' then
        fresh.state := 'buffered';
        fresh.position := case when fresh.position > now then fresh.position else (found[live]).position end;
        copies[item.place] := item.o;
      elsif item.place is not null then
        lives[item.place] := item.o;
      end if;
      found[item.o] := fresh;
    elsif policy <> 'ignore' then
      live := coalesce(copy, live);
      ids[item.o] := (found[live]).id;
      if policy <> 'keep' then
        found[live].value := fresh.value;
        found[live].metadata := fresh.metadata; found[live].extra := fresh.extra;
        changed[live] := coalesce(changed[live], item.o);
      end if;
    end if;
  end loop;
  return jsonb_build_object(
    'ids', ids, 'created', created, 'late', array(select m from unnest(late) as m order by m.n)::text,
    'wanted', (select count(*) from unnest(found[:cardinality(ids)]) as m where m.state = 'ready'),
    'added', array(select m from unnest(found[:cardinality(ids)]) as m where m.id is not null)::text,
    'updated', array(
      select found[u.o] from generate_subscripts(changed, 1) as u (o) where u.o > cardinality(ids) and changed[u.o] is not null order by changed[u.o]
    )::text
  );
end
$$;

create or replace function write_put(c jsonb, vals text[], p jsonb, now bigint) returns text
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  added messages[] := p ->> 'added';
  updated messages[] := p ->> 'updated';
  late messages[] := p ->> 'late';
  ready_keys text[] := array(select m.key from unnest(added) as m where m.state = 'ready');
begin
  perform create_queue(of_queue, now);
  if late <> '{}' then
    perform remove(of_queue, array(select m.id from unnest(late) as m));
    perform append('queue:' || of_queue, 'expired', told_of(late, ',"started":false'), now), resize(of_queue, -cardinality(late));
  end if;
  insert into messages (queue, id, state, position, start_by, created_at, extra, value, {kept_columns})
  select r.queue, r.id, r.state, r.position, r.start_by, r.created_at, r.extra, vals[r.value::integer], {kept_values}
  from unnest(added) as r;
  update messages as m
  set value = vals[u.value::integer], metadata = u.metadata, extra = u.extra
  from unnest(updated) as u
  cross join lateral (select h.ctid from messages as h where h.queue = of_queue and h.id = u.id limit 1) as h
  where m.ctid = h.ctid;
  if added <> '{}' or updated <> '{}' then
    perform append('queue:' || of_queue, 'put', told_of(added, case when updated = '{}' then '' else
      ',"updated":' || array_to_json(array(select m.id from unnest(updated) as m))
      || ',"updated_keys":' || array_to_json(array(select m.key from unnest(updated) as m))
    end), now);
  end if;
  perform resize(of_queue, cardinality(ready_keys)), announce(of_queue, ready_keys, cardinality(ready_keys));
  -- The message that a copy waits behind may be settled by the same step.
  perform promote(of_queue, array(select m.key from unnest(added) as m));
  return '{"ids":' || (p -> 'ids')::text || ',"created":' || (p -> 'created')::text || '}';
end
$$;

create or replace function told_of(of_messages messages[], more text) returns text
language plpgsql stable as $$
declare
  ids text[] := array(select m.id from unnest(of_messages) as m);
  keys text[] := array(select m.key from unnest(of_messages) as m);
begin
  return told(ids, keys, more);
end
$$;
