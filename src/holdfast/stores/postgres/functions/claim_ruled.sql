-- Claims of queues with lanes, with a limit, a rate or a throttle of their own, and of those that keep what is done.
--
-- They decide nothing before they write: what time overtook is swept, and the first are picked from what is there by then, so a claim sees what
-- other commands of its step have done.

create or replace function is_ruled(s names) returns boolean
language sql immutable as $$
  select (s).rules is not null or (s).throttled_until > 0
$$;

-- Where claims go by more than the line, `paused` is there for releases that know nothing of it.
create or replace function is_paused(s names) returns boolean
language sql immutable as $$
  select coalesce((s).stopped, (s).paused)
$$;

-- How long a claim is to last: as it says, or as the queue does.
create or replace function lease_of(s names, c jsonb) returns double precision
language sql immutable as $$
  select case
    when c ->> 'lease_s' is null or (c ->> 'by_policy')::boolean
      then coalesce(((s).policy ->> 'lease_s')::double precision, (c ->> 'lease_s')::double precision)
    else (c ->> 'lease_s')::double precision
  end
$$;

create or replace function write_ruled_claim(c jsonb, used bigint, now bigint, out answer text, out note text)
language plpgsql as $$
declare
  s names := settings_of(c ->> 'queue');
begin
  select r.answer, r.note into answer, note
  from claim_ruled(
    s, coalesce(c ->> 'holder', ''), lease_of(s, c), coalesce((c ->> 'limit')::integer, 1), coalesce((c ->> 'take')::boolean, false),
    coalesce(c ->> 'expired_to', 'place'), (c ->> 'max_attempts')::integer, c ->> 'dead_letter', c ->> 'key', used, now, ''
  ) as r;
end
$$;

-- The answer that brings nothing.
create or replace function nothing_due(s names, due bigint, now bigint) returns text
language sql immutable as $$
  select '{"messages":[],"due_in_s":' || coalesce(case when due < never() then seconds_in(greatest(0, due - now)) end::text, 'null')
    || case when is_careful(s, '{}') then ',"careful":true}' else '}' end
$$;

create or replace function claim_ruled(
  s names, of_holder text, lease_s double precision, most integer, takes boolean, expiry text, budget integer, grave text, of_key text,
  used bigint, now bigint, command_id text, out answer text, out note text
)
language plpgsql as $$
declare
  number bigint := latest();
  is_cut boolean;
  room bigint;
  picked record;
  ids text[] := '{}';
  ask_at bigint;
begin
  note := '[]';
  if is_paused(s) or s.throttled_until > now then
    answer := nothing_due(s, case when not is_paused(s) then s.throttled_until end, now);
    return;
  elsif s.throttled_until > 0 then
    update names
    set throttled_until = 0, paused = s.rules is not null, stopped = case when s.rules is not null then false end
    where kind = 'queue' and name = s.name;
  end if;
  is_cut := sweep_ruled(s, of_key, most, budget, grave, now, number);
  -- The sweep may have given slots of the queue back.
  s := settings_of(s.name);
  room := room_of(s, most, takes, now);
  if room > 0 then
    picked := pick_ruled(s, of_key, room, most + {sweep}, takes, now, number);
    ids := picked.ids[:first_fitting(sizes_of(s.name, picked.ids), used)];
    is_cut := is_cut or cardinality(ids) < cardinality(picked.ids);
    ask_at := picked.ask_at;
  end if;
  if ids = '{}' then
    perform forget_done_of(s, now, {sweep}) where s.rules & 16 > 0;
    answer := nothing_due(s, case
      when is_cut then now when room = 0 then s.tat - tolerance_of(s.policy -> 'rate') else least(ask_at, next_due_ruled(s, of_key, now))
    end, now);
    return;
  end if;
  select l.answer, l.note into answer, note
  from lease_picked(s, ids, picked.served, picked.places, of_holder, lease_s, takes, expiry, of_key is not null, now, command_id) as l;
end
$$;

-- How many the limit and the rate of the queue let through; 0 where the rate lets none, less where the limit does.
create or replace function room_of(s names, most integer, takes boolean, now bigint) returns bigint
language plpgsql immutable as $$
declare
  room bigint := least(most, case when not takes then (s.policy ->> 'limit')::bigint - s.live end);
begin
  return case when room > 0 then least(room, allowed_by(s.policy -> 'rate', s.tat, now)) else -1 end;
end
$$;

-- How many of the first records fit into an answer of which so much is used, none if nothing does.
create or replace function first_fitting(sizes bigint[], used bigint) returns integer
language plpgsql as $$
begin
  return case when used > 0 and used + sizes[1] > answer_bytes() then 0 else fitting(sizes, used) end;
end
$$;

create or replace function sizes_of(of_queue text, ids text[]) returns bigint[]
language plpgsql stable as $$
begin
  return array(
    select message_bytes(m.value, m.metadata, m.last_error, m.history)
    from unnest(ids) with ordinality as i (id, o)
    cross join lateral (select * from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
    order by i.o
  );
end
$$;

-- What time has overtaken, the longest overdue first, as overdue() finds it, and with lanes also what was delayed and is due.
create or replace function overdue_in_lanes(of_queue text, now bigint, most integer, out expired text[], out late text[], out delayed text[])
language plpgsql as $$
begin
  select o.expired, o.late into expired, late from overdue(of_queue, now, most) as o;
  with due as materialized (
    select m.id, m.position as alarm, m.n
    from messages as m
    where m.queue = of_queue and m.lane is not null and m.rank is null and m.state = 'ready' and m.position <= now and m.id <> all (late)
    order by m.position, m.n
    limit most
    for update skip locked
  ),
  known as (
    select m.id, case when m.state = 'leased' then m.until when m.rank is null then m.position else m.start_by end as alarm, m.n,
      m.state = 'leased' as is_leased
    from unnest(expired || late) as i (id)
    cross join lateral (select * from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
  ),
  longest as (
    select b.id, b.kind, row_number() over (order by b.alarm, b.n) as o
    from (
      select id, alarm, n, 'delayed' as kind from due
      union all
      select id, alarm, n, case when is_leased then 'expired' else 'late' end from known
    ) as b
    order by o
    limit most
  )
  select coalesce(array_agg(id order by o) filter (where kind = 'expired'), '{}'),
    coalesce(array_agg(id order by o) filter (where kind = 'late'), '{}'), coalesce(array_agg(id order by o) filter (where kind = 'delayed'), '{}')
  into expired, late, delayed
  from longest;
end
$$;

-- Sweep what time has overtaken, and bring the lanes up to date that waited for a moment; whether there may be more of it.
create or replace function sweep_ruled(s names, of_key text, most integer, budget integer, grave text, now bigint, number bigint) returns boolean
language plpgsql as $$
declare
  expired text[];
  late text[];
  delayed text[] := '{}';
  asleep text[] := '{}';
  fates fate[];
begin
  if of_key is null and has_lanes(s) then
    select o.expired, o.late, o.delayed into expired, late, delayed from overdue_in_lanes(s.name, now, most + {sweep}) as o;
  elsif of_key is null then
    select o.expired, o.late into expired, late from overdue(s.name, now, most + {sweep}) as o;
  else
    -- Its row was locked before.
    select
      coalesce(array_agg(m.id) filter (where m.state = 'leased' and m.until <= now), '{}'),
      coalesce(array_agg(m.id) filter (where m.state = 'ready' and is_late(m, now)), '{}')
    into expired, late
    from messages as m
    where m.queue = s.name and m.key = of_key and m.key is not null and m.state in ('ready', 'leased');
  end if;
  fates := fates_of(s.name, expired, true, false, budget, grave, null, null, 0, now);
  if expired || late || delayed <> '{}' and not lock_swept_soon(s, fates, late, delayed, grave) then
    return true;
  end if;
  perform come_due(s, delayed, now, number) where delayed <> '{}';
  perform write_sweep(s.name, expired, late, fates, grave, now, number);
  if s.rules & 1 > 0 then
    asleep := array(
      select l.name from lanes as l where l.queue = s.name and l.wakes <= now order by l.wakes, l.name limit most + {sweep} for no key update skip locked
    );
    perform refresh_lanes(s, asleep, null, null, now, number) where asleep <> '{}';
  end if;
  return of_key is null and (cardinality(expired || late || delayed) >= most + {sweep} or cardinality(asleep) >= most + {sweep});
end
$$;

-- Let messages whose moment has come stand in line.
create or replace function come_due(s names, ids text[], now bigint, number bigint) returns void
language plpgsql as $$
declare
  of_lanes text[];
begin
  with due as (
    update messages as m
    set level = level_of(s, m.level, m.rank, m.priority, m.position, now), rank = rank_of(s, m.rank, m.priority, m.position, now)
    from unnest(ids) as i (id)
    cross join lateral (select h.ctid from messages as h where h.queue = s.name and h.id = i.id limit 1) as h
    where m.ctid = h.ctid
    returning m.lane
  )
  select array_agg(lane) into of_lanes from due;
  perform refresh_lanes(s, of_lanes, null, null, now, number);
end
$$;

-- The messages that a claim gets, and from which lanes.
create or replace function pick_ruled(
  s names, of_key text, room bigint, most_passed integer, takes boolean, now bigint, number bigint,
  out ids text[], out served lanes[], out places integer[], out ask_at bigint
)
language plpgsql as $$
declare
  shares lane_share[];
begin
  served := '{}';
  if of_key is not null then
    select p.ids, p.served, '{1}' into ids, served, places from pick_by_key(s, of_key, takes, now) as p;
  elsif s.rules & 1 > 0 then
    select l.served, l.shares, l.ask_at into served, shares, ask_at from serving_lanes(s, room, most_passed, takes, now, number) as l;
    select o.ids, o.places into ids, places from share_out(s, served, shares, room, now) as o;
  elsif s.rules & 4 > 0 then
    ids := heads_of_lane(s, '', '{}', room, now);
  else
    ids := heads(s.name, now, room::integer);
  end if;
end
$$;

-- The message of a key, whose row was locked before, if its lane lets it go: the turn does not matter, all else does.
create or replace function pick_by_key(s names, of_key text, takes boolean, now bigint, out ids text[], out served lanes[])
language plpgsql as $$
declare
  m messages;
  l lanes;
begin
  ids := '{}';
  served := '{}';
  select f.* into m
  from messages as f
  where f.queue = s.name and f.key = of_key and f.key is not null and f.state in ('ready', 'leased');
  if m.state is distinct from 'ready' or m.position > now or is_late(m, now) then
    return;
  elsif (s.rules & 1 > 0) is not true then
    ids := array[m.id];
    return;
  end if;
  l := lock_lane(s.name, m.lane);
  if not l.is_open or most_of(l, s, takes, now) < 1 or (s.rules & 2 > 0 and heads_of_lane(s, m.lane, '{}', 1, now) <> array[m.id]) then
    -- There was no row if the lane is new.
    perform save_lane(l);
    return;
  end if;
  ids := array[m.id];
  served := array[l];
end
$$;

-- The first moment ahead at which time alone makes something claimable.
create or replace function next_due_ruled(s names, of_key text, now bigint) returns bigint
language plpgsql as $$
declare
  due bigint;
begin
  if of_key is not null then
    select case m.state when 'leased' then m.until else m.position end into due
    from messages as m
    where m.queue = s.name and m.key = of_key and m.key is not null and m.state in ('ready', 'leased');
  end if;
  if due > now then
    return due;
  elsif not has_lanes(s) then
    return next_due(s.name, now);
  end if;
  return least(
    (select until from messages where queue = s.name and state = 'leased' and until > now order by until limit 1),
    (
      select position from messages
      where queue = s.name and lane is not null and rank is null and state = 'ready' and position > now
      order by position limit 1
    ),
    (select wakes from lanes where queue = s.name and wakes > now order by wakes limit 1)
  );
end
$$;
