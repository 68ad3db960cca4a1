-- Lanes: where messages of queues with groups or another order stand, and which of the groups a claim may serve now.
--
-- `refreshed` is the only place that knows whether a lane is open; it runs at the end of every change for the lanes that the change touched.
--
-- Four rules, without which messages are left behind. A put takes the lane's advisory lock shared. Nobody takes a lane for empty who does not
-- have that lock alone, and the look that follows is a statement of its own, whose snapshot is from after the lock. A put into an open or a full
-- lane does not touch its row: whoever settles opens it. The first of a strict lane is not passed over where it is locked: the lane is.

-- What of a policy put and claim go by, in bits: 1 groups, 2 strict, 4 another order than by position, 8 a limit or rate of the queue, 16 is
-- kept when done, 32 priorities age.
create or replace function rules_of(policy jsonb) returns integer
language sql immutable as $$
  select nullif(
    case when policy ->> 'groups' is not null then 1 else 0 end + case when policy ->> 'groups' = 'strict' then 2 else 0 end
      + case when policy ->> 'order' = 'lifo' or policy ->> 'aging_s' is not null then 4 else 0 end
      + case when policy ->> 'limit' is not null or policy -> 'rate' <> 'null' then 8 else 0 end
      + case when policy ->> 'keep_done_s' is not null then 16 else 0 end
      + case when policy ->> 'aging_s' is not null then 32 else 0 end,
    0
  )
$$;

create or replace function settings_of(of_queue text) returns names
language plpgsql as $$
declare
  s names;
begin
  select * into s from names where kind = 'queue' and name = of_queue;
  return s;
end
$$;

create or replace function has_lanes(s names) returns boolean
language sql immutable as $$
  select coalesce((s).rules & 5 > 0, false)
$$;

-- Where a message stands that is ready or becomes it: its lane, level and rank. One of a strict group keeps the place that it had.
create or replace function lane_of(s names, extra jsonb) returns text
language sql immutable as $$
  select case when (s).rules & 1 > 0 then coalesce(extra ->> 'group', '') when (s).rules & 4 > 0 then '' end
$$;

create or replace function level_of(s names, level integer, rank bigint, priority integer, due bigint, now bigint) returns integer
language sql immutable as $$
  select case
    when (s).rules & 5 = 0 then null
    when (s).rules & 2 > 0 and rank is not null then level
    when due > now or (s).rules & 34 > 0 then 0
    when (s).rules is not null then priority
  end
$$;

create or replace function rank_of(s names, rank bigint, priority integer, due bigint, now bigint) returns bigint
language sql immutable as $$
  select case
    when (s).rules & 5 = 0 then null
    when (s).rules & 2 > 0 and rank is not null then rank
    when due > now then null
    when (s).rules & 4 = 0 then due
    when (s).rules is not null then greatest(-9007199254740991, least(9007199254740991,
      case when (s).policy ->> 'order' = 'lifo' then -due else due end
        - priority * coalesce(moment_in(((s).policy ->> 'aging_s')::double precision), 0)
    ))
  end
$$;

-- The lock of a lane; some lanes share one, since the server has a limit of locks.
create or replace function lane_lock(of_queue text, of_lane text) returns bigint
language sql stable as $$
  select object_lock('lane:' || (hashtextextended(of_lane, 0) & 255), of_queue)
$$;

-- The position of the first in line, null where there is none.
create or replace function first_in_lane(of_queue text, of_lane text, now bigint) returns bigint
language plpgsql stable as $$
begin
  return (
    select position
    from messages
    where queue = of_queue and lane = of_lane and state = 'ready' and rank is not null and {in_time}
    order by level desc, rank, n
    limit 1
  );
end
$$;

create or replace function interval_of(rate jsonb) returns bigint
language sql immutable as $$
  select ceil((rate ->> 'per_s')::double precision * 1000000 / (rate ->> 'count')::double precision)::bigint
$$;

-- The time that so many at once are ahead of the rate.
create or replace function tolerance_of(rate jsonb) returns bigint
language sql immutable as $$
  select (coalesce((rate ->> 'burst')::bigint, 1) - 1) * interval_of(rate)
$$;

-- How many a rate lets through now.
create or replace function allowed_by(rate jsonb, tat bigint, now bigint) returns bigint
language sql immutable as $$
  select case
    when rate is null or rate = 'null' then 9223372036854775807
    when greatest(tat, now) <= now + tolerance_of(rate) then (now + tolerance_of(rate) - greatest(tat, now)) / interval_of(rate) + 1
    else 0
  end
$$;

create or replace function lane_limit(l lanes, s names) returns integer
language sql immutable as $$
  select case when (s).rules & 2 > 0 then 1 else coalesce(((l).own ->> 'limit')::integer, ((s).policy ->> 'group_limit')::integer) end
$$;

create or replace function lane_rate(l lanes, s names) returns jsonb
language sql immutable as $$
  select coalesce(nullif((l).own -> 'rate', 'null'), nullif((s).policy -> 'group_rate', 'null'))
$$;

create or replace function lane_weight(l lanes) returns integer
language sql immutable as $$
  select coalesce(((l).own ->> 'weight')::integer, 1)
$$;

-- The lane as it is by now; its row is locked. What is put meanwhile and not committed leaves it open.
create or replace function refreshed(l lanes, s names, now bigint, number bigint) returns lanes
language plpgsql as $$
declare
  rate jsonb := lane_rate(l, s);
  head bigint := first_in_lane(l.queue, l.name, now);
  opens bigint;
  can_open boolean;
begin
  if head is null then
    if pg_try_advisory_xact_lock(lane_lock(l.queue, l.name)) then
      head := first_in_lane(l.queue, l.name, now);
    else
      head := now;
    end if;
  end if;
  opens := greatest(
    case when s.rules & 2 > 0 then head else 0 end, case when rate is not null then l.tat - tolerance_of(rate) end, l.throttled_until
  );
  can_open := head is not null and (l.own ->> 'paused')::boolean is not true and (l.live < lane_limit(l, s)) is not false;
  l.is_open := can_open and opens <= now;
  l.wakes := case
    when can_open and opens > now then opens
    when head is null and l.live = 0 and greatest(l.tat, l.throttled_until) > now then greatest(l.tat, l.throttled_until)
  end;
  if head is null and l.live = 0 then
    l.turn := 0;
    l.place := 0;
    l.credit := 0;
  elsif l.turn = 0 then
    l.turn := number;
    l.place := 0;
    l.credit := lane_weight(l);
  else
    l.credit := least(l.credit, lane_weight(l));
  end if;
  return l;
end
$$;

-- Save a lane whose row is locked, or remove one that there is nothing to remember of.
create or replace function save_lane(l lanes) returns void
language plpgsql as $$
begin
  if l.turn = 0 and l.live = 0 and l.wakes is null and l.own is null then
    delete from lanes where queue = l.queue and name = l.name;
  else
    update lanes
    set turn = l.turn, tat = l.tat, last = l.last, throttled_until = l.throttled_until, wakes = l.wakes, live = l.live, place = l.place,
      credit = l.credit, is_open = l.is_open, own = l.own
    where queue = l.queue and name = l.name;
  end if;
end
$$;

-- The lane, with its row locked, if need be a new one.
create or replace function lock_lane(of_queue text, of_lane text) returns lanes
language plpgsql as $$
declare
  l lanes;
begin
  for attempt in 1 .. 100 loop
    select * into l from lanes where queue = of_queue and name = of_lane for no key update;
    exit when found;
    insert into lanes (queue, name) values (of_queue, of_lane) on conflict do nothing returning * into l;
    exit when found;
  end loop;
  return l;
end
$$;

-- Bring a lane up to date after a change: so many messages arrived in its line, and so many of its slots were freed. How many to wake.
create or replace function refresh_lane(s names, of_lane text, arrived integer, freed integer, now bigint, number bigint) returns integer
language plpgsql as $$
declare
  l lanes := lock_lane(s.name, of_lane);
  was_open boolean := l.is_open;
  would_wake bigint := coalesce(l.wakes, never());
begin
  l.live := greatest(0, l.live - freed);
  l := refreshed(l, s, now, number);
  perform save_lane(l);
  return case
    when l.is_open and (arrived > 0 or not was_open) then greatest(1, arrived)
    when l.wakes < would_wake then 1
    else 0
  end;
end
$$;

-- The same for several lanes, in the order of their names. Wakes those who wait.
create or replace function refresh_lanes(s names, of_lanes text[], arrived integer[], freed integer[], now bigint, number bigint) returns void
language plpgsql as $$
declare
  t record;
  woken bigint := 0;
begin
  if (s.rules & 1 > 0) is not true then
    return;
  end if;
  number := coalesce(number, latest());
  for t in
    select u.name, coalesce(sum(u.arrived), 0)::integer as arrived, coalesce(sum(u.freed), 0)::integer as freed
    from unnest(of_lanes, arrived, freed) as u (name, arrived, freed)
    where u.name is not null
    group by u.name
    order by u.name
  loop
    woken := woken + refresh_lane(s, t.name, t.arrived, t.freed, now, number);
  end loop;
  perform wake('queue:' || s.name, woken) where woken > 0;
end
$$;

-- Bring a lane up to date after a put of so many messages that are due, and perhaps of others, for which it is locked. How many to wake.
create or replace function put_in_lane(s names, of_lane text, arrived integer, now bigint, number bigint) returns integer
language plpgsql as $$
declare
  l lanes;
begin
  select * into l from lanes where queue = s.name and name = of_lane;
  if not found then
    if arrived = 0 then
      return 0;
    end if;
    insert into lanes (queue, name, turn, credit, is_open) values (s.name, of_lane, number, 1, true) on conflict do nothing;
    return case when found then arrived else refresh_lane(s, of_lane, arrived, 0, now, number) end;
  elsif stays_as_it_is(l, s) then
    return case when l.is_open then arrived else 0 end;
  end if;
  return refresh_lane(s, of_lane, arrived, 0, now, number);
end
$$;

-- The same for several lanes; those whose messages are not due yet wake one for each.
create or replace function put_in_lanes(s names, of_lanes text[], ranks bigint[], now bigint, number bigint) returns void
language plpgsql as $$
declare
  t record;
  woken bigint := 0;
begin
  number := coalesce(number, latest());
  for t in
    select u.name, count(u.rank)::integer as arrived, count(*) - count(u.rank) as delayed
    from unnest(of_lanes, ranks) as u (name, rank)
    group by u.name
    order by u.name
  loop
    woken := woken + t.delayed + put_in_lane(s, t.name, t.arrived, now, number);
  end loop;
  perform wake('queue:' || s.name, woken) where woken > 0;
end
$$;
