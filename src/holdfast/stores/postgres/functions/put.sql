-- Put: where each item goes, worked out one after the other as if each were put alone.

create or replace function check_put(c jsonb, vals text[], now bigint, reserved bigint) returns jsonb
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  settings names;
  plan jsonb := place_items(c, vals, now);
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

-- By the place of each key the id under which it was put not long ago.
create or replace function recent_ids(of_dict text, keys text[], now bigint) returns text[]
language sql stable as $$
  select case when of_dict is not null then array(
    select r.id
    from unnest(keys) with ordinality as k (key, o)
    left join lateral (
      select e.value::json #>> '{}' as id
      from entries as e
      where e.dict = of_dict and e.key = k.key and is_there(e, now) and e.value like '"%'
      limit 1
    ) as r on true
    order by k.o
  ) end
$$;

-- Due at another moment, but not later than the item says; the time in which it has to be started moves along.
create or replace function postponed(m messages, item jsonb, now bigint) returns messages
language plpgsql stable as $$
declare
  was_at bigint := m.position;
begin
  m.position := least(due_at(item, now), m.created_at + moment_in((item ->> 'at_latest_s')::double precision));
  m.start_by := m.start_by + m.position - was_at;
  return m;
end
$$;

-- The items in order, each with what is known of its id: whether it is taken, the value there if that matters, and the first item with it.
create or replace function items_of(c jsonb, places integer[])
returns table (o integer, fields jsonb, place integer, is_taken boolean, value text, twin integer)
language sql stable as $$
  select i.o::integer, i.fields, places[i.o], m.id is not null, m.value,
    first_value(i.o) over (partition by i.fields ->> 'id' order by i.o)::integer
  from jsonb_array_elements(c -> 'items') with ordinality as i (fields, o)
  left join lateral (
    select m.id, case when i.fields ->> 'if_id' = 'reject' then m.value end as value
    from messages as m
    where m.queue = c ->> 'queue' and m.id = i.fields ->> 'id'
    limit 1
  ) as m on true
  order by i.o
$$;

-- What to do with an item, by what is known of its id and key; refuses where one of its policies says so.
create or replace function policy_of(of_queue text, item jsonb, is_known boolean, value_known text, value text, first messages, recent text, now bigint)
returns text
language plpgsql as $$
declare
  is_held boolean := first.state = 'leased' and first.until > now;
  policy text;
begin
  if is_known then
    if item ->> 'if_id' = 'reject' and value <> value_known then
      perform refuse('id_taken', jsonb_build_array(of_queue, item ->> 'id'));
    end if;
    return 'ignore';
  elsif first.id is null and recent is not null and item ->> 'unique_for_s' is not null then
    if item ->> 'if_recent' = 'reject' then
      perform refuse('key_is_recent', jsonb_build_array(of_queue, item ->> 'key'));
    end if;
    return 'recent';
  elsif first.id is null then
    return 'add';
  end if;
  policy := case when is_held then coalesce(item ->> 'if_leased', 'buffer') else coalesce(item ->> 'if_ready', 'update') end;
  if policy = 'reject' then
    perform refuse('key_in_flight', jsonb_build_array(of_queue, item ->> 'key', is_held));
  end if;
  return policy;
end
$$;

-- The value that this put gave a message, among all of which it knows; null if it gave none.
create or replace function value_given(of_id text, found messages[], changed integer[], item_count integer, vals text[]) returns text
language sql immutable as $$
  select vals[(found[f.o]).value::integer]
  from generate_subscripts(found, 1) as f (o)
  where (found[f.o]).id = of_id and (f.o <= item_count or changed[f.o] is not null)
  limit 1
$$;

-- What an update leaves of the fields without columns: the message stays in its group.
create or replace function extra_after(before jsonb, given jsonb) returns jsonb
language sql immutable as $$
  select nullif(
    (coalesce(given, '{}') - 'group') || case when before ? 'group' then jsonb_build_object('group', before -> 'group') else '{}' end, '{}'
  )
$$;

-- Where a copy stands that waits behind another message: of the same lane it is to take its place, else it goes to the back of its own.
create or replace function position_behind(s names, first messages, fresh messages, now bigint) returns bigint
language sql immutable as $$
  select case
    when (fresh).position > now or lane_of(s, (fresh).extra) is distinct from (first).lane then (fresh).position
    when (s).rules & 2 > 0 then coalesce((first).rank, (first).position)
    else (first).position
  end
$$;

create or replace function place_items(c jsonb, vals text[], now bigint) returns jsonb
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  keys text[] := array(select distinct i ->> 'key' from jsonb_array_elements(c -> 'items') as i where i ->> 'key' is not null);
  places integer[] := places_of(array(select i ->> 'key' from jsonb_array_elements(c -> 'items') as i), keys);
  recents text[] := recent_ids(c ->> 'recent', keys, now);
  item_count integer := jsonb_array_length(c -> 'items');
  item record;
  ids text[] := '{}';
  created boolean[] := '{}';
  is_added boolean[]; -- by the first item with the same id
  -- The messages that the items make, by the place of the item, and behind them those that were there under their keys.
  found messages[];
  late messages[] := '{}'; -- too late to be started: they swallow no new work
  changed integer[]; -- for each of them the item that changed it first
  were_at bigint[]; -- for each of them that is postponed, when it would have been due
  -- For each key where in `found` its living message is, the copy behind that, and the last item that made one and is to be unique.
  lives integer[];
  copies integer[];
  begun integer[];
  live integer;
  fresh messages;
  policy text;
begin
  for item in select k.place, k.message from keyed_messages(of_queue, keys) as k loop
    live := greatest(array_upper(found, 1), item_count) + 1;
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
  for item in select * from items_of(c, places) loop
    live := lives[item.place];
    fresh := new_message(of_queue, item.fields, now);
    policy := policy_of(of_queue, item.fields, item.is_taken or is_added[item.twin],
      case when item.fields ->> 'if_id' = 'reject' then coalesce(value_given(fresh.id, found, changed, item_count, vals), item.value) end,
      vals[fresh.value::integer], found[live], recents[item.place], now);
    ids[item.o] := case when policy = 'recent' then recents[item.place] else fresh.id end;
    created[item.o] := policy = 'add' or (policy = 'buffer' and copies[item.place] is null);
    if created[item.o] then
      is_added[item.twin] := true;
      if policy = 'buffer' then
        fresh.state := 'buffered';
        fresh.position := position_behind(settings_of(of_queue), found[live], fresh, now);
        copies[item.place] := item.o;
      elsif item.place is not null then
        lives[item.place] := item.o;
      end if;
      found[item.o] := fresh;
      if item.fields ->> 'unique_for_s' is not null then
        begun[item.place] := item.o;
      end if;
    elsif policy not in ('ignore', 'recent') then
      live := coalesce(copies[item.place], live);
      ids[item.o] := (found[live]).id;
      if policy <> 'keep' then
        if item.fields ->> 'if_ready' = 'postpone' and (found[live]).state = 'ready' then
          were_at[live] := coalesce(were_at[live], (found[live]).position);
          found[live] := postponed(found[live], item.fields, now);
        end if;
        found[live].value := fresh.value; found[live].metadata := fresh.metadata; found[live].extra := extra_after((found[live]).extra, fresh.extra);
        changed[live] := coalesce(changed[live], item.o);
      end if;
    end if;
  end loop;
  return placement(ids, created, late, found, changed, were_at) || jsonb_build_object('begun', coalesce(array_remove(begun, null), '{}'));
end
$$;

-- The plan of a put, made of what becomes of its items and of the messages that it found.
create or replace function placement(
  ids text[], created boolean[], late messages[], found messages[], changed integer[], were_at bigint[]
) returns jsonb
language sql stable as $$
  select jsonb_build_object(
    'ids', ids, 'created', created, 'late', array(select m from unnest(late) as m order by m.n)::text,
    'wanted', (select count(*) from unnest(found[:cardinality(ids)]) as m where m.state = 'ready'),
    'added', array(select m from unnest(found[:cardinality(ids)]) as m where m.id is not null)::text,
    'updated', array(
      select found[u.o] from generate_subscripts(changed, 1) as u (o) where u.o > cardinality(ids) and changed[u.o] is not null order by changed[u.o]
    )::text,
    'postponed', array(
      select (found[u.o]).id from generate_subscripts(were_at, 1) as u (o) where u.o > cardinality(ids) and were_at[u.o] is not null
    ),
    'sooner', array(
      select (found[u.o]).key from generate_subscripts(were_at, 1) as u (o) where u.o > cardinality(ids) and (found[u.o]).position < were_at[u.o]
    )
  )
$$;
