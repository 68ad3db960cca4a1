-- The commonest commands in their simple form: a few statements, each answered by an index. Whatever takes more goes on to execute().
--
-- One message at a time is the commonest of all, and has statements of its own: lists and their order cost as much as the rest. The plans
-- are those for full tables, as those of execute() are; jit is off because a scan that is ruled out counts as dear enough to compile. To
-- make and undo these settings costs a tenth of a put, so each function leaves all but that to another, which a session of ours that has the
-- settings calls by itself.

-- Put messages without keys and options into a queue that exists and has no bounds.
create or replace function put(command_id text, again boolean, of_queue text, ids text[], priorities integer[], vals text[]) returns text
language plpgsql set search_path from current set plan_cache_mode = force_generic_plan set jit = off
  set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return put_in_session(command_id, again, of_queue, ids, priorities, vals);
end
$$;

create or replace function put_in_session(
  command_id text, again boolean, of_queue text, ids text[], priorities integer[], vals text[]
) returns text
language plpgsql as $$
declare
  shared text := pg_advisory_xact_lock_shared(object_lock('queue', of_queue)); -- an assignment costs less than a statement
  now bigint := clock_us();
  added text[];
  created boolean[];
  facts text;
  answer text;
  is_awaited boolean;
begin
  if not again and cardinality(ids) = 1 then
    insert into messages (queue, id, priority, position, created_at, value)
    select of_queue, ids[1], coalesce(priorities[1], 0), now, now, vals[1]
    from names as s
    where s.kind = 'queue' and s.name = of_queue and s.maxsize is null
    on conflict do nothing;
    added := case when found then ids end;
  elsif not again then
    with new as (
      insert into messages (queue, id, priority, position, created_at, value)
      select of_queue, i.id, coalesce(i.priority, 0), now, now, i.value
      from names as s, unnest(ids, priorities, vals) as i (id, priority, value)
      where s.kind = 'queue' and s.name = of_queue and s.maxsize is null
      on conflict do nothing
      returning id
    )
    select array_agg(id) into added from new;
  end if;
  if added is null then
    return execute(jsonb_build_object('type', 'Put', 'id', command_id, 'queue', of_queue, 'items', (
      select jsonb_agg(jsonb_build_object('id', i.id, 'priority', coalesce(i.priority, 0), 'value', i.o) order by i.o)
      from unnest(ids, priorities) with ordinality as i (id, priority, o)
    )), vals);
  end if;
  if cardinality(added) = cardinality(ids) then
    facts := '{"ids":' || array_to_json(ids);
    answer := facts || ',"created":[true' || repeat(',true', cardinality(ids) - 1) || ']}';
  else
    created := firsts_among(ids, added);
    facts := '{"ids":' || array_to_json(array(select i.id from unnest(ids, created) with ordinality as i (id, is_new, o) where i.is_new order by i.o));
    answer := put_answer(ids, created);
  end if;
  -- Who waits is looked at only now that the queue is shared: see is_settled.
  insert into events (n, at, topic, event, data, command)
  values (nextval('numbers'), now, 'queue:' || of_queue, 'put', facts || '}', nullif(command_id, ''))
  returning exists (
    select from listeners as l where l.topic in ('queue:' || of_queue, 'watch:queue:' || of_queue) and l.until > clock_timestamp()
  ) into is_awaited;
  perform keep_moment(now);
  if is_awaited then
    perform wake_queue(of_queue, cardinality(added));
  end if;
  return answer;
end
$$;

-- Which of the ids are among those found, each the first time it is named: what a put added, what a settle ended.
create or replace function firsts_among(ids text[], found_ids text[]) returns boolean[]
language plpgsql immutable as $$
begin
  return array(
    select i.id = any (found_ids) and row_number() over (partition by i.id order by i.o) = 1
    from unnest(ids) with ordinality as i (id, o)
    order by i.o
  );
end
$$;

create or replace function put_answer(ids text[], created boolean[]) returns text
language sql immutable as $$
  select '{"ids":' || array_to_json(ids) || ',"created":' || array_to_json(created) || '}'
$$;

-- Hint to those who wait for messages and those who watch, with one look at who does.
create or replace function wake_queue(queue text, count bigint) returns void
language plpgsql as $$
begin
  perform pg_notify('holdfast_' || md5(current_schema()), count || ':' || topic)
  from listeners
  where topic in ('queue:' || queue, 'watch:queue:' || queue) and until > clock_timestamp();
end
$$;

-- Lease, or with `takes` remove, the first in line, while all of those are due and no lease has ended.
create or replace function claim(
  command_id text, again boolean, of_queue text, of_holder text, lease_s double precision, most integer, takes boolean, expiry text,
  budget integer, grave text
) returns text
language plpgsql set search_path from current set plan_cache_mode = force_generic_plan set jit = off
  set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return claim_in_session(command_id, again, of_queue, of_holder, lease_s, most, takes, expiry, budget, grave);
end
$$;

create or replace function claim_in_session(
  command_id text, again boolean, of_queue text, of_holder text, lease_s double precision, most integer, takes boolean, expiry text,
  budget integer, grave text
) returns text
language plpgsql as $$
declare
  shared text; -- an assignment costs less than a statement
  now bigint;
  is_plain boolean;
  is_watched boolean;
  ids text[];
  keys text[];
  number bigint;
  answer text;
begin
  shared := pg_advisory_xact_lock_shared(object_lock('queue', of_queue));
  now := clock_us();
  -- Who watches is looked at only now that the queue is shared: see is_settled.
  select
    s.maxsize is null and not s.paused and not again
      and not exists (select from messages where queue = of_queue and state = 'leased' and until <= now)
      and not exists (
        select from messages where queue = of_queue and state = 'ready' and start_by is not null and attempts = 0 and start_by <= now
      ),
    exists (select from listeners as l where l.topic = 'watch:queue:' || of_queue and l.until > clock_timestamp())
  into is_plain, is_watched
  from names as s
  where s.kind = 'queue' and s.name = of_queue;
  -- Where one of the first in line is not due, others behind it may be: that takes a walk over the priorities. Where they are more than one
  -- answer brings, it takes a plan.
  if is_plain and most = 1 then
    -- The number is drawn and the lease begins once the row is won: what is set is worked out after what is looked for, and begins and ends
    -- by one look at the clock. Another's lease may have ended since `now`.
    update messages as m
    set
      state = 'leased', attempts = m.attempts + 1, holder = of_holder, token = nextval('numbers'),
      expired_to = expiry, (since, until) = (select t.won_at, end_of(t.won_at, lease_s) from (select clock_us() as won_at offset 0) as t)
    where m.ctid = (
      select h.ctid
      from (
        select f.ctid, f.position
        from messages as f
        where f.queue = of_queue and f.state = 'ready'
        order by f.priority desc, f.position, f.n
        limit 1
        for update skip locked
      ) as h
      where h.position <= now
    )
    returning m.token, m.since, array[m.id], array[m.key], message_json(m) into number, now, ids, keys, answer;
  elsif is_plain then
    with heads as materialized (
      select f.ctid as place, f.position, message_bytes(f.value, f.metadata, f.last_error, f.history) as size
      from messages as f
      where f.queue = of_queue and f.state = 'ready'
      order by f.priority desc, f.position, f.n
      limit most
      for update skip locked
    ),
    -- All rows are won: a later claim of any of them draws a larger number, and begins later.
    won as materialized (
      select w.number, w.at, concat(
        '{"queue":', to_json(of_queue), ',"state":"leased","holder":', to_json(of_holder), ',"token":', w.number,
        ',"since":', w.at, ',"until":', end_of(w.at, lease_s), ',"expired_to":"', expiry, '"'
      ) as shared
      from (select nextval('numbers') as number, clock_us() as at from heads having bool_and(position <= now) and sum(size) <= answer_bytes()) as w
    ),
    leased as (
      update messages as m
      set
        state = 'leased', attempts = m.attempts + 1, holder = of_holder, token = w.number,
        since = w.at, until = end_of(w.at, lease_s), expired_to = expiry
      from won as w
      where m.ctid = any (array(select place from heads))
      returning w.number, w.at, m.priority, m.position, m.n, m.id, m.key, w.shared || message_facts(m) as told
    )
    select min(l.number), min(l.at), array_agg(l.id), array_agg(l.key), string_agg(l.told, ',') into number, now, ids, keys, answer
    from (select * from leased order by priority desc, position, n) as l;
  end if;
  if ids is null then
    return execute(jsonb_strip_nulls(jsonb_build_object(
      'type', 'Claim', 'id', command_id, 'queue', of_queue, 'holder', of_holder, 'lease_s', lease_s, 'limit', most, 'take', takes,
      'expired_to', expiry, 'max_attempts', budget, 'dead_letter', grave
    )), '{}');
  end if;
  insert into events (n, at, topic, event, data, command)
  values (
    number, now, 'queue:' || of_queue, 'claimed', told(ids, keys, ',"holder":' || to_json(of_holder)),
    case when not takes then nullif(command_id, '') end
  );
  perform keep_moment(now);
  if is_watched then
    perform wake('watch:queue:' || of_queue, 1073741824);
  end if;
  if takes then
    perform remove(of_queue, ids), promote(of_queue, keys), remember(command_id, now, '[' || answer || ']');
  end if;
  return '{"messages":[' || answer || ']}';
end
$$;

-- Acknowledge claims of one queue.
create or replace function settle(command_id text, again boolean, of_queue text, ids text[], tokens bigint[]) returns text
language plpgsql set search_path from current set plan_cache_mode = force_generic_plan set jit = off
  set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return settle_in_session(command_id, again, of_queue, ids, tokens);
end
$$;

create or replace function settle_in_session(command_id text, again boolean, of_queue text, ids text[], tokens bigint[]) returns text
language plpgsql as $$
declare
  shared text := pg_advisory_xact_lock_shared(object_lock('queue', of_queue));
  now bigint := clock_us();
  are_of_one_claim boolean := tokens[1] = all (tokens);
  done_ids text[];
  done_keys text[];
  are_all boolean;
  have_keys boolean;
begin
  if again or (not are_of_one_claim and (select count(distinct id) from unnest(ids) as id) < cardinality(ids)) then
    return execute(jsonb_build_object('type', 'Settle', 'id', command_id, 'receipts', (
      select jsonb_agg(jsonb_build_array(of_queue, r.id, r.token) order by r.o) from unnest(ids, tokens) with ordinality as r (id, token, o)
    )), '{}');
  end if;
  if cardinality(ids) = 1 then
    delete from messages as m
    where m.queue = of_queue and m.id = ids[1] and is_held(m.state, m.token, m.until, tokens[1], now)
    returning array[m.id], array[m.key] into done_ids, done_keys;
  elsif are_of_one_claim then
    -- A row that somebody changes meanwhile may be left for the next statement.
    with gone as (
      delete from messages as m
      where is_held(m.state, m.token, m.until, tokens[1], now) and m.ctid = any (array(
        select h.ctid
        from unnest(ids) as r (id)
        cross join lateral (select m.ctid from messages as m where m.queue = of_queue and m.id = r.id limit 1) as h
      ))
      returning m.id, m.key
    )
    select array_agg(id), array_agg(key) into done_ids, done_keys from gone;
  end if;
  if cardinality(ids) > 1 and (done_ids is null or cardinality(done_ids) < cardinality(ids)) then
    -- What changed while we waited for its row is seen only by a statement that begins afterwards.
    perform
    from unnest(ids) as r (id)
    cross join lateral (select from messages as m where m.queue = of_queue and m.id = r.id limit 1 for update) as h;
    with gone as (
      delete from messages as m
      where m.ctid = any (array(
        select h.ctid
        from unnest(ids, tokens) as r (id, token)
        cross join lateral (
          select m.ctid, m.token, m.state, m.until from messages as m where m.queue = of_queue and m.id = r.id limit 1
        ) as h
        where is_held(h.state, h.token, h.until, r.token, now)
      ))
      returning m.id, m.key
    )
    select array_cat(done_ids, array_agg(id)), array_cat(done_keys, array_agg(key)) into done_ids, done_keys from gone;
  end if;
  if done_ids is null then
    return remember(command_id, now, '{"held":' || array_to_json(array_fill(false, array[cardinality(ids)])) || '}');
  end if;
  are_all := cardinality(done_ids) = cardinality(ids);
  have_keys := array_remove(done_keys, null) <> '{}';
  insert into events (n, at, topic, event, data, command)
  values (
    nextval('numbers'), now, 'queue:' || of_queue, 'settled',
    case when are_all and not have_keys then '{"ids":' || array_to_json(ids) || ',"to":"done"}' else told_done(ids, done_ids, done_keys) end,
    nullif(command_id, '')
  );
  perform keep_moment(now);
  if exists (select from listeners as l where l.topic = 'watch:queue:' || of_queue and l.until > clock_timestamp()) then
    perform wake('watch:queue:' || of_queue, 1073741824);
  end if;
  if have_keys then
    perform promote(of_queue, done_keys);
  end if;
  if are_all then
    return '{"held":[true' || repeat(',true', cardinality(ids) - 1) || ']}';
  end if;
  return '{"held":' || array_to_json(firsts_among(ids, done_ids)) || '}';
end
$$;

-- Whether a claim still holds its message. So written that no index on the state answers it: the row is found by its id, among few or many.
create or replace function is_held(state state, token bigint, until bigint, claimed bigint, now bigint) returns boolean
language sql immutable as $$
  select case when state = 'leased' and token = claimed then until > now else false end
$$;

-- In the order asked. The planner takes lists for short and would compare each with each.
create or replace function told_done(ids text[], done_ids text[], done_keys text[]) returns text
language plpgsql stable set enable_nestloop = off set enable_hashjoin = on as $$
begin
  return (
    select told(array_agg(d.id order by i.o), array_agg(d.key order by i.o), ',"to":"done"')
    from (select a.id, min(a.o) as o from unnest(ids) with ordinality as a (id, o) group by a.id) as i
    join unnest(done_ids, done_keys) as d (id, key) on d.id = i.id
  );
end
$$;

-- The id of a command stands in the event that it wrote, from which its answer is told again. What wrote none, or more than the event says,
-- leaves a note among the events of no topic, in order of time: the counter stays as it is. Either way a second of the same id is undone
-- (23505), and asked for again.
create or replace function remember(command_id text, now bigint, note text) returns text
language plpgsql as $$
begin
  if command_id <> '' then
    insert into events (n, at, topic, event, data, command) values (now, now, '', 'answered', note, command_id);
  end if;
  return note;
end
$$;

-- The note of a command that was applied before; null where it was not.
create or replace function noted(c jsonb, command_id text) returns text
language plpgsql as $$
declare
  wrote events;
  told_ids text[];
  ids text[];
begin
  if c ->> 'type' = 'Seal' then
    -- The events have another name since.
    return (select 'null' from meta where name = 'moved' and value = c ->> 'to');
  end if;
  select * into wrote from events where command = command_id;
  if wrote.topic is null or wrote.topic = '' then
    return wrote.data;
  end if;
  told_ids := texts(wrote.data::jsonb -> 'ids');
  case wrote.event
    when 'put' then
      ids := array(select i ->> 'id' from jsonb_array_elements(c -> 'items') as i);
      return put_answer(ids, firsts_among(ids, told_ids));
    when 'claimed' then
      return json_build_array(to_json(told_ids), coalesce(wrote.number, wrote.n))::text;
    else
      ids := array(select r ->> 1 from jsonb_array_elements(c -> 'receipts') as r);
      return '{"held":' || array_to_json(firsts_among(ids, told_ids)) || '}';
  end case;
end
$$;
