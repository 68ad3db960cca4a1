-- Move: redrive, bury or remove what nobody holds.

create or replace function check_move(c jsonb, now bigint) returns jsonb
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  target text := coalesce(c ->> 'to_queue', of_queue);
  ending text := c ->> 'to';
  found_ids text[];
  redriven jsonb;
begin
  if c -> 'ids' is not null then
    -- Their rows were locked before.
    found_ids := array(
      select m.id
      from (select i.id, min(i.o) as o from unnest(texts(c -> 'ids')) with ordinality as i (id, o) group by i.id) as i
      cross join lateral (select * from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
      where not (m.state = 'leased' and m.until > now)
      order by i.o
    );
  else
    found_ids := array(
      select m.id
      from browse_state(of_queue, coalesce(c ->> 'state', 'dead'), c -> 'which', null, coalesce((c ->> 'limit')::integer, 1000), now)
        with ordinality as b (id, o)
      cross join lateral (select * from messages as m where m.queue = of_queue and m.id = b.id limit 1) as m
      where not (m.state = 'leased' and m.until > now)
      order by b.o
    );
    -- Whoever changed one of them since has it; the rest is ours from here on.
    found_ids := array(
      select f.id
      from unnest(found_ids) with ordinality as f (id, o)
      cross join lateral (select from messages as m where m.queue = of_queue and m.id = f.id limit 1 for update skip locked) as m
      order by f.o
    );
  end if;
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
    fates_of(of_queue, found_ids, false, true, null, null, 'place', now, 0, now)
  ));
end
$$;

-- Ready; behind a living message of its key, buffered; left alone where that place is taken too, or the id.
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
        -- By the indexes messages_key and messages_buffered.
        (select l.id from messages as l where l.queue = target and l.key = m.key and l.key is not null and l.state in ('ready', 'leased')) as living,
        -- Not `exists`, which may be answered by a list of them all.
        (select b.id from messages as b where b.queue = target and b.key = m.key and b.state = 'buffered') is not null as has_copy
      from unnest(found_ids) with ordinality as f (id, o)
      cross join lateral (select * from messages as m where m.queue = of_queue and m.id = f.id limit 1) as m
      where m.state <> 'buffered'
        and (target = of_queue or not exists (select from messages as taken where taken.queue = target and taken.id = m.id))
    ),
    ranked as (
      select f.*, count(*) filter (where f.id is distinct from f.living) over (partition by f.key order by f.o) as place
      from found as f
    ),
    placed as (
      select
        r.id,
        r.o,
        case
          when r.key is null or r.id = r.living or (r.living is null and r.place = 1) then 'ready'
          when not r.has_copy and r.place = 1 + (r.living is null)::integer then 'buffered'
        end as state
      from ranked as r
    ),
    moved as (
      select p.id, p.o, p.state, first + spacing * (row_number() over (order by p.o) - 1) as position
      from placed as p
      where p.state is not null
    )
    select jsonb_build_object(
      'ids', coalesce(jsonb_agg(m.id order by m.o), '[]'),
      'moved', coalesce(jsonb_agg(jsonb_build_object('id', m.id, 'state', m.state, 'position', m.position) order by m.o), '[]')
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
  keys text[];
  was_ready bigint;
  ready_keys text[];
  fates fate[];
begin
  if ids = '{}' then
    return '{"ids":[]}';
  end if;
  select array_agg(m.key order by i.o), count(*) filter (where m.state = 'ready') into keys, was_ready
  from unnest(ids) with ordinality as i (id, o)
  cross join lateral (select * from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m;
  perform append('queue:' || of_queue, 'moved', told(ids, keys, ',"to":' || to_json(c ->> 'to')), now);
  perform resize(of_queue, -was_ready);
  if c ->> 'to' = 'gone' then
    perform remove(of_queue, ids), promote(of_queue, keys);
  elsif c ->> 'to' = 'ready' then
    perform create_queue(target, now);
    with changed as (
      update messages as m
      set queue = target, state = r.state, position = r.position, failures = 0, dead_at = null
      from jsonb_to_recordset(p -> 'moved') as r (id text, state state, position bigint)
      cross join lateral (select h.ctid from messages as h where h.queue = of_queue and h.id = r.id limit 1) as h
      where m.ctid = h.ctid
      returning m.key, m.state
    )
    select array_agg(key) into ready_keys from changed where state = 'ready';
    perform resize(target, cardinality(ready_keys)), announce(target, ready_keys, cardinality(ready_keys)) where ready_keys is not null;
    perform append('queue:' || target, 'put', told(ids, keys), now) where target <> of_queue;
  else
    fates := array(select jsonb_populate_recordset(null::fate, p -> 'fates'));
    perform end_claims(of_queue, fates, false, 'buried', now, left(c ->> 'error', 4000), now);
    perform bury(of_queue, fates, false, left(c ->> 'error', 4000), now);
    perform pass_on(of_queue, fates);
  end if;
  return '{"ids":' || array_to_json(ids) || '}';
end
$$;
