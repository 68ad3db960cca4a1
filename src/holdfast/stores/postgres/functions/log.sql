-- The log: reading it without missing what commits late, and keeping it short.
--
-- A number is drawn before its transaction commits, so a reader may have passed n = 10 when n = 9 appears. Whoever reads a topic therefore
-- remembers how far (`horizon`) and what was visible then (`seen`). An event up to the horizon that was not visible is late: it gets a new
-- number, and so does every event that nobody has read yet, since one of them may be its effect. No writer waits for a reader, no reader for
-- a writer, and a transaction that stays open holds nobody up.
--
-- What `seen` does not show has an xid that ran then or one from its xmax on: both are found by events_xid, however long some other
-- transaction stays open.

create or replace function unseen_events(of_topic text, known topics, snapshot pg_snapshot) returns table (place tid, n bigint)
language sql stable as $$
  select e.ctid, e.n
  from events as e
  where e.topic = of_topic and e.xid >= pg_snapshot_xmax(known.seen) and pg_visible_in_snapshot(e.xid, snapshot)
  union all
  select e.place, e.n
  from pg_snapshot_xip(known.seen) as r (xid)
  cross join lateral (select e.ctid as place, e.n from events as e where e.topic = of_topic and e.xid = r.xid offset 0) as e
  where pg_visible_in_snapshot(r.xid, snapshot)
$$;

-- Readers of one topic take turns where there is something new, so that each one's snapshot shows more than the last one's.
create or replace function lock_topic(of_topic text) returns topics
language plpgsql as $$
declare
  known topics;
begin
  insert into topics (topic) values (of_topic) on conflict do nothing;
  select * into known from topics where topic = of_topic for update;
  return known;
end
$$;

-- Give every event of the topic that the snapshot shows its final number; answer the horizon, which is `at_least` this.
create or replace function advance_horizon(known topics, snapshot pg_snapshot, at_least bigint) returns bigint
language plpgsql as $$
declare
  newest bigint;
begin
  -- Those with n up to the horizon are many; by what was not seen, which are few, they are found only if n is no part of an index here.
  if known.horizon > 0 and exists (select from unseen_events(known.topic, known, snapshot) as u where u.n + 0 <= known.horizon) then
    update events as e
    set number = coalesce(e.number, e.n), n = f.n
    from (
      select u.place, nextval('numbers') as n
      from (select * from unseen_events(known.topic, known, snapshot) order by n) as u
    ) as f
    where e.ctid = f.place;
  end if;
  select e.n into newest
  from events as e
  where e.topic = known.topic and pg_visible_in_snapshot(e.xid, snapshot)
  order by e.n desc
  limit 1;
  newest := greatest(known.horizon, newest, at_least, store_floor());
  update topics
  set horizon = newest, seen = snapshot
  where topic = known.topic;
  return newest;
end
$$;

-- Its events are read when everything else has been: see read_parts.
create or replace function answer_changes(c jsonb, now bigint, used bigint) returns text
language sql immutable as $$
  select null::text
$$;

-- The events after a number: as many as there are by now, or, where this reader has taken its turn, as many as that snapshot shows.
create or replace function read_events(c jsonb, taken pg_snapshot, used bigint) returns text
language plpgsql as $$
declare
  of_topic text := c ->> 'topic';
  asked bigint := coalesce((c ->> 'after')::bigint, -1);
  most integer := coalesce((c ->> 'limit')::integer, 1000);
  newest bigint := latest();
  known topics;
  snapshot pg_snapshot;
  is_new boolean;
  numbers bigint[];
  sizes bigint[];
  count integer;
  page text;
  upto bigint;
begin
  select * into known from topics where topic = of_topic;
  known.topic := of_topic;
  known.horizon := coalesce(known.horizon, 0);
  known.seen := coalesce(known.seen, '1:1:');
  known.floor := greatest(known.floor, store_floor());
  if asked = -1 then
    asked := known.floor;
  elsif asked < known.floor or asked > newest or was_skipped(asked) then
    perform refuse('compacted', jsonb_build_array(of_topic, asked, known.floor, newest));
  end if;
  select coalesce(taken, pg_current_snapshot()), taken is null and exists (select from unseen_events(of_topic, known, pg_current_snapshot()))
  into snapshot, is_new;
  if is_new or asked > known.horizon then
    known := lock_topic(of_topic);
    snapshot := coalesce(taken, pg_current_snapshot());
    known.horizon := advance_horizon(known, snapshot, asked);
  end if;
  select coalesce(array_agg(e.n order by e.n), '{}'), coalesce(array_agg(e.size order by e.n), '{}') into numbers, sizes
  from (
    select n, octet_length(data)::bigint as size
    from events
    where topic = of_topic and n > asked and n <= known.horizon and pg_visible_in_snapshot(xid, snapshot)
    order by n
    limit most
  ) as e;
  count := fitting(sizes, used);
  upto := case when count = most or count < cardinality(numbers) then numbers[count] else greatest(known.horizon, asked) end;
  select string_agg('{"data":' || e.data || ',' || substr(
    json_build_object('index', e.n, 'topic', e.topic, 'event', e.event, 'at', e.at, 'number', coalesce(e.number, 0))::text, 2
  ), ',' order by e.n)
  into page
  from events as e
  where count > 0 and e.topic = of_topic and e.n > asked and e.n <= numbers[count] and pg_visible_in_snapshot(e.xid, snapshot);
  return '{"events":[' || coalesce(page, '') || '],"upto":' || upto || ',"latest":' || greatest(known.horizon, upto) || '}';
end
$$;

-- Take the turn of a reader of something else, who is to learn where the log stood then: see reading.sql. A topic without events needs none.
create or replace function begin_reading(of_topic text) returns topics
language plpgsql as $$
declare
  nothing topics;
begin
  if exists (select from events where topic = of_topic) or exists (select from topics where topic = of_topic) then
    return lock_topic(of_topic);
  end if;
  nothing.topic := of_topic;
  nothing.horizon := 0;
  nothing.seen := '1:1:';
  return nothing;
end
$$;

-- Drop the oldest events of a topic: those before `old`, and those beyond the newest `keep` that are older than `young`.
create or replace function prune_topic(of_topic text, keep bigint, old bigint, young bigint, most bigint) returns bigint
language plpgsql as $$
declare
  known topics;
  oldest bigint := (select at from events where topic = of_topic order by n limit 1);
  newer bigint;
  newest bigint;
  dropped bigint;
  upto bigint;
begin
  select * into known from topics where topic = of_topic;
  select count(*), max(n) into newer, newest from events where topic = of_topic and n > coalesce(known.counted, 0);
  if newer < 1000 and oldest >= old and (oldest >= young or coalesce(known.count, 0) + newer <= keep) then
    -- Nothing to drop, and little to count again the next time: nobody waits for a row that need not be written.
    return 0;
  end if;
  perform lock_topic(of_topic);
  select * into known from topics where topic = of_topic;
  select count(*), max(n) into newer, newest from events where topic = of_topic and n > known.counted;
  with gone as (
    delete from events as e
    using (
      select n, at, row_number() over (order by n) as place
      from events
      where topic = of_topic
      order by n
      limit most
    ) as o
    where e.topic = of_topic and e.n = o.n
      and (o.at < old or (o.at < young and o.place <= known.count + newer - keep))
    returning e.n
  )
  select count(*), max(n) into dropped, upto from gone;
  update topics
  set count = known.count + newer - dropped, counted = greatest(counted, newest),
    floor = greatest(floor, upto), horizon = greatest(horizon, upto)
  where topic = of_topic;
  return dropped;
end
$$;

-- Remove entries past their time; watchers learn of it. Those somebody is writing stay for the next time.
create or replace function expire_entries(now bigint, most bigint) returns bigint
language plpgsql as $$
declare
  stale record;
  count bigint := 0;
begin
  for stale in
    select dict, key
    from entries
    where expires_at <= now
    order by expires_at
    limit most
    for update skip locked
  loop
    update entries set value = null, expires_at = null where dict = stale.dict and key = stale.key and fence > 0;
    delete from entries where dict = stale.dict and key = stale.key and fence = 0;
    perform append('dict:' || stale.dict, 'expired', '{"key":' || to_json(stale.key) || '}', now);
    count := count + 1;
  end loop;
  return count;
end
$$;

-- Drop the oldest notes of answers that nobody asks for again.
create or replace function forget_answers(before bigint, most bigint) returns bigint
language plpgsql as $$
declare
  forgotten bigint;
begin
  delete from events
  where ctid = any (array(select ctid from events where topic = '' and n < before order by n limit most for update skip locked));
  get diagnostics forgotten = row_count;
  return forgotten;
end
$$;

-- The topics with events, in order, behind one: an index probe each.
create or replace function topics_after(behind text, most bigint) returns setof text
language sql as $$
  with recursive t (topic, o) as (
    (select e.topic, 1 from events as e where e.topic > behind order by e.topic limit 1)
    union all
    select (select e.topic from events as e where e.topic > t.topic order by e.topic limit 1), t.o + 1
    from t
    where t.topic is not null and t.o < most
  )
  select topic from t where topic is not null
$$;

create or replace function write_prune(c jsonb, now bigint) returns text
language plpgsql as $$
declare
  keep bigint := coalesce((c ->> 'keep')::bigint, {retained});
  old bigint := now - moment_in(coalesce((c ->> 'keep_s')::double precision, {retained_s}));
  young bigint := now - moment_in({retry_s}); -- somebody may still repeat a command
  most bigint := coalesce((c ->> 'limit')::bigint, 10000);
  of_topic text;
  dropped bigint := 0;
begin
  for of_topic in select topics_after('', 9223372036854775807) loop
    exit when dropped >= most;
    dropped := dropped + prune_topic(of_topic, keep, least(old, young), young, most - dropped);
  end loop;
  if coalesce((c ->> 'done')::boolean, true) then
    dropped := dropped + forget_done(now, most);
  end if;
  return dropped + forget_answers(young, most) + expire_entries(now, most);
end
$$;

-- Remove messages that were kept for long enough after they were done.
create or replace function forget_done(now bigint, most bigint) returns bigint
language plpgsql as $$
declare
  s names;
  removed bigint := 0;
begin
  for s in
    select *
    from names as n
    where n.kind = 'queue' and exists (select from messages as m where m.queue = n.name and m.ended_at is not null) -- messages_done
    order by n.name
  loop
    removed := removed + forget_done_of(s, now, most - removed);
  end loop;
  return removed;
end
$$;

-- The same for one queue; all of them, where nothing is to be kept any more.
create or replace function forget_done_of(s names, now bigint, most bigint) returns bigint
language plpgsql as $$
declare
  count bigint;
begin
  delete from messages
  where ctid = any (array(
    select ctid
    from messages
    where queue = s.name and ended_at is not null and ended_at <= now - moment_in(coalesce((s.policy ->> 'keep_done_s')::double precision, 0))
    order by ended_at, n
    limit most
    for update skip locked
  ));
  get diagnostics count = row_count;
  return count;
end
$$;

-- A little of it, as the stores do by themselves now and then: some topics in turn, one client at a time.
create or replace function prune_some() returns void
language plpgsql {settings} set enable_seqscan = on set enable_bitmapscan = on as $$
declare
  now bigint := clock_us();
  young bigint := now - moment_in({retry_s});
  behind text;
  of_topic text;
  last text := '';
begin
  insert into meta (name, value) values ('pruned', '') on conflict do nothing;
  select value into behind from meta where name = 'pruned' for update skip locked;
  if not found then
    return;
  end if;
  for of_topic in select topics_after(behind, 20) loop
    perform prune_topic(of_topic, {retained}, now - moment_in({retained_s}), young, 2000);
    last := of_topic;
  end loop;
  update meta set value = last where name = 'pruned';
  perform forget_answers(young, 1000), expire_entries(now, 1000), fold_shifts(10000);
end
$$;
