-- What a claim makes of leases that ended and of messages that were not started in time.

create or replace function write_sweep(
  of_queue text, expired text[], late text[], fates fate[], grave text, now bigint, number bigint default null
) returns void
language plpgsql as $$
declare
  told_groups text;
  ended record;
begin
  if expired <> '{}' then
    told_groups := groups_of(of_queue, expired);
    ended := end_claims(of_queue, fates, true, 'expired', null, null, now);
    perform append('queue:' || of_queue, 'expired', told(
      expired, array(select f.key from unnest(fates) with ordinality as f order by f.ordinality), told_groups
    ), now);
    perform bury(of_queue, fates, true, null, now, true), pass_on(of_queue, fates, now, number);
    perform free_slots(settings_of(of_queue), ended.before, ended.after, now, number);
  end if;
  if late <> '{}' then
    perform end_late(settings_of(of_queue), late, grave, now, number);
  end if;
end
$$;

-- Messages that were not started in time: dropped, or buried where the queue says so.
create or replace function end_late(s names, late text[], grave text, now bigint, number bigint) returns void
language plpgsql as $$
declare
  keys text[] := keys_of(s.name, late);
  before messages[] := messages_of(s.name, late);
  fates fate[];
  ended record;
begin
  if s.policy ->> 'late_to' = 'dead' then
    fates := fates_of(s.name, late, false, true, null, grave, null, now, 0, now);
    perform append('queue:' || s.name, 'expired', told(late, keys, groups_of(s.name, late) || ',"started":false'), now);
    ended := end_claims(s.name, fates, false, 'late', now, null, now);
    perform resize(s.name, -cardinality(late)), bury(s.name, fates, false, null, now), pass_on(s.name, fates, now, number);
    perform free_slots(s, ended.before, '{}', now, number);
    return;
  end if;
  perform append('queue:' || s.name, 'expired', told(late, keys, groups_of(s.name, late) || ',"started":false'), now);
  perform remove(s.name, late), promote(s.name, keys, now, number);
  perform resize(s.name, -cardinality(late)), free_slots(s, before, '{}', now, number);
end
$$;

create or replace function messages_of(of_queue text, ids text[]) returns messages[]
language plpgsql stable as $$
begin
  return array(
    select m.message
    from unnest(ids) with ordinality as i (id, o)
    cross join lateral (select m as message from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
    order by i.o
  );
end
$$;

-- The lanes that a sweep will bring up to date: of what it ends or puts in line, of the copies behind that, and where dead letters go.
create or replace function lanes_swept(s names, fates fate[], late text[], delayed text[], grave text) returns table (queue text, name text)
language sql stable as $$
  with swept as materialized (
    select m.lane, m.key, m.extra, f.fate, coalesce(f.place, case when f.fate = 'late' then late_place(s, m.dead_letter, grave) end) as place,
      f.fate in ('late', 'back') or m.tied & 1 > 0 as is_touched
    from (
      select f.id, f.fate, f.place from unnest(fates) as f
      union all
      select i.id, 'late', null from unnest(late) as i (id)
      union all
      select i.id, 'back', null from unnest(delayed) as i (id)
    ) as f
    cross join lateral (select * from messages as m where m.queue = s.name and m.id = f.id limit 1) as m
  )
  select s.name, w.lane from swept as w where s.rules & 1 > 0 and w.is_touched and w.lane is not null
  union
  select s.name, lane_of(s, m.extra)
  from swept as w
  cross join lateral (
    select m.extra from messages as m where m.queue = s.name and m.key = w.key and m.key is not null and m.state = 'buffered' limit 1
  ) as m
  where s.rules & 1 > 0 and w.fate <> 'back'
  union
  select g.name, lane_of(g, w.extra) from swept as w join names as g on g.kind = 'queue' and g.name = w.place and g.rules & 1 > 0
$$;

-- Where a message goes that was not started in time, if anywhere.
create or replace function late_place(s names, dead_letter text, grave text) returns text
language sql immutable as $$
  select case when (s).policy ->> 'late_to' = 'dead' then coalesce(nullif(dead_letter, ''), grave, (s).policy ->> 'dead_letter') end
$$;

-- Lock them, behind the queues where dead letters go, in the order of settlements. What a claim finds is not known before, so it may have
-- others by now that come behind these: it waits for a short time only. False if that does not do.
create or replace function lock_swept_soon(s names, fates fate[], late text[], delayed text[], grave text) returns boolean
language plpgsql set lock_timeout = '200ms' as $$
declare
  queues text[];
  of_lanes text[];
begin
  perform lock_graves(array(
    select f.place from unnest(fates) as f where f.fate = 'moved'
    union
    select late_place(s, m.dead_letter, grave) from unnest(messages_of(s.name, late)) as m
  ));
  select array_agg(l.queue order by l.queue, l.name), array_agg(l.name order by l.queue, l.name) into queues, of_lanes
  from lanes_swept(s, fates, late, delayed, grave) as l;
  insert into lanes (queue, name) select w.queue, w.name from unnest(queues, of_lanes) as w (queue, name) on conflict do nothing;
  perform
  from unnest(queues, of_lanes) as w (queue, name)
  cross join lateral (select from lanes as l where l.queue = w.queue and l.name = w.name limit 1 for no key update) as l;
  return true;
exception when lock_not_available then
  return false;
end
$$;
