-- Put, claim and settle in queues with lanes: as fast_put.sql, fast_claim.sql and fast_settle.sql, made of what the full rules are made of.

-- Put into a queue with lanes and without bounds; null where there is none, or one of the messages meets another.
create or replace function put_in_queue_with_lanes(
  command_id text, of_queue text, ids text[], vals text[], options jsonb, now bigint
) returns text
language plpgsql as $$
declare
  s names := settings_of(of_queue);
  added messages[];
  added_ids text[];
  number bigint;
  keys text[];
begin
  if s.maxsize is not null or not has_lanes(s) then
    return null;
  end if;
  if cardinality(ids) = 1 and s.rules & 1 > 0 then
    return put_one(command_id, s, ids[1], vals[1], coalesce(options -> 0, '{}'), now);
  end if;
  perform lock_lanes_of_items(s, options, cardinality(ids));
  added := add_to_lanes(s, ids, vals, options, now);
  if added = '{}' then
    return null;
  end if;
  number := nextval('numbers');
  insert into shifts (queue, ready) values (of_queue, cardinality(added));
  added_ids := array(select m.id from unnest(added) as m);
  keys := array(select m.key from unnest(added) as m);
  insert into events (n, at, topic, event, data, command)
  values (
    number, now, 'queue:' || of_queue, 'put', told(added_ids, keys, told_groups(array(select m.extra ->> 'group' from unnest(added) as m))),
    nullif(command_id, '')
  );
  perform keep_moment(now), wake('watch:queue:' || of_queue, {everyone});
  perform come_in(s, keys, array(select m.lane from unnest(added) as m), array(select m.rank from unnest(added) as m), now, number);
  return put_answer(ids, firsts_among(ids, added_ids));
end
$$;

-- Put one message that has a group and no other options.
create or replace function fast_put_group(command_id text, again boolean, of_queue text, of_id text, val text, of_group text) returns text
language plpgsql {fast} as $$
declare
  shared text := pg_advisory_xact_lock_shared(object_lock('queue', of_queue));
  shared_lane text := pg_advisory_xact_lock_shared(lane_lock(of_queue, of_group));
  now bigint := clock_us();
  number bigint;
  is_awaited boolean;
  is_open boolean;
  woken integer := 1;
begin
  if not again then
    insert into messages (queue, id, position, created_at, value, extra, lane, level, rank)
    select of_queue, of_id, now, now, val, jsonb_build_object('group', of_group), of_group, 0, now
    from names as s
    where s.kind = 'queue' and s.name = of_queue and s.maxsize is null and s.rules & 5 = 1
    on conflict do nothing
    returning nextval('numbers') into number;
  end if;
  if number is null then
    return fast_put(command_id, again, of_queue, array[of_id], array[val], jsonb_build_array(jsonb_build_object('group', of_group)));
  end if;
  insert into events (n, at, topic, event, data, command)
  values (
    number, now, 'queue:' || of_queue, 'put', '{"ids":' || array_to_json(array[of_id]) || ',"groups":' || array_to_json(array[of_group]) || '}',
    nullif(command_id, '')
  )
  returning
    exists (select from listeners as l where l.topic in ('queue:' || of_queue, 'watch:queue:' || of_queue) and l.until > clock_timestamp()),
    (select l.is_open from lanes as l where l.queue = of_queue and l.name = of_group)
  into is_awaited, is_open;
  insert into shifts (queue, ready) values (of_queue, 1);
  perform keep_moment(now);
  if is_open is not true then
    woken := put_in_lane(settings_of(of_queue), of_group, 1, now, number);
  end if;
  if is_awaited then
    perform wake('queue:' || of_queue, woken) where woken > 0;
    perform wake('watch:queue:' || of_queue, {everyone});
  end if;
  return '{"ids":' || array_to_json(array[of_id]) || ',"created":[true]}';
end
$$;

-- Put one message into a queue with groups; null if it meets another.
create or replace function put_one(command_id text, s names, of_id text, val text, o jsonb, now bigint) returns text
language plpgsql as $$
declare
  shared text := pg_advisory_xact_lock_shared(lane_lock(s.name, coalesce(o ->> 'group', '')));
  due bigint := due_at(o, now);
  of_lane text := coalesce(o ->> 'group', '');
  number bigint;
  woken integer;
begin
  insert into messages (queue, id, position, start_by, created_at, value, {kept_columns}, extra, lane, level, rank)
  values (
    s.name, of_id, due, due + moment_in((o ->> 'start_within_s')::double precision), now, val, {item_values}, extra_of(o),
    of_lane, level_of(s, null, null, coalesce((o ->> 'priority')::integer, 0), due, now),
    rank_of(s, null, coalesce((o ->> 'priority')::integer, 0), due, now)
  )
  on conflict do nothing;
  if not found then
    return null;
  end if;
  insert into shifts (queue, ready) values (s.name, 1);
  insert into events (n, at, topic, event, data, command)
  values (
    nextval('numbers'), now, 'queue:' || s.name, 'put',
    told(array[of_id], array[o ->> 'key'], told_groups(array[o ->> 'group'])), nullif(command_id, '')
  )
  returning n into number;
  woken := case when due > now then 1 + put_in_lane(s, of_lane, 0, now, number) else put_in_lane(s, of_lane, 1, now, number) end;
  perform keep_moment(now);
  -- Who waits is looked at only now that the queue is shared: see is_settled.
  if exists (select from listeners as l where l.topic in ('queue:' || s.name, 'watch:queue:' || s.name) and l.until > clock_timestamp()) then
    perform wake('queue:' || s.name, woken) where woken > 0;
    perform wake('watch:queue:' || s.name, {everyone});
  end if;
  if o ->> 'key' is not null then
    perform wake('key:' || s.name || ':' || (o ->> 'key'), 1);
  end if;
  return '{"ids":' || array_to_json(array[of_id]) || ',"created":[true]}';
end
$$;

-- Let nobody take the lanes of these items for empty until they are committed.
create or replace function lock_lanes_of_items(s names, options jsonb, count integer) returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(l.lock)
  from (
    select distinct lane_lock(s.name, lane_of(s, options -> o)) as lock from generate_series(0, count - 1) as o order by 1
  ) as l;
end
$$;

-- Add messages that are not there yet; those that were added, in the order asked.
create or replace function add_to_lanes(s names, ids text[], vals text[], options jsonb, now bigint) returns messages[]
language plpgsql as $$
declare
  added messages;
  all_added messages[];
begin
  if options is null and cardinality(ids) = 1 then
    insert into messages as m (queue, id, position, created_at, value, lane, level, rank)
    values (s.name, ids[1], now, now, vals[1], lane_of(s, null), level_of(s, null, null, 0, now, now), rank_of(s, null, 0, now, now))
    on conflict do nothing
    returning m.* into added;
    return case when found then array[added] else '{}' end;
  end if;
  with new as (
    insert into messages as m (queue, id, position, start_by, created_at, value, {kept_columns}, extra, lane, level, rank)
    select s.name, i.id, d.at, d.at + moment_in((i.o ->> 'start_within_s')::double precision), now, i.value, {option_values}, extra_of(i.o),
      lane_of(s, i.o), level_of(s, null, null, coalesce((i.o ->> 'priority')::integer, 0), d.at, now),
      rank_of(s, null, coalesce((i.o ->> 'priority')::integer, 0), d.at, now)
    from rows from (unnest(ids), unnest(vals), jsonb_array_elements(coalesce(options, to_jsonb(array_fill('{}'::jsonb, array[cardinality(ids)])))))
      as i (id, value, o)
    cross join lateral (select due_at(i.o, now) as at) as d
    on conflict do nothing
    returning m as message
  )
  select coalesce(array_agg(new.message order by (new.message).n), '{}') into all_added from new;
  return all_added;
end
$$;

-- Claim from a queue with lanes whose row nobody needs to lock.
create or replace function claim_from_lanes(
  command_id text, s names, of_holder text, lease_s double precision, most integer, takes boolean, expiry text, budget integer, grave text,
  is_watched boolean, now bigint
) returns text
language plpgsql as $$
declare
  answer text;
  claimed record;
begin
  if not takes and not is_paused(s) and s.rules & 5 = 1 and not is_overtaken(s.name, now) then
    if most = 1 then
      answer := claim_one(command_id, s, of_holder, lease_s, expiry, is_watched, now);
    else
      answer := claim_one_each(command_id, s, of_holder, lease_s, most, expiry, is_watched, now);
    end if;
    if answer is not null then
      return answer;
    end if;
  end if;
  perform count_by('triggers');
  claimed := claim_ruled(s, of_holder, lease_s, most, takes, expiry, budget, grave, null, 0, now, command_id);
  if claimed.note is not null then
    perform remember(command_id, now, claimed.note);
  end if;
  perform count_by('hand');
  return claimed.answer;
end
$$;

-- Whether there is anything for a sweep to do.
create or replace function is_overtaken(of_queue text, now bigint) returns boolean
language plpgsql as $$
begin
  return exists (select from messages where queue = of_queue and state = 'leased' and until <= now)
    or exists (select from messages where queue = of_queue and state = 'ready' and start_by is not null and attempts = 0 and start_by <= now)
    or exists (select from messages where queue = of_queue and lane is not null and rank is null and state = 'ready' and position <= now)
    or exists (select from lanes where queue = of_queue and wakes <= now);
end
$$;

-- Claim one message of the first open group; null where that takes more.
create or replace function claim_one(
  command_id text, s names, of_holder text, lease_s double precision, expiry text, is_watched boolean, now bigint, out answer text
)
language plpgsql as $$
declare
  l lanes := lock_first_lane(s.name);
  most integer;
  rate jsonb;
  m record;
begin
  if l.name is null then
    return;
  end if;
  most := lane_limit(l, s);
  rate := lane_rate(l, s);
  if l.live >= most or (rate is not null and allowed_by(rate, l.tat, now) < 1) then
    return;
  end if;
  m := lease_one(s, l.name, of_holder, lease_s, expiry, case when most is null then 0 else 1 end, now);
  if m.number is null then
    return;
  end if;
  with counted as (insert into shifts (queue, ready, leased) values (s.name, -1, 1))
  insert into events (n, at, topic, event, data, command)
  values (
    m.number, now, 'queue:' || s.name, 'claimed',
    told(array[m.id], array[m.key], told_groups(array[m.of_group]) || ',"holder":' || to_json(of_holder)), nullif(command_id, '')
  );
  perform keep_moment(now), save_served(l, s, most, rate, m.number, now);
  if is_watched then
    perform wake('watch:queue:' || s.name, {everyone});
  end if;
  answer := '{"messages":[' || m.told || ']' || case when most is not null or rate is not null then ',"careful":true}' else '}' end;
end
$$;

-- The first open lane that nobody else has, if need be once others let go of it.
create or replace function lock_first_lane(of_queue text) returns lanes
language plpgsql as $$
declare
  l lanes;
begin
  for attempt in 1 .. 2 loop
    select o.* into l
    from lanes as o
    where o.queue = of_queue and o.is_open
    order by o.turn, o.place, o.name
    limit 1
    for no key update skip locked;
    exit when found or attempt = 2 or not has_no_lock() or not exists (select from lanes as o where o.queue = of_queue and o.is_open)
      or not wait_for_lane(of_queue);
  end loop;
  return l;
end
$$;

-- Save a lane that gave one message. One without settings of its own and without a rate is full, or open if another is in its line.
create or replace function save_served(l lanes, s names, most integer, rate jsonb, token bigint, now bigint) returns void
language plpgsql as $$
begin
  if rate is null and l.own is null and l.credit = 1 then
    update lanes as o
    set turn = token, place = 1, live = l.live + case when most is null then 0 else 1 end, is_open = (l.live + 1 < most) is not false
    where o.queue = s.name and o.name = l.name and (l.live + 1 >= most or exists (
      select
      from messages as f
      where f.queue = s.name and f.lane = l.name and f.state = 'ready' and f.rank is not null
        and {in_time of f}
    ));
    if found then
      return;
    end if;
  end if;
  perform save_lane(refreshed(reckoned(l, s, '{1}', false, token, now), s, now, token));
end
$$;

-- Lease the first of a lane. The number is drawn and the lease begins once the row is won: see fast_claim.
create or replace function lease_one(
  s names, of_lane text, of_holder text, lease_s double precision, expiry text, slot integer, now bigint,
  out number bigint, out id text, out key text, out of_group text, out told text
)
language plpgsql as $$
begin
  update messages as m
  set
    state = 'leased', attempts = m.attempts + 1, holder = of_holder, token = nextval('numbers'), expired_to = expiry,
    tied = nullif(slot + case when s.rules & 16 > 0 then 4 else 0 end + case when m.extra ? 'group' then 8 else 0 end, 0),
    (since, until) = (select t.won_at, end_of(t.won_at, lease_s) from (select clock_us() as won_at offset 0) as t)
  where m.ctid = case when s.rules & 2 = 0
    then (
      select f.ctid
      from messages as f
      where f.queue = s.name and f.lane = of_lane and f.state = 'ready' and f.rank is not null
      order by f.level desc, f.rank, f.n
      limit 1
      for update skip locked
    )
    else (
      -- Not the next one, where somebody else has the first.
      select h.ctid
      from messages as h
      where h.ctid = (
        select f.ctid
        from messages as f
        where f.queue = s.name and f.lane = of_lane and f.state = 'ready' and f.rank is not null
        order by f.level desc, f.rank, f.n
        limit 1
      )
      for update skip locked
    )
  end
  returning m.token, m.id, m.key, m.extra ->> 'group', message_json(m) into number, id, key, of_group, told;
end
$$;
