-- Count, Counts: sizes, ages and holders of queues.

create or replace function answer_count(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
declare
  of_queue text := c ->> 'queue';
  which jsonb := case when c ->> 'group' is not null then jsonb_build_object('group', c ->> 'group') end;
begin
  return (
    select json_build_object(
      'ready', ready.count - ready.delayed + leased.ended,
      'delayed', ready.delayed,
      'buffered', (select count(*) from messages as m where m.queue = of_queue and m.state = 'buffered' and is_meant(null, which, 0, m)),
      'leased', leased.count - leased.ended,
      'dead', dead.count,
      'oldest_ready_s', case when ready.first <= now then seconds_in(now - ready.first) end,
      'oldest_leased_s', seconds_in(now - held.since),
      'average_leased_s', (now - held.mean) / 1000000,
      'oldest_dead_s', seconds_in(now - dead.first),
      'holders', held.counts,
      'done', (select count(*) from messages as m where m.queue = of_queue and m.ended_at is not null and is_meant(null, which, 0, m))
    )::text
    from ready_in(of_queue, which, now) as ready,
    (
      select count(*), count(*) filter (where m.until <= now) as ended
      from messages as m where m.queue = of_queue and m.state = 'leased' and is_meant(null, which, 0, m)
    ) as leased,
    (
      select count(*), min(m.dead_at) as first from messages as m where m.queue = of_queue and m.state = 'dead' and is_meant(null, which, 0, m)
    ) as dead,
    held_in(of_queue, which, now) as held
  );
end
$$;

-- How many messages are ready, how many of them are not due, and the first position.
create or replace function ready_in(of_queue text, which jsonb, now bigint, out count bigint, out delayed bigint, out first bigint)
language plpgsql stable as $$
begin
  if which is null then
    -- From messages_ready alone.
    select count(*), count(*) filter (where m.position > now), min(m.position) into count, delayed, first
    from messages as m where m.queue = of_queue and m.state = 'ready';
  else
    select count(*), count(*) filter (where m.position > now), min(m.position) into count, delayed, first
    from messages as m where m.queue = of_queue and m.state = 'ready' and is_meant(null, which, 0, m);
  end if;
end
$$;

-- Who has claimed messages, and since when, of those claims that end first.
create or replace function held_in(
  of_queue text, which jsonb, now bigint, out since bigint, out mean double precision, out counts json
)
language plpgsql stable as $$
begin
  with first as (
    select m.holder, m.since
    from messages as m
    where m.queue = of_queue and m.state = 'leased' and m.until > now and is_meant(null, which, 0, m)
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
    )
    select '{"queues":[' || coalesce(string_agg(
      '{"name":' || to_json(p.name) || ',"stats":' || answer_count(jsonb_build_object('queue', p.name), now, 0) || '}', ',' order by p.o
    ) filter (where p.o <= most), '') || '],"more":' || (count(*) > most)::text || '}'
    from page as p
  );
end
$$;
