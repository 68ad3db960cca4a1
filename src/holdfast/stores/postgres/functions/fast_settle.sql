-- Settle claims of one queue: a few statements, each answered by an index. Whatever takes more goes on to execute().

-- Acknowledge claims of one queue on different messages.
create or replace function fast_settle(command_id text, again boolean, of_queue text, ids text[], tokens bigint[]) returns text
language plpgsql {fast} as $$
declare
  shared text := pg_advisory_xact_lock_shared(object_lock('queue', of_queue));
  now bigint := clock_us();
  done_ids text[];
  done_keys text[];
  done_groups text[];
  of_lanes text[]; -- those of which a slot is given back
  number bigint; is_watched boolean;
begin
  if again then
    return settle_fully('{"type":"Settle"}', command_id, of_queue, ids, tokens);
  elsif cardinality(ids) = 1 then
    delete from messages as m
    where m.queue = of_queue and m.id = ids[1] and is_held(m.state, m.token, m.until, tokens[1], now) and (m.tied & 6 > 0) is not true
    returning array[m.id], array[m.key], array[m.extra ->> 'group'], case when m.tied & 1 > 0 then array[m.lane] end
    into done_ids, done_keys, done_groups, of_lanes;
  else
    select r.done_ids, r.done_keys, r.done_groups, r.of_lanes into done_ids, done_keys, done_groups, of_lanes
    from remove_held(of_queue, ids, tokens, now) as r;
  end if;
  if done_ids is null or cardinality(done_ids) < cardinality(ids) then
    insert into shifts (queue, leased) values (of_queue, -coalesce(cardinality(done_ids), 0));
    return settle_rest(command_id, of_queue, ids, tokens, done_ids, done_keys, done_groups, of_lanes, now);
  end if;
  with counted as (insert into shifts (queue, leased) values (of_queue, -cardinality(ids)))
  insert into events (n, at, topic, event, data, command)
  values (
    nextval('numbers'), now, 'queue:' || of_queue, 'settled',
    case when array_remove(done_keys || done_groups, null) <> '{}' then told_done(ids, done_ids, done_keys, done_groups)
      else '{"ids":' || array_to_json(ids) || ',"to":"done"}' end, nullif(command_id, '')
  )
  returning n, exists (select from listeners as l where l.topic = 'watch:queue:' || of_queue and l.until > clock_timestamp())
  into number, is_watched;
  now := case when is_new_moment(now) then keep_moment(now) else now end;
  if is_watched then
    perform wake('watch:queue:' || of_queue, {everyone});
  end if;
  if array_remove(done_keys, null) <> '{}' then
    perform go_on_behind(of_queue, done_keys, of_lanes, now, number);
  elsif of_lanes is not null then
    perform free_lanes(settings_of(of_queue), of_lanes, now, number);
  end if;
  return '{"held":[true' || repeat(',true', cardinality(ids) - 1) || ']}';
end
$$;

-- Acknowledge claims of which some are lost, or take more than a removal: those that this function was given as done are removed already.
create or replace function settle_rest(
  command_id text, of_queue text, ids text[], tokens bigint[], done_ids text[], done_keys text[], done_groups text[], of_lanes text[], now bigint
) returns text
language plpgsql as $$
declare
  is_tied boolean := exists (
    select
    from unnest(ids, tokens) as r (id, token)
    cross join lateral (select * from messages as m where m.queue = of_queue and m.id = r.id limit 1) as m
    where is_held(m.state, m.token, m.until, r.token, now)
  );
  held boolean[] := firsts_among(ids, coalesce(done_ids, '{}'));
  others jsonb;
begin
  if is_tied and done_ids is null then
    return settle_fully('{"type":"Settle"}', command_id, of_queue, ids, tokens);
  elsif is_tied then
    others := settle_fully('{"type":"Settle"}', '', of_queue, ids, tokens)::jsonb -> 'held';
    held := array(select h.held or (others -> (h.o - 1)::integer)::boolean from unnest(held) with ordinality as h (held, o) order by h.o);
  end if;
  if done_ids is not null then
    perform append('queue:' || of_queue, 'settled', told_done(ids, done_ids, done_keys, done_groups), now);
    perform go_on_behind(of_queue, done_keys, of_lanes, now, null);
  end if;
  return remember(command_id, now, '{"held":' || array_to_json(held) || '}');
end
$$;

-- Let copies go on that wait behind settled messages, and give the slots of these back: their lanes are locked in one order.
create or replace function go_on_behind(of_queue text, done_keys text[], of_lanes text[], now bigint, number bigint) returns void
language plpgsql as $$
declare
  s names := settings_of(of_queue);
  copied text[];
  of_lane text;
  l lanes;
  made lanes[] := '{}';
begin
  if of_lanes is not null and s.rules & 1 > 0 then
    copied := array(
      select lane_of(s, m.extra) from messages as m where m.queue = of_queue and m.key = any (done_keys) and m.key is not null and m.state = 'buffered'
    );
  end if;
  if copied <> '{}' then
    for of_lane in select u.name from unnest(of_lanes || copied) as u (name) group by u.name order by u.name loop
      l := lock_lane(of_queue, of_lane);
      if l.turn = 0 and l.own is null then
        made := made || l;
      end if;
    end loop;
  end if;
  perform count_by('triggers'), promote(of_queue, done_keys, now), count_by('hand'), free_lanes(s, of_lanes, now, number), remove_idle(made);
end
$$;

-- Give slots of lanes back.
create or replace function free_lanes(s names, of_lanes text[], now bigint, number bigint) returns void
language plpgsql as $$
declare
  woken integer;
begin
  if of_lanes is null then
    return;
  elsif cardinality(of_lanes) = 1 and s.rules & 1 > 0 then
    woken := coalesce(free_slot(s, of_lanes[1], now), refresh_lane(s, of_lanes[1], 0, 1, now, coalesce(number, latest())));
    if woken > 0 then
      perform wake('queue:' || s.name, woken);
    end if;
  elsif s.policy ->> 'group_rate' is null and s.rules & 1 > 0 then
    perform free_slots_each(s, of_lanes, now, number);
  else
    perform refresh_lanes(s, of_lanes, null, array_fill(1, array[cardinality(of_lanes)]), now, number);
  end if;
end
$$;

-- Give one slot back of a lane that has another message in line, no settings of its own and no rate; null where that is not so. A claim may
-- take that message meanwhile: then the lane is open and empty, and the next claim sees to it.
create or replace function free_slot(s names, of_lane text, now bigint) returns integer
language plpgsql as $$
declare
  head bigint := first_in_lane(s.name, of_lane, now);
  most integer := case when s.rules & 2 > 0 then 1 else (s.policy ->> 'group_limit')::integer end;
  is_due boolean := head <= now or s.rules & 2 = 0;
  now_live integer;
  was_open boolean;
begin
  if head is null or s.policy ->> 'group_rate' is not null then
    return null;
  end if;
  update lanes
  set live = greatest(0, live - 1), is_open = is_due and (greatest(0, live - 1) < most) is not false, wakes = case when not is_due then head end
  where queue = s.name and name = of_lane and own is null and throttled_until = 0
  returning live, (select before.is_open from lanes as before where before.queue = s.name and before.name = of_lane) into now_live, was_open;
  return case when found then case when now_live = most - 1 or not was_open or not is_due then 1 else 0 end end;
end
$$;

-- Remove those messages that their claims still hold, where that is all there is to do; for each that held a slot of its lane, the lane.
create or replace function remove_held(
  of_queue text, ids text[], tokens bigint[], now bigint, out done_ids text[], out done_keys text[], out done_groups text[], out of_lanes text[]
)
language plpgsql as $$
declare
  more record;
begin
  if tokens[1] = all (tokens) then
    -- A row that somebody changes meanwhile may be left for the next statement.
    with gone as (
      delete from messages as m
      where is_held(m.state, m.token, m.until, tokens[1], now) and (m.tied & 6 > 0) is not true and m.ctid = any (array(
        select h.ctid
        from unnest(ids) as r (id)
        cross join lateral (select m.ctid from messages as m where m.queue = of_queue and m.id = r.id limit 1) as h
      ))
      returning m.id, m.key, m.extra ->> 'group' as of_group, case when m.tied & 1 > 0 then m.lane end as lane
    )
    select array_agg(id), array_agg(key), array_agg(of_group), array_agg(lane) filter (where lane is not null)
    into done_ids, done_keys, done_groups, of_lanes
    from gone;
  end if;
  if done_ids is null or cardinality(done_ids) < cardinality(ids) then
    -- What changed while we waited for its row is seen only by a statement that begins afterwards.
    perform lock_rows(of_queue, ids);
    with gone as (
      delete from messages as m
      where m.ctid = any (array(
        select h.ctid
        from unnest(ids, tokens) as r (id, token)
        cross join lateral (
          select m.ctid, m.token, m.state, m.until, m.tied from messages as m where m.queue = of_queue and m.id = r.id limit 1
        ) as h
        where is_held(h.state, h.token, h.until, r.token, now) and (h.tied & 6 > 0) is not true
      ))
      returning m.id, m.key, m.extra ->> 'group' as of_group, case when m.tied & 1 > 0 then m.lane end as lane
    )
    select array_agg(id) as ids, array_agg(key) as keys, array_agg(of_group) as groups, array_agg(lane) filter (where lane is not null) as lanes
    into more from gone;
    done_ids := done_ids || more.ids; done_keys := done_keys || more.keys; done_groups := done_groups || more.groups; of_lanes := of_lanes || more.lanes;
  end if;
end
$$;

create or replace function lock_rows(of_queue text, ids text[]) returns void
language plpgsql as $$
begin
  perform
  from unnest(ids) as r (id)
  cross join lateral (select from messages as m where m.queue = of_queue and m.id = r.id limit 1 for update) as h;
end
$$;

-- Release or fail claims of one queue on different messages without keys, while all are held and none has spent its budget. `command` is
-- all of the command but its id and receipts.
create or replace function fast_return(
  command_id text, again boolean, of_queue text, ids text[], tokens bigint[], command jsonb
) returns text
language plpgsql {fast} as $$
declare
  shared text := pg_advisory_xact_lock_shared(object_lock('queue', of_queue));
  now bigint;
  are_all boolean := false;
begin
  if not again then
    perform lock_rows(of_queue, ids) where cardinality(ids) > 1;
    now := clock_us();
    are_all := return_held(of_queue, ids, tokens, command, now);
  end if;
  if not are_all then
    return settle_fully(command, command_id, of_queue, ids, tokens);
  end if;
  insert into shifts (queue, ready, leased) values (of_queue, cardinality(ids), -cardinality(ids));
  insert into events (n, at, topic, event, data, command)
  values (
    nextval('numbers'), now, 'queue:' || of_queue, 'settled',
    '{"ids":' || array_to_json(ids) || ',"to":"ready"' || case when (command ->> 'counts')::boolean then ',"failed":true}' else '}' end,
    nullif(command_id, '')
  );
  perform keep_moment(now), wake_queue(of_queue, cardinality(ids));
  return '{"held":[true' || repeat(',true', cardinality(ids) - 1) || ']}';
end
$$;

-- Whether all messages are back in line, none if not. Several rows are locked before; a single one that somebody changes is left as it is.
create or replace function return_held(of_queue text, ids text[], tokens bigint[], command jsonb, now bigint) returns boolean
language plpgsql as $$
declare
  counts boolean := coalesce((command ->> 'counts')::boolean, false);
  budget integer := command ->> 'max_attempts';
  error text := command ->> 'error';
  goes_to text := coalesce(command ->> 'return_to', 'back');
  delay bigint := moment_in(coalesce((command ->> 'delay_s')::double precision, 0));
begin
  with held as materialized (
    select h.ctid as place
    from names as s, unnest(ids, tokens) as r (id, token)
    cross join lateral (
      select m.ctid, m.token, m.state, m.until, m.key, m.failures, m.max_attempts, m.tied
      from messages as m
      where m.queue = of_queue and m.id = r.id
      limit 1
    ) as h
    where s.kind = 'queue' and s.name = of_queue and s.maxsize is null and s.policy is null and h.tied is null
      and is_held(h.state, h.token, h.until, r.token, now) and h.key is null
      and (counts and h.failures + 1 >= coalesce(h.max_attempts, budget)) is not true
  )
  update messages as m
  set
    state = 'ready', failures = m.failures + counts::integer, endings = m.endings + 1, last_error = coalesce(error, m.last_error),
    position = position_in(
      goes_to, m.position, case goes_to when 'front' then head_position(of_queue, m.priority, now) end, now, delay, now
    ),
    history = history_with(
      m.history, m.holder, m.token, m.since, now, case when counts then 'failed' else 'released' end, error
    )
  where m.ctid = any (array(select place from held)) and (select count(*) from held) = cardinality(ids);
  return found;
end
$$;

-- Settle by the full rules.
create or replace function settle_fully(command jsonb, command_id text, of_queue text, ids text[], tokens bigint[]) returns text
language plpgsql as $$
begin
  return execute(command || jsonb_build_object('id', command_id, 'receipts', (
    select jsonb_agg(jsonb_build_array(of_queue, r.id, r.token) order by r.o) from unnest(ids, tokens) with ordinality as r (id, token, o)
  )), '{}', only_object('queue', of_queue));
end
$$;

-- Whether a claim still holds its message. So written that no index on the state answers it: the row is found by its id, among few or many.
create or replace function is_held(state state, token bigint, until bigint, claimed bigint, now bigint) returns boolean
language sql immutable as $$
  select case when state = 'leased' and token = claimed then until > now else false end
$$;

-- In the order asked. The planner takes lists for short and would compare each with each.
create or replace function told_done(ids text[], done_ids text[], done_keys text[], done_groups text[]) returns text
language plpgsql stable as $$
begin
  if cardinality(ids) = 1 then
    return told(ids, done_keys, told_groups(done_groups) || ',"to":"done"');
  end if;
  return told_each(ids, done_ids, done_keys, done_groups);
end
$$;

create or replace function told_each(ids text[], done_ids text[], done_keys text[], done_groups text[]) returns text
language plpgsql stable set enable_nestloop = off set enable_hashjoin = on as $$
begin
  return (
    select told(array_agg(d.id order by i.o), array_agg(d.key order by i.o), told_groups(array_agg(d.of_group order by i.o)) || ',"to":"done"')
    from unnest(ids) with ordinality as i (id, o)
    join unnest(done_ids, done_keys, done_groups) as d (id, key, of_group) on d.id = i.id
  );
end
$$;
