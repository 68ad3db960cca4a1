-- Claim: what others let expire comes back in the same step, and the first in line are leased or taken.

-- The fate of messages of one queue whose claims end; `base` is the moment that the back of the line means, null for each lease's end. A null
-- `delay` is what the queue says of failures.
create or replace function fates_of(
  of_queue text, ids text[], counts boolean, buries boolean, max_attempts integer, dead_letter text,
  return_to text, base bigint, delay bigint, now bigint
) returns fate[]
language plpgsql as $$
declare
  s names := settings_of(of_queue);
begin
  return (
    with heads as materialized (
      select p.priority, head_position(of_queue, p.priority, now) as head
      from (
      select distinct m.priority
      from unnest(ids) as i (id)
      cross join lateral (select m.priority from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
    ) as p
    )
    select coalesce(array_agg(row(
      m.id, m.key, f.fate,
      case when f.fate = 'back' then
        position_in(
          returned_to(s, coalesce(return_to, m.expired_to)), m.position, h.head, coalesce(base, m.until),
          coalesce(delay, delay_after(s.policy -> 'backoff', m.failures + 1)), now
        )
        -- Expired ones stand at the front in order of lease end, which is the order they come in.
        - case when return_to is null and m.expired_to = 'front' then i.behind else 0 end
      end,
      case when f.fate = 'moved' then b.place end
    )::fate order by i.o), '{}')
    from (
      select i.id, i.o, count(*) filter (where m.expired_to = 'front') over (partition by m.priority order by i.o desc) - 1 as behind
      from unnest(ids) with ordinality as i (id, o)
      cross join lateral (select m.priority, m.expired_to from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
    ) as i
    cross join lateral (select * from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
    join heads as h on h.priority = m.priority
    cross join lateral (select coalesce(nullif(m.dead_letter, ''), fates_of.dead_letter, s.policy ->> 'dead_letter') as place) as b
    cross join lateral (
      select case
        when buries or (counts and m.failures + 1 >= coalesce(m.max_attempts, fates_of.max_attempts, (s.policy ->> 'max_attempts')::integer))
          then case when b.place is null or b.place = of_queue then 'dead' else 'moved' end
        when m.key is not null and exists (
          select from messages as copy where copy.queue = of_queue and copy.key = m.key and copy.state = 'buffered'
        ) then 'gone'
        else 'back'
      end as fate
    ) as f
  );
end
$$;

-- Where dead letters of a step go: of settlements that bury, and of moves to the dead.
create or replace function graves_named(parts jsonb[]) returns text[]
language sql stable as $$
  select array(
    select coalesce(nullif(m.dead_letter, ''), p.c ->> 'dead_letter', s.policy ->> 'dead_letter')
    from unnest(parts) as p (c), jsonb_array_elements(p.c -> 'receipts') as r
    cross join lateral (
      select m.queue, m.dead_letter, m.failures, m.max_attempts from messages as m where m.queue = r ->> 0 and m.id = r ->> 1 limit 1
    ) as m
    join names as s on s.kind = 'queue' and s.name = m.queue
    where p.c ->> 'type' = 'Settle' and (
      p.c ->> 'to' = 'dead' or (p.c ->> 'counts')::boolean
        and m.failures + 1 >= coalesce(m.max_attempts, (p.c ->> 'max_attempts')::integer, (s.policy ->> 'max_attempts')::integer)
    )
    union
    select v.target from moves_named(parts) as v where not v.is_new
  )
$$;

-- What time has overtaken, the longest overdue first. Locked rows are somebody's work already, and stay.
create or replace function overdue(of_queue text, now bigint, most integer, out expired text[], out late text[])
language plpgsql as $$
begin
  with ended as materialized (
    select m.id, m.until as alarm, m.n, false as is_late
    from messages as m
    where m.queue = of_queue and m.state = 'leased' and m.until <= now
    order by m.until, m.n
    limit most
    for update skip locked
  ),
  missed as materialized (
    select m.id, m.start_by as alarm, m.n, true as is_late
    from messages as m
    where m.queue = of_queue and m.state = 'ready' and m.start_by is not null and m.attempts = 0 and m.start_by <= now
    order by m.start_by, m.n
    limit most
    for update skip locked
  ),
  longest as (
    select id, is_late, row_number() over (order by alarm, n) as o
    from (select * from ended union all select * from missed) as both_kinds
    order by o
    limit most
  )
  select coalesce(array_agg(id order by o) filter (where not is_late), '{}'), coalesce(array_agg(id order by o) filter (where is_late), '{}')
  into expired, late
  from longest;
end
$$;

-- Up to so many due messages in the order of messages_ready, walking the priorities in use from the top.
create or replace function heads(of_queue text, now bigint, most integer) returns text[]
language plpgsql as $$
declare
  found_ids text[] := '{}';
  level_ids text[];
  top integer;
begin
  select priority into top from messages where queue = of_queue and state = 'ready' order by priority desc limit 1;
  while top is not null and cardinality(found_ids) < most loop
    select array_agg(h.id order by h.position, h.n) into level_ids
    from (
      select m.id, m.position, m.n
      from messages as m
      where m.queue = of_queue and m.state = 'ready' and m.priority = top and m.position <= now
        and {in_time of m}
      order by m.position, m.n
      limit most - cardinality(found_ids)
      for update skip locked
    ) as h;
    found_ids := found_ids || coalesce(level_ids, '{}');
    select priority into top from messages where queue = of_queue and state = 'ready' and priority < top order by priority desc limit 1;
  end loop;
  return found_ids;
end
$$;

-- The first moment ahead at which time alone makes a message claimable.
create or replace function next_due(of_queue text, now bigint) returns bigint
language plpgsql as $$
declare
  due bigint;
  ahead bigint;
  top integer;
begin
  select until into due from messages where queue = of_queue and state = 'leased' and until > now order by until limit 1;
  select priority into top from messages where queue = of_queue and state = 'ready' order by priority desc limit 1;
  while top is not null loop
    select position into ahead
    from messages
    where queue = of_queue and state = 'ready' and priority = top and position > now
      and {in_time}
    order by position
    limit 1;
    due := least(due, ahead);
    select priority into top from messages where queue = of_queue and state = 'ready' and priority < top order by priority desc limit 1;
  end loop;
  return due;
end
$$;

create or replace function due_in_s(c jsonb, now bigint) returns double precision
language plpgsql as $$
declare
  due bigint;
begin
  if c ->> 'key' is null then
    due := next_due(c ->> 'queue', now);
  else
    select case m.state when 'leased' then m.until else m.position end into due
    from messages as m
    where m.queue = c ->> 'queue' and m.key = c ->> 'key' and m.key is not null and m.state in ('ready', 'leased');
  end if;
  return case when due < never() then seconds_in(greatest(0, due - now)) end;
end
$$;

-- The first in line, among them what this very step puts back into it.
create or replace function first_in_line(of_queue text, head_ids text[], fates fate[], most integer, now bigint) returns text[]
language plpgsql as $$
begin
  return array(
    select l.id
    from (
      select m.id, m.priority, m.position, m.n
      from unnest(head_ids) as i (id)
      cross join lateral (select * from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
      union all
      select m.id, m.priority, f.position, m.n
      from unnest(fates) as f
      cross join lateral (select * from messages as m where m.queue = of_queue and m.id = f.id limit 1) as m
      where f.fate = 'back' and f.position <= now
      union all
      select m.id, m.priority, m.position, m.n
      from unnest(fates) as f
      cross join lateral (select * from messages as m where m.queue = of_queue and m.key = f.key and m.state = 'buffered' limit 1) as m
      where f.fate <> 'back' and m.position <= now and not is_late(m, now)
    ) as l
    order by l.priority desc, l.position, l.n
    limit most
  );
end
$$;

create or replace function plan_claim(c jsonb, now bigint, used bigint) returns jsonb
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  of_key text := c ->> 'key';
  most integer := coalesce((c ->> 'limit')::integer, 1);
  settings names;
  expired text[] := '{}';
  late text[] := '{}';
  head_ids text[] := '{}';
  fates fate[];
  chosen text[];
  sizes bigint[];
  due_s double precision;
  is_cut boolean;
begin
  select * into settings from names where kind = 'queue' and name = of_queue;
  if is_ruled(settings) or settings.name is null or settings.paused then
    return case when is_ruled(settings) then '{"ruled":true}' else '{"chosen":[]}' end;
  end if;
  if of_key is null then
    select o.expired, o.late into expired, late from overdue(of_queue, now, most + {sweep}) as o;
    head_ids := heads(of_queue, now, most);
  else
    -- Its row was locked before.
    select
      coalesce(array_agg(m.id) filter (where m.state = 'leased' and m.until <= now), '{}'),
      coalesce(array_agg(m.id) filter (where m.state = 'ready' and is_late(m, now)), '{}'),
      coalesce(array_agg(m.id) filter (where m.state = 'ready' and m.position <= now and not is_late(m, now)), '{}')
    into expired, late, head_ids
    from messages as m
    where m.queue = of_queue and m.key = of_key and m.key is not null and m.state in ('ready', 'leased');
  end if;
  fates := fates_of(
    of_queue, expired, true, false, (c ->> 'max_attempts')::integer, c ->> 'dead_letter', null, null, 0, now
  );
  is_cut := cardinality(expired) + cardinality(late) >= most + {sweep};
  if expired || late <> '{}' and not lock_swept_soon(settings, fates, late, '{}', c ->> 'dead_letter') then
    expired := '{}'; late := '{}'; fates := '{}'; is_cut := true;
  end if;
  chosen := first_in_line(of_queue, head_ids, fates, most, now);
  -- No more than the answer brings: a message that is leased must be told of.
  sizes := array(
    select message_bytes(m.value, m.metadata, m.last_error, m.history)
    from unnest(chosen) with ordinality as i (id, o)
    cross join lateral (select * from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
    order by i.o
  );
  chosen := chosen[:fitting(sizes, used)];
  if chosen = '{}' then
    -- More ended than one claim looks after, and all it saw was buried or waits for others: ask again at once.
    due_s := case when is_cut then 0 else due_in_s(c, now) end;
  elsif fates <> '{}' then
    fates := without_next(of_queue, fates, chosen);
    expired := array(select f.id from unnest(fates) with ordinality as f order by f.ordinality);
  end if;
  return jsonb_build_object(
    'bytes', (select sum(s) from unnest(sizes[:cardinality(chosen)]) as s), 'chosen', chosen, 'expired', expired, 'late', late, 'fates', to_jsonb(fates), 'due_in_s', due_s
  );
end
$$;

-- Those that go to the front and are next in line are left to the next claims, as they are: put in line now, they would stand behind what
-- later claims collect and send to the front, too.
create or replace function without_next(of_queue text, fates fate[], chosen text[]) returns fate[]
language plpgsql as $$
declare
  least_chosen integer := (
    select min(m.priority)
    from unnest(chosen) as c (id)
    cross join lateral (select m.priority from messages as m where m.queue = of_queue and m.id = c.id limit 1) as m
  );
begin
  return array(
    select row(f.id, f.key, f.fate, f.position, f.place)::fate
    from unnest(fates) with ordinality as f (id, key, fate, position, place, o)
    cross join lateral (select m.priority, m.expired_to from messages as m where m.queue = of_queue and m.id = f.id limit 1) as m
    where f.fate <> 'back' or m.expired_to <> 'front' or m.priority < least_chosen or f.id = any (chosen)
    order by f.o
  );
end
$$;

create or replace function write_claim(c jsonb, p jsonb, now bigint, out answer text, out note text)
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  of_holder text := coalesce(c ->> 'holder', '');
  takes boolean := coalesce((c ->> 'take')::boolean, false);
  expiry text := coalesce(c ->> 'expired_to', 'place');
  -- The rows are won by now, and may have been another's between the check's reading of the clock and then.
  begins_at bigint := clock_us();
  ends_at bigint := end_of(begins_at, lease_of(settings_of(of_queue), c));
  chosen text[] := texts(p -> 'chosen');
  keys text[];
  number bigint;
begin
  perform write_sweep(
    of_queue, texts(p -> 'expired'), texts(p -> 'late'), array(select jsonb_populate_recordset(null::fate, p -> 'fates')), c ->> 'dead_letter', now
  )
  where p ? 'fates';
  if chosen = '{}' then
    answer := '{"messages":[],"due_in_s":' || coalesce(p ->> 'due_in_s', 'null') || '}';
    note := '[]';
    return;
  end if;
  keys := array(
    select m.key
    from unnest(chosen) with ordinality as i (id, o)
    cross join lateral (select * from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
    order by i.o
  );
  number := append('queue:' || of_queue, 'claimed', told(chosen, keys, groups_of(of_queue, chosen) || ',"holder":' || to_json(of_holder)), now);
  with leased as (
    update messages as m
    set state = 'leased', attempts = m.attempts + 1, holder = of_holder, token = number, since = begins_at, until = ends_at, expired_to = expiry,
      tied = case when m.extra ? 'group' then 8 end
    from unnest(chosen) with ordinality as i (id, o)
    cross join lateral (select h.ctid from messages as h where h.queue = of_queue and h.id = i.id limit 1) as h
    where m.ctid = h.ctid
    returning i.o, message_json(m) as told
  )
  select string_agg(told, ',' order by o) into answer from leased;
  if takes then
    perform remove(of_queue, chosen), promote(of_queue, keys, now);
  end if;
  perform resize(of_queue, -cardinality(chosen));
  -- Ids and the token are enough to read the messages again; only what was taken is gone and is kept.
  note := case when takes then '[' || answer || ']' else json_build_array(to_json(chosen), number)::text end;
  answer := '{"messages":[' || answer || ']}';
end
$$;
