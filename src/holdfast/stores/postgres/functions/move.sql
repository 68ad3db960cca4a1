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
      join messages as m on m.queue = of_queue and m.id = i.id
      where not (m.state = 'leased' and m.until > now)
      order by i.o
    );
  else
    found_ids := array(
      select m.id
      from browse_state(of_queue, coalesce(c ->> 'state', 'dead'), c -> 'which', null, coalesce((c ->> 'limit')::integer, 1000), now)
        with ordinality as b (id, o)
      join messages as m on m.queue = of_queue and m.id = b.id
      where not (m.state = 'leased' and m.until > now)
      order by b.o
    );
    -- Whoever changed one of them since has it; the rest is ours from here on.
    found_ids := array(
      select l.id
      from (select m.id from messages as m where m.queue = of_queue and m.id = any (found_ids) for update skip locked) as l
      join unnest(found_ids) with ordinality as f (id, o) on f.id = l.id
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
    join messages as m on m.queue = of_queue and m.id = f.id and m.state in ('ready', 'leased')
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
  message record;
  living jsonb;
  copies jsonb;
  moved jsonb := '[]';
  ids text[] := '{}';
  outcome text;
  delay bigint := moment_in(coalesce((c ->> 'delay_s')::double precision, 0));
  spacing bigint := moment_in(coalesce((c ->> 'spacing_s')::double precision, 0));
begin
  select
    coalesce(jsonb_object_agg(m.key, m.id) filter (where m.state <> 'buffered'), '{}'),
    coalesce(jsonb_object_agg(m.key, m.id) filter (where m.state = 'buffered'), '{}')
  into living, copies
  from messages as m
  where m.queue = target and m.state <> 'dead'
    and m.key = any (array(select k.key from messages as k where k.queue = of_queue and k.id = any (found_ids) and k.key is not null));
  for message in
    select m.id, m.key
    from unnest(found_ids) with ordinality as f (id, o)
    join messages as m on m.queue = of_queue and m.id = f.id
    where m.state <> 'buffered'
      and (target = of_queue or not exists (select from messages as taken where taken.queue = target and taken.id = m.id))
    order by f.o
  loop
    if message.key is null then
      outcome := 'ready';
    elsif coalesce(living ->> message.key, message.id) = message.id then
      living := living || jsonb_build_object(message.key, message.id);
      outcome := 'ready';
    elsif copies ? message.key then
      continue;
    else
      copies := copies || jsonb_build_object(message.key, message.id);
      outcome := 'buffered';
    end if;
    moved := moved || jsonb_build_object('id', message.id, 'state', outcome, 'position', now + delay + spacing * jsonb_array_length(moved));
    ids := ids || message.id;
  end loop;
  return jsonb_build_object('ids', ids, 'moved', moved);
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
  join messages as m on m.queue = of_queue and m.id = i.id;
  perform append('queue:' || of_queue, 'moved', told(ids, keys, ',"to":' || to_json(c ->> 'to')), now);
  perform resize(of_queue, -was_ready);
  if c ->> 'to' = 'gone' then
    delete from messages where queue = of_queue and id = any (ids);
    perform promote(of_queue, keys);
  elsif c ->> 'to' = 'ready' then
    perform create_queue(target, now);
    with changed as (
      update messages as m
      set queue = target, state = r.state, position = r.position, failures = 0, dead_at = null
      from jsonb_to_recordset(p -> 'moved') as r (id text, state state, position bigint)
      where m.queue = of_queue and m.id = r.id
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
