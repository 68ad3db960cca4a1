-- Who waits for lanes, and in which order: a step that waits for one while it has others has them all of queues and names before it. What a
-- claim finds is not known before, so it passes lanes that are somebody else's, or waits for a short time only.

-- The messages that settlements of a step name, in queues with policies; `moves` tells whether they return, `place` where they go if they die.
create or replace function settlements_named(parts jsonb[])
returns table (moves boolean, buries boolean, queue text, lane text, key text, tied integer, extra jsonb, place text)
language sql stable as $$
  with ends as (
    select p.c -> 'receipts' as receipts, p.c ->> 'dead_letter' as dead_letter, coalesce(p.c ->> 'to', 'done') <> 'done' as returns,
      coalesce((p.c ->> 'unstarted')::boolean, false) as gives_back, p.c ->> 'to' = 'dead' or coalesce((p.c ->> 'counts')::boolean, false) as buries
    from unnest(parts) as p (c)
    where p.c ->> 'type' = 'Settle'
  )
  select e.returns or e.gives_back as moves, e.buries, m.queue, m.lane, m.key, m.tied, m.extra,
    coalesce(nullif(m.dead_letter, ''), e.dead_letter, s.policy ->> 'dead_letter') as place
  from ends as e, jsonb_array_elements(e.receipts) as r
  cross join lateral (
    select m.queue, m.lane, m.key, m.tied, m.extra, m.dead_letter from messages as m where m.queue = r ->> 0 and m.id = r ->> 1 limit 1
  ) as m
  join names as s on s.kind = 'queue' and s.name = m.queue and s.policy is not null
$$;

-- The messages that moves of a step name; `is_new` tells whether they come into their target as messages that are put.
create or replace function moves_named(parts jsonb[]) returns table (queue text, key text, extra jsonb, is_new boolean, target text)
language sql stable as $$
  select m.queue, m.key, m.extra, p.c ->> 'to' <> 'dead' as is_new, case p.c ->> 'to' when 'dead' then m.dead_letter else p.c ->> 'to_queue' end as target
  from unnest(parts) as p (c), jsonb_array_elements_text(p.c -> 'ids') as i (id)
  cross join lateral (
    select m.queue, m.key, m.extra, m.dead_letter from messages as m where m.queue = p.c ->> 'queue' and m.id = i.id limit 1
  ) as m
  where p.c ->> 'type' = 'Move'
$$;

-- The lanes that puts, settlements, moves and claims by key of a step may have to bring up to date; `is_new` are those of messages that are put, or come
-- from another queue.
create or replace function lanes_named(parts jsonb[]) returns table (queue text, name text, is_new boolean)
language sql stable as $$
  with settled as materialized (
    select * from settlements_named(parts)
  ),
  put as (
    select s, i as item
    from unnest(parts) as p (c), jsonb_array_elements(p.c -> 'items') as i, names as s
    where s.kind = 'queue' and s.name = p.c ->> 'queue' and s.rules & 1 > 0
  ),
  moved as materialized (
    select * from moves_named(parts)
  ),
  keyed as (
    select (p.s).name as queue, p.item ->> 'key' as key, p.item ->> 'if_ready' = 'postpone' as moves from put as p where p.item ->> 'key' is not null
    union all
    select d.queue, d.key, false from settled as d where d.key is not null
    union all
    select v.queue, v.key, false from moved as v where v.key is not null
    union all
    select p.c ->> 'queue', p.c ->> 'key', true from unnest(parts) as p (c) where p.c ->> 'type' = 'Claim' and p.c ->> 'key' is not null
  )
  select (p.s).name, lane_of(p.s, p.item), true from put as p
  union all
  select d.queue, d.lane, false
  from settled as d
  where d.lane is not null and (d.tied & 1 > 0 or d.moves)
  union all
  select s.name, lane_of(s, d.extra), false
  from settled as d
  join names as s on s.kind = 'queue' and s.name = d.place and s.rules & 1 > 0
  where d.buries
  union all
  select s.name, lane_of(s, v.extra), v.is_new and s.name <> v.queue
  from moved as v
  join names as s on s.kind = 'queue' and s.name in (v.queue, v.target) and s.rules & 1 > 0
  union all
  select k.queue, m.lane, false
  from keyed as k
  cross join lateral (
    select m.lane from messages as m where m.queue = k.queue and m.key = k.key and m.state = 'buffered'
    union all
    select m.lane
    from messages as m
    where m.queue = k.queue and m.key = k.key and m.key is not null and m.state in ('ready', 'leased') and (k.moves or m.start_by is not null)
  ) as m
  where m.lane is not null
$$;

-- Lock them, in their order; those that were made for it. A put lets nobody take its lanes for empty until it is committed.
create or replace function lock_lanes(parts jsonb[]) returns lanes[]
language plpgsql as $$
declare
  w record;
  l lanes;
  made lanes[] := '{}';
  queues text[];
begin
  perform pg_advisory_xact_lock_shared(a.lock)
  from (
    select distinct lane_lock(s.name, lane_of(s, jsonb_build_object('group', n.of_group))) as lock
    from (
      select p.c ->> 'queue' as queue, i ->> 'group' as of_group from unnest(parts) as p (c), jsonb_array_elements(p.c -> 'items') as i
      union all
      select p.c ->> 'to_queue', m.extra ->> 'group'
      from unnest(parts) as p (c), jsonb_array_elements_text(case when p.c ->> 'to_queue' is not null then p.c -> 'ids' end) as i (id)
      cross join lateral (select m.extra from messages as m where m.queue = p.c ->> 'queue' and m.id = i.id limit 1) as m
    ) as n
    join names as s on s.kind = 'queue' and s.name = n.queue and s.rules & 5 > 0
    order by 1
  ) as a;
  queues := array(
    select p.c ->> 'queue' from unnest(parts) as p (c)
    union
    select p.c ->> 'to_queue' from unnest(parts) as p (c)
    union
    select r ->> 0 from unnest(parts) as p (c), jsonb_array_elements(p.c -> 'receipts') as r
  );
  if not exists (select from names as s where s.kind = 'queue' and s.rules & 1 > 0 and s.name = any (queues)) then
    return made;
  end if;
  for w in
    select n.queue, n.name, bool_and(n.is_new) as is_new from lanes_named(parts) as n group by n.queue, n.name order by n.queue, n.name
  loop
    select * into l from lanes where queue = w.queue and name = w.name;
    continue when w.is_new and found and stays_as_it_is(l, settings_of(w.queue));
    l := lock_lane(w.queue, w.name);
    if l.turn = 0 and l.own is null then
      made := made || l;
    end if;
  end loop;
  return made;
end
$$;

-- Remove lanes that were made only to be locked.
create or replace function remove_idle(made lanes[]) returns void
language plpgsql as $$
begin
  delete from lanes as l
  using unnest(made) as m
  where l.queue = m.queue and l.name = m.name and l.turn = 0 and l.live = 0 and l.wakes is null and l.own is null;
end
$$;

-- Whether a put leaves the lane as it is: open, or full or paused, so that whoever settles or resumes it opens it.
create or replace function stays_as_it_is(l lanes, s names) returns boolean
language sql immutable as $$
  select (l).is_open or coalesce((l).turn > 0 and (l).wakes is null and ((l).live >= lane_limit(l, s) or ((l).own ->> 'paused')::boolean), false)
$$;

-- Share the queues where dead letters go, so that none changes its groups meanwhile, and lock the rows of those that are bounded.
create or replace function lock_graves(places text[]) returns void
language plpgsql as $$
begin
  perform lock_object('queue', p.place, false) from (select u.place from unnest(places) as u (place) where u.place is not null order by 1) as p;
  perform from names as s where s.kind = 'queue' and s.maxsize is not null and s.name = any (places) order by s.name for update;
end
$$;

-- The same behind the messages, which others may wait for who have a queue alone: we give up, as lock_alone does.
create or replace function lock_graves_soon(places text[]) returns void
language plpgsql set lock_timeout = '250ms' as $$
begin
  perform lock_graves(places);
end
$$;
