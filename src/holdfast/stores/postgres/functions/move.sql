-- Move: redrive, bury or remove what nobody holds, or end its delay.

-- Lock what a move that names no ids finds, and name it: whoever changed one of them since has it; the rest is ours from here on.
create or replace function with_ids(c jsonb, now bigint) returns jsonb
language plpgsql as $$
declare
  found_ids text[];
  last text;
begin
  if c ->> 'type' <> 'Move' or c -> 'ids' is not null then
    return c;
  end if;
  select p.ids, p.last into found_ids, last
  from browse_page(c, coalesce(c ->> 'state', 'dead'), coalesce((c ->> 'limit')::integer, 1000), now) as p;
  return c || jsonb_build_object('place', place_of(c ->> 'queue', last)) || jsonb_build_object('ids', array(
    select f.id
    from unnest(found_ids) with ordinality as f (id, o)
    cross join lateral (
      select from messages as m
      where m.queue = c ->> 'queue' and m.id = f.id and not (m.state = 'leased' and m.until > now) limit 1 for update skip locked
    ) as m
    order by f.o
  ));
end
$$;

create or replace function check_move(c jsonb, now bigint) returns jsonb
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  target text := coalesce(c ->> 'to_queue', of_queue);
  ending text := c ->> 'to';
  found_ids text[];
begin
  -- Their rows were locked before.
  found_ids := array(
    select m.id
    from (select i.id, min(i.o) as o from unnest(texts(c -> 'ids')) with ordinality as i (id, o) group by i.id) as i
    cross join lateral (select * from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
    where not (m.state = 'leased' and m.until > now)
    order by i.o
  );
  if ending = 'gone' then
    return jsonb_build_object('ids', found_ids);
  elsif ending = 'ready' then
    return plan_redrive(of_queue, target, found_ids, c, now);
  end if;
  found_ids := array(
    select m.id
    from unnest(found_ids) with ordinality as f (id, o)
    cross join lateral (select * from messages as m where m.queue = of_queue and m.id = f.id limit 1) as m
    where m.state in ('ready', 'leased')
    order by f.o
  );
  return jsonb_build_object('ids', found_ids, 'fates', to_jsonb(
    fates_of(of_queue, found_ids, false, true, null, of_queue, 'place', now, 0, now)
  ));
end
$$;

-- Ready; left where it is while another message of its key is alive, or its id is taken, where it would go.
create or replace function plan_redrive(of_queue text, target text, found_ids text[], c jsonb, now bigint) returns jsonb
language plpgsql as $$
declare
  first bigint := now + moment_in(coalesce((c ->> 'delay_s')::double precision, 0));
  spacing bigint := moment_in(coalesce((c ->> 'spacing_s')::double precision, 0));
begin
  return (
    with found as (
      select
        m.id,
        m.key,
        f.o,
        -- By the index messages_key.
        (select l.id from messages as l where l.queue = target and l.key = m.key and l.key is not null and l.state in ('ready', 'leased')) as living,
        -- Not `exists`, which may be answered by a list of them all.
        target <> of_queue and (select t.id from messages as t where t.queue = target and t.id = m.id) is not null as id_is_taken
      from unnest(found_ids) with ordinality as f (id, o)
      cross join lateral (select * from messages as m where m.queue = of_queue and m.id = f.id limit 1) as m
      where m.state <> 'buffered'
    ),
    ranked as (
      select f.*, count(*) filter (where not f.id_is_taken) over (partition by f.key order by f.o) as place
      from found as f
    ),
    placed as (
      select
        r.id,
        r.o,
        case
          when r.id_is_taken then 'id'
          when r.key is not null and r.id <> r.living then 'key'
          when r.key is not null and r.living is null and r.place > 1 then 'key'
        end as taken
      from ranked as r
    ),
    moved as (
      select p.id, p.o, first + spacing * (row_number() over (order by p.o) - 1) as position
      from placed as p
      where p.taken is null
    )
    select jsonb_build_object(
      'ids', coalesce(jsonb_agg(m.id order by m.o), '[]'),
      'moved', coalesce(jsonb_agg(jsonb_build_object('id', m.id, 'position', m.position) order by m.o), '[]'),
      'kept', (select coalesce(jsonb_object_agg(p.id, p.taken), '{}') from placed as p where p.taken is not null)
    )
    from moved as m
  );
end
$$;

create or replace function write_move(c jsonb, p jsonb, now bigint) returns text
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  target text := coalesce(c ->> 'to_queue', of_queue);
  ids text[] := texts(p -> 'ids');
  s names := settings_of(of_queue);
  keys text[];
  was_ready bigint;
  before messages[];
  fates fate[];
  answer text := '{"ids":' || array_to_json(ids) || ',"kept":' || coalesce(p ->> 'kept', '{}') || ',"after":' || coalesce(c ->> 'place', 'null') || '}';
begin
  if ids = '{}' then
    return answer;
  end if;
  select array_agg(m.key order by i.o), count(*) filter (where m.state = 'ready') into keys, was_ready
  from unnest(ids) with ordinality as i (id, o)
  cross join lateral (select * from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m;
  perform append('queue:' || of_queue, 'moved', told(ids, keys, groups_of(of_queue, ids) || ',"to":' || to_json(c ->> 'to')), now);
  perform resize(of_queue, -was_ready);
  before := messages_of(of_queue, ids);
  if c ->> 'to' = 'gone' then
    perform remove(of_queue, ids), promote(of_queue, keys, now), free_slots(s, before, '{}', now), resume_groups(s, ids, now);
  elsif c ->> 'to' = 'ready' then
    perform resume_groups(s, ids, now), redrive(s, target, before, keys, p -> 'moved', now);
  else
    fates := array(select jsonb_populate_recordset(null::fate, p -> 'fates'));
    perform end_claims(of_queue, fates, false, 'buried', now, c ->> 'error', now);
    perform bury(of_queue, fates, false, c ->> 'error', now), pass_on(of_queue, fates, now), free_slots(s, before, '{}', now);
  end if;
  return answer;
end
$$;

-- Make messages ready again, in their queue or in another.
create or replace function redrive(s names, target text, before messages[], keys text[], moved jsonb, now bigint) returns void
language plpgsql as $$
declare
  t names;
  ids text[] := array(select m.id from unnest(before) as m);
  stays boolean := target = s.name;
  of_lanes text[];
  ranks bigint[];
begin
  perform create_queue(target, now);
  t := settings_of(target);
  with changed as (
    update messages as m
    set queue = target, state = 'ready', position = r.position, failures = 0, dead_at = null, ended_at = null, tied = null,
      lane = lane_of(t, m.extra),
      level = level_of(t, m.level, case when stays then m.rank end, m.priority, r.position, now),
      rank = rank_of(t, case when stays then m.rank end, m.priority, r.position, now)
    from jsonb_to_recordset(moved) as r (id text, position bigint)
    cross join lateral (select h.ctid from messages as h where h.queue = s.name and h.id = r.id limit 1) as h
    where m.ctid = h.ctid
    returning m.lane, m.rank
  )
  select array_agg(c.lane), array_agg(c.rank) into of_lanes, ranks from changed as c;
  perform free_slots(s, before, '{}', now);
  perform resize(target, cardinality(ids));
  if stays then
    perform arrive(t, keys, of_lanes, ranks, now);
  else
    perform come_in(t, keys, of_lanes, ranks, now, null);
  end if;
  perform append('queue:' || target, 'put', told(ids, keys, groups_of(target, ids)), now) where not stays;
end
$$;

-- Ready messages whose moment lies ahead; their rows were locked before.
create or replace function check_due(c jsonb, now bigint) returns jsonb
language sql stable as $$
  select jsonb_build_object('ids', coalesce(jsonb_agg(m.id order by i.o), '[]'), 'keys', coalesce(jsonb_agg(m.key order by i.o), '[]'))
  from (select i.id, min(i.o) as o from unnest(texts(c -> 'ids')) with ordinality as i (id, o) group by i.id) as i
  cross join lateral (select * from messages as m where m.queue = c ->> 'queue' and m.id = i.id limit 1) as m
  where m.state = 'ready' and m.position > now
$$;

create or replace function write_due(c jsonb, p jsonb, now bigint) returns text
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  ids text[] := texts(p -> 'ids');
  keys text[] := texts(p -> 'keys');
  s names;
begin
  if ids <> '{}' then
    s := settings_of(of_queue);
    update messages as m
    set position = now, level = level_of(s, m.level, m.rank, m.priority, now, now), rank = rank_of(s, m.rank, m.priority, now, now)
    from unnest(ids) as i (id)
    cross join lateral (select h.ctid from messages as h where h.queue = of_queue and h.id = i.id limit 1) as h
    where m.ctid = h.ctid;
    perform append('queue:' || of_queue, 'moved', told(ids, keys, groups_of(of_queue, ids) || ',"to":"due"'), now);
    perform arrive(
      s, keys, array(select m.lane from unnest(messages_of(of_queue, ids)) as m), array(select m.rank from unnest(messages_of(of_queue, ids)) as m), now
    );
  end if;
  return '{"ids":' || array_to_json(ids) || '}';
end
$$;
