-- Count, Counts: sizes, ages and holders of queues.

create or replace function answer_count(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
declare
  of_queue text := c ->> 'queue';
begin
  if c -> 'which' <> '{}' then
    return count_found(c, now);
  end if;
  return (
    select stats_json(of_queue, sum(k.ready), sum(k.leased), sum(k.buffered), sum(k.dead), sum(k.done), now)
    from (
      select n.ready, n.leased, n.buffered, n.dead, n.done from counts as n where n.queue = of_queue
      union all
      select s.ready, s.leased, s.buffered, s.dead, s.done from shifts as s where s.queue = of_queue
    ) as k
  );
end
$$;

create or replace function answer_counts(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
declare
  prefix text := coalesce(c ->> 'prefix', '');
  behind text := end_of_prefix(prefix);
  most bigint := coalesce((c ->> 'limit')::bigint, 100);
begin
  return (
    with page as (
      select s.name, row_number() over (order by s.name) as o
      from names as s
      where s.kind = 'queue' and s.name > coalesce(c ->> 'after', '') and s.name >= prefix and s.name < behind
      order by s.name
      limit most + 1
    ),
    -- They are few, and have no index: read once for all queues.
    recent as materialized (
      select s.queue, sum(s.ready) as ready, sum(s.leased) as leased, sum(s.buffered) as buffered, sum(s.dead) as dead, sum(s.done) as done
      from shifts as s
      group by s.queue
    )
    select '{"queues":[' || coalesce(string_agg(
      '{"name":' || to_json(p.name) || ',"stats":' || stats_json(
        p.name, coalesce(n.ready, 0) + coalesce(r.ready, 0), coalesce(n.leased, 0) + coalesce(r.leased, 0),
        coalesce(n.buffered, 0) + coalesce(r.buffered, 0), coalesce(n.dead, 0) + coalesce(r.dead, 0), coalesce(n.done, 0) + coalesce(r.done, 0), now
      ) || '}', ',' order by p.o
    ) filter (where p.o <= most), '') || '],"more":' || (count(*) > most)::text || '}'
    from page as p
    left join counts as n on n.queue = p.name
    left join recent as r on r.queue = p.name
  );
end
$$;

-- What is counted of a queue, and what its indexes say at their ends: ages, holders, and how many are not due.
create or replace function stats_json(
  of_queue text, ready numeric, leased numeric, buffered numeric, dead numeric, done numeric, now bigint
) returns text
language plpgsql stable as $$
declare
  line record;
  ended bigint := 0;
  held record;
begin
  select null::bigint as first, 0::bigint as delayed into line;
  if ready > 0 then
    select l.first, l.delayed into line from line_of(of_queue, ready::bigint, now) as l;
  end if;
  select null::bigint as since, null::double precision as mean, '{}'::json as counts into held;
  if leased > 0 then
    ended := ended_of(of_queue, leased::bigint, now);
  end if;
  if leased > ended then
    select h.since, h.mean, h.counts into held from held_in(of_queue, now) as h;
  end if;
  return json_build_object(
    'ready', coalesce(ready, 0)::bigint - line.delayed + ended,
    'delayed', line.delayed,
    'buffered', coalesce(buffered, 0)::bigint,
    'leased', coalesce(leased, 0)::bigint - ended,
    'dead', coalesce(dead, 0)::bigint,
    'oldest_ready_s', case when line.first <= now then seconds_in(now - line.first) end,
    'oldest_leased_s', seconds_in(now - held.since),
    'average_leased_s', (now - held.mean) / 1000000,
    'oldest_dead_s', case when dead > 0 then seconds_in(now - first_dead(of_queue)) end,
    'holders', held.counts,
    'done', coalesce(done, 0)::bigint
  )::text;
end
$$;

create or replace function first_dead(of_queue text) returns bigint
language plpgsql stable as $$
begin
  return (select m.dead_at from messages as m where m.queue = of_queue and m.state = 'dead' order by m.dead_at, m.n limit 1);
end
$$;

-- The first position of the ready messages, and how many of them are not due; costs by the number of priorities, and by the smaller part.
create or replace function line_of(of_queue text, ready bigint, now bigint, out first bigint, out delayed bigint)
language plpgsql stable as $$
declare
  levels integer[] := '{}';
  level_at integer := (select m.priority from messages as m where m.queue = of_queue and m.state = 'ready' order by m.priority desc limit 1);
  bound bigint := {part_seen};
begin
  while level_at is not null loop
    levels := levels || level_at;
    first := least(first, (
      select m.position from messages as m where m.queue = of_queue and m.state = 'ready' and m.priority = level_at order by m.position, m.n limit 1
    ));
    level_at := (
      select m.priority from messages as m where m.queue = of_queue and m.state = 'ready' and m.priority < level_at order by m.priority desc limit 1
    );
  end loop;
  loop
    select count(*) into delayed
    from (
      select
      from unnest(levels) as l (at)
      cross join lateral (
        select from messages as m where m.queue = of_queue and m.state = 'ready' and m.priority = l.at and m.position > now limit bound
      ) as m
      limit bound
    ) as part;
    exit when delayed < bound;
    select count(*) into delayed
    from (
      select
      from unnest(levels) as l (at)
      cross join lateral (
        select from messages as m where m.queue = of_queue and m.state = 'ready' and m.priority = l.at and m.position <= now limit bound
      ) as m
      limit bound
    ) as part;
    if delayed < bound then
      delayed := ready - delayed;
      exit;
    end if;
    bound := bound * 10;
  end loop;
end
$$;

-- How many leases have ended; costs by the smaller part.
create or replace function ended_of(of_queue text, leased bigint, now bigint) returns bigint
language plpgsql stable as $$
declare
  bound bigint := {part_seen};
  seen bigint;
begin
  loop
    select count(*) into seen from (select from messages as m where m.queue = of_queue and m.state = 'leased' and m.until <= now limit bound) as part;
    if seen < bound then
      return seen;
    end if;
    select count(*) into seen from (select from messages as m where m.queue = of_queue and m.state = 'leased' and m.until > now limit bound) as part;
    if seen < bound then
      return leased - seen;
    end if;
    bound := bound * 10;
  end loop;
end
$$;

-- The same of what a filter lets through, of so many messages behind a place: its state, and where it stands in the order of that.
create or replace function count_found(c jsonb, now bigint) returns text
language plpgsql stable as $$
declare
  of_queue text := c ->> 'queue';
  states text[] := '{ready,leased,dead,buffered,done}';
  place jsonb := c -> 'after';
  looks integer := {looked_at};
  of_state text;
  looked integer;
  found_ids text[];
  ids text[] := '{}';
  last text;
begin
  foreach of_state in array states[coalesce(array_position(states, place ->> 'state'), 1):] loop
    select coalesce(array_agg(b.id) filter (where b.fits), '{}'), count(*), (array_agg(b.id order by b.o desc))[1] into found_ids, looked, last
    from browse_state(of_queue, of_state, c -> 'which', case when of_state = place ->> 'state' then place -> 'cursor' end, looks, now) with ordinality as b (id, fits, o);
    ids := ids || found_ids;
    looks := looks - looked;
    exit when looks = 0;
  end loop;
  return (
    with found as (
      select m.*, m.state = 'leased' and m.until > now as is_held
      from unnest(ids) as i (id)
      cross join lateral (select * from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
    )
    select json_build_object(
      'ready', count(*) filter (where (f.state = 'ready' and f.position <= now) or (f.state = 'leased' and not f.is_held)),
      'delayed', count(*) filter (where f.state = 'ready' and f.position > now),
      'buffered', count(*) filter (where f.state = 'buffered'),
      'leased', count(*) filter (where f.is_held),
      'dead', count(*) filter (where f.state = 'dead'),
      'oldest_ready_s', seconds_in(now - min(f.position) filter (where f.state = 'ready' and f.position <= now)),
      'oldest_leased_s', seconds_in(now - min(f.since) filter (where f.is_held)),
      'average_leased_s', (now - (avg(f.since) filter (where f.is_held))::double precision) / 1000000,
      'oldest_dead_s', seconds_in(now - min(f.dead_at) filter (where f.state = 'dead')),
      'holders', (
        select coalesce(json_object_agg(h.holder, h.count), '{}')
        from (select g.holder, count(*) from found as g where g.is_held group by g.holder) as h
      ),
      'done', count(*) filter (where f.ended_at is not null),
      'after', case when looks = 0 then json_build_object('state', of_state, 'cursor', place_of(of_queue, last)::json) end
    )::text
    from found as f
  );
end
$$;

-- Who has claimed messages, and since when, of those claims that end first.
create or replace function held_in(
  of_queue text, now bigint, out since bigint, out mean double precision, out counts json
)
language plpgsql stable as $$
begin
  with first as (
    select m.holder, m.since
    from messages as m
    where m.queue = of_queue and m.state = 'leased' and m.until > now
    order by m.until, m.n
    limit {held_seen}
  )
  select min(f.since), avg(f.since)::double precision, (
    select coalesce(json_object_agg(h.holder, h.count), '{}') from (select g.holder, count(*) from first as g group by g.holder) as h
  )
  into since, mean, counts
  from first as f;
end
$$;

-- Who counts what the next statements change: functions by hand, or the triggers.
create or replace function count_by(whom text) returns void
language plpgsql as $$
begin
  perform set_config('holdfast.counting', 'by_' || whom, true);
end
$$;

-- Add recent changes to the counts. What somebody else adds stays for the next time; a queue with nothing in it has no row.
create or replace function fold_shifts(most bigint) returns void
language plpgsql as $$
declare
  queues text[];
begin
  with gone as (
    delete from shifts where ctid = any (array(select ctid from shifts limit most for update skip locked)) returning *
  ),
  added as (
    insert into counts as n
    select g.queue, sum(g.ready), sum(g.leased), sum(g.buffered), sum(g.dead), sum(g.done) from gone as g group by g.queue order by g.queue
    on conflict (queue) do update
    set ready = n.ready + excluded.ready, leased = n.leased + excluded.leased, buffered = n.buffered + excluded.buffered,
      dead = n.dead + excluded.dead, done = n.done + excluded.done
    returning n.queue
  )
  select array_agg(a.queue) into queues from added as a;
  delete from counts where queue = any (queues) and ready = 0 and leased = 0 and buffered = 0 and dead = 0 and done = 0;
end
$$;
