-- Several messages of as many lanes: claimed and settled with a statement for all lanes where the full rules take some for each of them.

-- Claim one message of each of the first open lanes; null where there are not as many, or where it takes more.
create or replace function claim_one_each(
  command_id text, s names, of_holder text, lease_s double precision, most integer, expiry text, is_watched boolean, now bigint, out answer text
)
language plpgsql as $$
declare
  limit_each integer := case when s.rules & 2 > 0 then 1 else (s.policy ->> 'group_limit')::integer end;
  of_lanes text[] := lock_simple_lanes(s, most, limit_each);
  m record;
begin
  if of_lanes is null then
    return;
  end if;
  m := lease_one_each(s, of_lanes, of_holder, lease_s, expiry, case when limit_each is null then 0 else 1 end);
  if m.number is null then
    return;
  end if;
  with counted as (insert into shifts (queue, ready, leased) values (s.name, -cardinality(m.ids), cardinality(m.ids)))
  insert into events (n, at, topic, event, data, command)
  values (
    m.number, now, 'queue:' || s.name, 'claimed', told(m.ids, m.keys, told_groups(m.of_groups) || ',"holder":' || to_json(of_holder)),
    nullif(command_id, '')
  );
  perform keep_moment(now), serve_lanes(s, m.gave, limit_each, m.number, now);
  perform pass_lanes(s, of_lanes, m.gave, m.number, now) where cardinality(m.gave) < cardinality(of_lanes);
  if is_watched then
    perform wake('watch:queue:' || s.name, {everyone});
  end if;
  answer := '{"messages":[' || m.told || ']' || case when limit_each is not null then ',"careful":true}' else '}' end;
end
$$;

-- Lock so many of the first open lanes, if each of them may give one message and has its next turn then. Of strict groups fewer do, too: each of them
-- gives one at most.
create or replace function lock_simple_lanes(s names, most integer, limit_each integer) returns text[]
language plpgsql as $$
declare
  locked record;
begin
  if s.policy ->> 'group_rate' is not null then
    return null;
  end if;
  select array_agg(o.name order by o.turn, o.place, o.name) as names, bool_and(o.credit = 1 and o.own is null and (o.live < limit_each) is not false) as are_simple
  into locked
  from (
    select l.turn, l.place, l.name, l.credit, l.own, l.live
    from lanes as l
    where l.queue = s.name and l.is_open
      and (s.rules & 2 > 0 or exists (select from lanes as e where e.queue = s.name and e.is_open order by e.turn, e.place, e.name offset most - 1))
    order by l.turn, l.place, l.name
    limit most
    for no key update skip locked
  ) as o;
  return case when locked.are_simple and (s.rules & 2 > 0 or cardinality(locked.names) = most) then locked.names end;
end
$$;

-- Lanes that gave one message each have their next turn in this order.
create or replace function serve_lanes(s names, gave text[], limit_each integer, token bigint, now bigint) returns void
language plpgsql as $$
declare
  slot integer := case when limit_each is null then 0 else 1 end;
  dry text[];
begin
  with served as (
    update lanes as l
    set turn = token, place = g.o, live = l.live + slot, is_open = (l.live + slot < limit_each) is not false
    from unnest(gave) with ordinality as g (name, o)
    cross join lateral (select h.ctid from lanes as h where h.queue = s.name and h.name = g.name limit 1) as h
    where l.ctid = h.ctid
    returning l.name, l.is_open and not exists (
      select from messages as f where f.queue = s.name and f.lane = l.name and f.state = 'ready' and f.rank is not null
    ) as is_dry
  )
  select array_agg(d.name) into dry from served as d where d.is_dry;
  if dry is not null then
    perform close_lanes(s, dry, now);
  end if;
end
$$;

-- Lanes of which somebody else has the first message, or in which one is only being put, have their next turn, too.
create or replace function pass_lanes(s names, of_lanes text[], gave text[], token bigint, now bigint) returns void
language plpgsql as $$
declare
  l lanes;
begin
  for l in select p.* from lanes as p where p.queue = s.name and p.name = any (of_lanes) and p.name <> all (gave) loop
    l := refreshed(l, s, now, token);
    l.turn := case when l.is_open then token else l.turn end;
    perform save_lane(l);
  end loop;
end
$$;

-- Close those of these lanes that are empty, whose rows are locked and which have no settings of their own and no rate: see the rules in lanes.sql.
-- Which they were.
create or replace function close_lanes(s names, of_lanes text[], now bigint) returns text[]
language plpgsql as $$
declare
  alone text[] := array(select l.name from unnest(of_lanes) as l (name) where pg_try_advisory_xact_lock(lane_lock(s.name, l.name)));
  closed text[];
begin
  with empty as materialized (
    select h.place, d.name, h.live = 0 as is_idle, greatest(h.tat, h.throttled_until) as ends
    from unnest(alone) as d (name)
    cross join lateral (
      select l.ctid as place, l.live, l.tat, l.throttled_until from lanes as l where l.queue = s.name and l.name = d.name limit 1
    ) as h
    where first_in_lane(s.name, d.name, now) is null
  ),
  gone as (
    delete from lanes as l where l.ctid = any (array(select e.place from empty as e where e.is_idle and e.ends <= now))
  ),
  shut as (
    update lanes as l
    set
      is_open = false, wakes = case when e.is_idle then e.ends end, turn = case when e.is_idle then 0 else l.turn end,
      place = case when e.is_idle then 0 else l.place end, credit = case when e.is_idle then 0 else l.credit end
    from empty as e
    where l.ctid = e.place and (not e.is_idle or e.ends > now)
  )
  select array_agg(e.name) into closed from empty as e;
  return coalesce(closed, '{}');
end
$$;

-- Give slots of several lanes back that have no rate, with their rows locked in their order; of those without settings of their own at once. Those
-- that are open stay so, whatever is in their line.
create or replace function free_slots_each(s names, of_lanes text[], now bigint, number bigint) returns void
language plpgsql as $$
declare
  limit_each integer := case when s.rules & 2 > 0 then 1 else (s.policy ->> 'group_limit')::integer end;
  others text[];
  opened text[];
  dry text[];
begin
  select array_agg(h.name) filter (where not h.is_simple) into others
  from (select u.name from unnest(of_lanes) as u (name) group by u.name order by u.name) as d
  cross join lateral (
    select l.name, l.own is null and l.throttled_until = 0 as is_simple from lanes as l where l.queue = s.name and l.name = d.name limit 1 for no key update
  ) as h;
  with freed as (
    update lanes as l
    set
      live = greatest(0, l.live - f.count), wakes = case when s.rules & 2 > 0 and f.head > now then f.head end,
      is_open = (greatest(0, l.live - f.count) < limit_each) is not false and (s.rules & 2 > 0 and f.head > now) is not true
    from (
      select h.place, c.count, h.is_open, case when not h.is_open then first_in_lane(s.name, c.name, now) end as head
      from (select u.name, count(*)::integer as count from unnest(of_lanes) as u (name) group by u.name) as c
      cross join lateral (select l.ctid as place, l.is_open from lanes as l where l.queue = s.name and l.name = c.name limit 1) as h
      where c.name <> all (coalesce(others, '{}'))
    ) as f
    where l.ctid = f.place
    returning l.name, not f.is_open and f.head is null as is_dry, l.wakes is not null or (l.is_open and not f.is_open) as opens
  )
  select array_agg(f.name) filter (where f.opens), array_agg(f.name) filter (where f.is_dry) into opened, dry from freed as f;
  if dry is not null then
    dry := close_lanes(s, dry, now);
    opened := array(select o.name from unnest(opened) as o (name) where o.name <> all (dry));
  end if;
  perform wake('queue:' || s.name, cardinality(opened)) where cardinality(opened) > 0;
  if others is not null then
    perform refresh_lanes(s, array_agg(u.name), null, array_agg(1), now, number) from unnest(of_lanes) as u (name) where u.name = any (others);
  end if;
end
$$;
