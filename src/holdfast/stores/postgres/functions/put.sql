-- Put: where each item goes, worked out one after the other as if each were put alone.

create or replace function check_put(c jsonb, now bigint, reserved bigint) returns jsonb
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  settings names;
  plan placement;
  wanted bigint;
  used bigint;
begin
  select * into settings from names where kind = 'queue' and name = of_queue;
  plan := place_items(c, now);
  wanted := (select count(*) from unnest(plan.states) as s where s = 'ready');
  if settings.maxsize is not null and wanted > 0 then
    used := settings.size - cardinality(plan.late_ids) + reserved;
    if used + wanted > settings.maxsize then
      perform refuse('queue_full', jsonb_build_array(of_queue, used, settings.maxsize, wanted));
    end if;
  end if;
  return to_jsonb(plan) || jsonb_build_object('wanted', wanted);
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

create or replace function place_items(c jsonb, now bigint) returns placement
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  plan placement;
  item record;
  keys text[];
  policy text;
  -- By the place of the key in `keys`: the living message and the copy behind it, where they stand, and the item that made or changed them.
  live_ids text[]; live_positions bigint[]; live_held boolean[]; live_items integer[]; live_sources integer[]; live_firsts integer[];
  copy_ids text[]; copy_items integer[]; copy_sources integer[]; copy_firsts integer[];
  places integer[];
  is_added boolean[]; -- by the first item with the same id
begin
  plan.ids := '{}'; plan.created := '{}'; plan.states := '{}'; plan.positions := '{}'; plan.sources := '{}';
  keys := array(select distinct i ->> 'key' from jsonb_array_elements(c -> 'items') as i where i ->> 'key' is not null);

  places := places_of(array(select i ->> 'key' from jsonb_array_elements(c -> 'items') as i), keys);

  select coalesce(array_agg(m.id order by m.n), '{}'), coalesce(array_agg(m.key order by m.n), '{}') into plan.late_ids, plan.late_keys
  from unnest(keys) as k (key)
  cross join lateral (
    select * from messages as m where m.queue = of_queue and m.key = k.key and m.key is not null and m.state in ('ready', 'leased') limit 1
  ) as m
  where m.state = 'ready' and is_late(m, now);

  select array_agg(m.id order by k.o), array_agg(m.position order by k.o),
    array_agg(m.state = 'leased' and m.until > now order by k.o)
  into live_ids, live_positions, live_held
  from unnest(keys) with ordinality as k (key, o)
  left join lateral (
    select * from messages as m where m.queue = of_queue and m.key = k.key and m.key is not null and m.state in ('ready', 'leased') limit 1
  ) as m on m.id <> all (plan.late_ids);

  select array_agg(m.id order by k.o) into copy_ids
  from unnest(keys) with ordinality as k (key, o)
  left join lateral (
    select m.id from messages as m where m.queue = of_queue and m.key = k.key and m.state = 'buffered' limit 1
  ) as m on true;

  for item in
    select
      i.o::integer as o, i.id, i.key, i.if_ready, i.if_leased, places[i.o] as place,
      first_value(i.o) over (partition by i.id order by i.o)::integer as twin,
      m.id is not null as is_taken,
      i.position
    from (
      select e.o, e.i ->> 'id' as id, e.i ->> 'key' as key, coalesce(e.i ->> 'if_ready', 'update') as if_ready,
        coalesce(e.i ->> 'if_leased', 'buffer') as if_leased, due_at(e.i, now) as position
      from jsonb_array_elements(c -> 'items') with ordinality as e (i, o)
    ) as i
    left join lateral (select m.id from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m on true
    order by i.o
  loop
    plan.states[item.o] := null;
    plan.positions[item.o] := item.position;
    plan.sources[item.o] := item.o;
    if item.is_taken or is_added[item.twin] then
      plan.ids[item.o] := item.id;
      plan.created[item.o] := false;
      continue;
    end if;
    if item.key is null or live_ids[item.place] is null then
      plan.states[item.o] := 'ready';
      if item.key is not null then
        live_ids[item.place] := item.id;
        live_positions[item.place] := item.position;
        live_held[item.place] := false;
        live_items[item.place] := item.o;
      end if;
    else
      -- The key is taken: the put's policy decides.
      policy := case when live_held[item.place] then item.if_leased else item.if_ready end;
      if policy = 'reject' then
        perform refuse('key_in_flight', jsonb_build_array(of_queue, item.key, live_held[item.place]));
      elsif policy = 'keep' then
        plan.ids[item.o] := coalesce(copy_ids[item.place], live_ids[item.place]);
      elsif copy_ids[item.place] is not null then
        plan.ids[item.o] := copy_ids[item.place];
        if copy_items[item.place] is not null then
          plan.sources[copy_items[item.place]] := item.o;
        else
          copy_sources[item.place] := item.o;
          copy_firsts[item.place] := coalesce(copy_firsts[item.place], item.o);
        end if;
      elsif policy = 'update' then
        plan.ids[item.o] := live_ids[item.place];
        if live_items[item.place] is not null then
          plan.sources[live_items[item.place]] := item.o;
        else
          live_sources[item.place] := item.o;
          live_firsts[item.place] := coalesce(live_firsts[item.place], item.o);
        end if;
      else
        plan.states[item.o] := 'buffered';
        if item.position <= now then
          plan.positions[item.o] := live_positions[item.place];
        end if;
        copy_ids[item.place] := item.id;
        copy_items[item.place] := item.o;
      end if;
    end if;
    if plan.states[item.o] is null then
      plan.created[item.o] := false;
    else
      plan.ids[item.o] := item.id;
      plan.created[item.o] := true;
      is_added[item.twin] := true;
    end if;
  end loop;

  select coalesce(array_agg(u.id order by u.first), '{}'), coalesce(array_agg(u.key order by u.first), '{}'),
    coalesce(array_agg(u.source order by u.first), '{}')
  into plan.updated_ids, plan.updated_keys, plan.updated_sources
  from (
    select live_ids[k.o] as id, k.key, live_sources[k.o] as source, live_firsts[k.o] as first
    from unnest(keys) with ordinality as k (key, o)
    union all
    select copy_ids[k.o], k.key, copy_sources[k.o], copy_firsts[k.o]
    from unnest(keys) with ordinality as k (key, o)
  ) as u
  where u.source is not null;
  return plan;
end
$$;

create or replace function write_put(c jsonb, vals text[], p jsonb, now bigint) returns text
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  plan placement := jsonb_populate_record(null::placement, p);
  items jsonb[] := array(select jsonb_array_elements(c -> 'items'));
  added_ids text[];
  added_keys text[];
  ready_keys text[];
begin
  perform create_queue(of_queue, now);
  perform remove(of_queue, plan.late_ids);

  with added as (
    insert into messages (queue, id, state, position, start_by, created_at, value, {kept_columns}, extra)
    select
      of_queue, i.item ->> 'id', plan.states[i.o], plan.positions[i.o],
      due_at(i.item, now) + moment_in((i.item ->> 'start_within_s')::double precision), now,
      vals[(items[plan.sources[i.o]] -> 'value')::integer], {kept_values}, extra_of(i.item)
    from unnest(items) with ordinality as i (item, o)
    cross join lateral jsonb_populate_record(
      null::messages, i.item || jsonb_build_object('metadata', items[plan.sources[i.o]] -> 'metadata')
    ) as r
    where plan.states[i.o] is not null
    order by i.o
    returning id, key, state, n
  )
  select coalesce(array_agg(id order by n), '{}'), coalesce(array_agg(key order by n), '{}'), array_agg(key order by n) filter (where state = 'ready')
  into added_ids, added_keys, ready_keys
  from added;

  update messages as m
  set value = vals[(items[u.source] -> 'value')::integer], metadata = items[u.source] ->> 'metadata'
  from unnest(plan.updated_ids, plan.updated_sources) as u (id, source)
  cross join lateral (select h.ctid from messages as h where h.queue = of_queue and h.id = u.id limit 1) as h
  where m.ctid = h.ctid;

  if plan.late_ids <> '{}' then
    perform append('queue:' || of_queue, 'expired', told(plan.late_ids, plan.late_keys, ',"started":false'), now);
    perform resize(of_queue, -cardinality(plan.late_ids));
  end if;
  if added_ids <> '{}' or plan.updated_ids <> '{}' then
    perform append('queue:' || of_queue, 'put', told(added_ids, added_keys, case when plan.updated_ids = '{}' then '' else
      ',"updated":' || array_to_json(plan.updated_ids) || ',"updated_keys":' || array_to_json(plan.updated_keys)
    end), now);
  end if;
  perform resize(of_queue, cardinality(ready_keys)) where ready_keys is not null;
  perform announce(of_queue, ready_keys, cardinality(ready_keys)) where ready_keys is not null;
  -- The message that a copy waits behind may be settled by the same step.
  perform promote(of_queue, added_keys);
  return '{"ids":' || array_to_json(plan.ids) || ',"created":' || array_to_json(plan.created) || '}';
end
$$;
