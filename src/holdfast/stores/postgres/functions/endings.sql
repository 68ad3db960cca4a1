-- How claims end: where a message goes, what it remembers, who gets its place.

create or replace function head_position(of_queue text, of_priority integer, now bigint) returns bigint
language plpgsql stable as $$
begin
  return (
    select position
    from messages
    where queue = of_queue and state = 'ready' and priority = of_priority and {in_time}
    order by position
    limit 1
  );
end
$$;

-- Where a message goes that is no longer held; `back` is the moment that the back of the line means, `head` where the line begins.
create or replace function position_in(return_to text, was_at bigint, head bigint, back bigint, delay bigint, now bigint) returns bigint
language sql immutable as $$
  select case return_to
    when 'back' then back + delay
    when 'place' then case when delay > 0 then greatest(was_at, now + delay) else was_at end
    else coalesce(least(head - 1, now), now) + delay
  end
$$;

-- Where it goes in this queue: one of a strict group keeps its place, and where the last is first, back and front change places.
create or replace function returned_to(s names, return_to text) returns text
language sql immutable as $$
  select case
    when (s).rules & 2 > 0 then 'place'
    when (s).policy ->> 'order' = 'lifo' and return_to = 'back' then 'front'
    when (s).policy ->> 'order' = 'lifo' and return_to = 'front' then 'back'
    else return_to
  end
$$;

-- How long a message waits after so many failures.
create or replace function delay_after(backoff jsonb, failures integer) returns bigint
language sql immutable as $$
  select case when backoff is null or backoff = 'null' then 0 else least(
    moment_in(coalesce((backoff ->> 'first_s')::double precision, {backoff_first_s}))::numeric * 2 ^ least(greatest(failures - 1, 0), 40)::numeric,
    moment_in(coalesce((backoff ->> 'most_s')::double precision, {backoff_most_s}))
  )::bigint end
$$;

-- What a message remembers of the claims on it, once another has ended.
create or replace function history_with(
  history text[], holder text, token bigint, since bigint, ended_at bigint, how text, error text
) returns text[]
language sql stable as $$
  select (history || json_build_array(holder, token, since, ended_at, how, error)::text)[greatest(1, coalesce(cardinality(history), 0) - {history} + 2):]
$$;

-- Carry fates out. `how` each claim ended and with what error becomes part of the message's history; a null `ended_at` is the lease's end.
-- Returns the messages as they were, and those that are in line again as they are: see free_slots.
create or replace function end_claims(
  of_queue text, fates fate[], failed boolean, how text, ended_at bigint, error text, now bigint, trace text default null,
  out before messages[], out after messages[]
)
language plpgsql as $$
declare
  s names := settings_of(of_queue);
  f fate;
  m messages;
begin
  before := '{}';
  after := '{}';
  foreach f in array fates loop
    select * into m from messages as h where h.queue = of_queue and h.id = f.id;
    before := before || m;
    if f.fate = 'gone' then
      delete from messages as h where h.queue = of_queue and h.id = f.id;
    elsif f.fate in ('back', 'dead') then
      update messages as h
      set
        state = case f.fate when 'back' then 'ready' else 'dead' end::state,
        position = coalesce(f.position, h.position),
        lane = case f.fate when 'back' then lane_of(s, h.extra) else h.lane end,
        level = case f.fate when 'back' then level_of(s, h.level, h.rank, h.priority, coalesce(f.position, h.position), now) else h.level end,
        rank = case f.fate when 'back' then rank_of(s, h.rank, h.priority, coalesce(f.position, h.position), now) else h.rank end,
        tied = null,
        dead_at = case f.fate when 'back' then h.dead_at else now end,
        failures = h.failures + failed::integer,
        endings = h.endings + 1,
        last_error = coalesce(error, h.last_error),
        trace = coalesce(end_claims.trace, h.trace),
        history = history_with(h.history, h.holder, h.token, h.since, coalesce(end_claims.ended_at, h.until), how, error)
      where h.queue = of_queue and h.id = f.id
      returning h.* into m;
      if f.fate = 'back' then
        after := after || m;
      end if;
    end if;
  end loop;
end
$$;

-- Give back the slots of messages as they were before a change, and tell of those that are in line after it. To be called behind all else: a
-- lane that seems to be empty meanwhile would lose its turn.
create or replace function free_slots(s names, before messages[], after messages[], now bigint, number bigint default null) returns void
language plpgsql as $$
declare
  limited integer := (select count(*) from unnest(before) as b where b.tied & 2 > 0);
begin
  if limited > 0 then
    update names set live = greatest(0, live - limited) where kind = 'queue' and name = s.name;
    perform wake('queue:' || s.name, limited) where s.live >= (s.policy ->> 'limit')::bigint;
  end if;
  if s.rules & 1 > 0 then
    perform refresh_lanes(s, array_agg(u.lane), array_agg(u.arrived), array_agg(u.freed), now, number)
    from (
      select b.lane, 0, case when b.tied & 1 > 0 then 1 else 0 end from unnest(before) as b where b.state <> 'leased' or b.tied & 1 > 0
      union all
      select a.lane, case when a.rank is null then 0 else 1 end, 0 from unnest(after) as a
    ) as u (lane, arrived, freed);
    perform wake('queue:' || s.name, count(*)) from unnest(after) as a where a.rank is null having count(*) > 0;
  end if;
end
$$;

-- Move the dead letters among the fates to their places and tell of all burials: first the dead of this queue, then place by place.
create or replace function bury(of_queue text, fates fate[], failed boolean, error text, now bigint, holds boolean default false) returns void
language plpgsql as $$
declare
  grave record;
begin
  perform append('queue:' || of_queue, 'buried', told(
    array_agg(f.id order by o), array_agg(f.key order by o), groups_of(of_queue, array_agg(f.id order by o))
  ), now)
  from unnest(fates) with ordinality as f (id, key, fate, position, place, o)
  where f.fate = 'dead'
  having count(*) > 0;
  perform hold_groups(of_queue, fates, now) where holds;
  for grave in
    select f.place, array_agg(f.id order by o) as ids, array_agg(f.key order by o) as keys
    from unnest(fates) with ordinality as f (id, key, fate, position, place, o)
    where f.fate = 'moved'
    group by f.place
    order by min(o)
  loop
    perform move_dead_letters(of_queue, grave.place, grave.ids, grave.keys, failed, error, now);
  end loop;
end
$$;

-- Move dead letters to another queue, as fresh work.
create or replace function move_dead_letters(of_queue text, place text, ids text[], keys text[], failed boolean, error text, now bigint) returns void
language plpgsql as $$
declare
  s names;
  moved messages;
  new_id text;
  told_groups text := groups_of(of_queue, ids);
  after messages[] := '{}';
  new_ids text[] := '{}';
begin
  perform create_queue(place, now);
  s := settings_of(place);
  for moved in
    select m.*
    from unnest(ids) with ordinality as g (id, o)
    cross join lateral (select * from messages as m where m.queue = of_queue and m.id = g.id limit 1) as m
    order by g.o
  loop
    -- A dead letter whose id is taken where it goes gets one of its own, so that neither is lost.
    new_id := moved.id;
    for number in 2 .. 1000000 loop
      exit when not exists (select from messages where queue = place and id = new_id);
      new_id := moved.id || '~' || number;
    end loop;
    new_ids := new_ids || new_id;
    update messages
    set
      queue = place, id = new_id, key = null, state = 'ready', position = now, attempts = 0, failures = 0,
      max_attempts = null, dead_letter = null, start_by = null, holder = '', token = 0, since = 0, until = 0, expired_to = 'place',
      dead_at = null, last_error = null, endings = 0, history = null, tied = null, trace = null,
      lane = lane_of(s, extra), level = level_of(s, null, null, priority, now, now), rank = rank_of(s, null, priority, now, now),
      metadata = dead_letter_metadata(
        moved.metadata, of_queue, moved.key, moved.attempts, moved.failures + failed::integer, coalesce(error, moved.last_error),
        now + wall_offset_us()
      )
    where queue = of_queue and id = moved.id
    returning * into moved;
    after := after || moved;
  end loop;
  perform append('queue:' || of_queue, 'buried', told(ids, keys, told_groups || ',"dead_letter":' || to_json(place)), now);
  perform append('queue:' || place, 'put', told(new_ids, '{}', groups_of(place, new_ids)), now);
  perform resize(place, cardinality(new_ids)), arrive(
    s, array_fill(null::text, array[cardinality(new_ids)]), array(select m.lane from unnest(after) as m), array(select m.rank from unnest(after) as m), now
  );
end
$$;

-- Let others have what the fates leave to them: the copies behind those that are gone, and what is back in line.
create or replace function pass_on(of_queue text, fates fate[], now bigint, number bigint default null) returns void
language plpgsql as $$
declare
  is_grouped boolean := coalesce((settings_of(of_queue)).rules & 1 > 0, false);
begin
  perform promote(of_queue, array_agg(f.key), now, number) from unnest(fates) as f where f.fate <> 'back' having count(*) > 0;
  perform resize(of_queue, count(*)) from unnest(fates) as f where f.fate = 'back' having count(*) > 0;
  if is_grouped then
    -- Those who wait for any were told when the lanes were refreshed.
    perform wake('key:' || of_queue || ':' || f.key, 1) from unnest(fates) as f where f.fate = 'back' and f.key is not null;
  else
    perform announce(of_queue, array_agg(f.key), count(*)) from unnest(fates) as f where f.fate = 'back' having count(*) > 0;
  end if;
end
$$;

-- Pause the strict groups whose first died, where the queue says so.
create or replace function hold_groups(of_queue text, fates fate[], now bigint) returns void
language plpgsql as $$
declare
  s names := settings_of(of_queue);
  dead record;
  l lanes;
begin
  if (s.rules & 2 > 0 and s.policy ->> 'group_dead' = 'hold') is not true then
    return;
  end if;
  for dead in
    -- In the order in which they died: the lanes are locked already.
    select m.lane, (array_agg(f.id order by f.o desc))[1] as id
    from unnest(fates) with ordinality as f (id, key, fate, position, place, o)
    cross join lateral (
      select m.lane from messages as m where m.queue = of_queue and m.id = f.id limit 1
    ) as m
    where f.fate in ('dead', 'moved') and m.lane is not null
    group by m.lane
    order by min(f.o)
  loop
    l := lock_lane(of_queue, dead.lane);
    l.own := coalesce(l.own, '{}') || jsonb_build_object('paused', true, 'held', dead.id);
    perform save_lane(refreshed(l, s, now, latest()));
    perform append('queue:' || of_queue, 'configured', json_build_object(
      'group', dead.lane, 'paused', true, 'because', 'dead', 'held', dead.id
    )::text, now);
  end loop;
end
$$;

-- Let a group go on that is paused for one of these messages.
create or replace function resume_groups(s names, ids text[], now bigint) returns void
language plpgsql as $$
declare
  l lanes;
begin
  for l in
    select * from lanes as h where h.queue = s.name and h.own ->> 'held' = any (ids) order by h.name for no key update
  loop
    l.own := nullif(l.own - '{paused,held}'::text[], '{}');
    perform append('queue:' || s.name, 'configured', json_build_object('group', l.name, 'paused', false)::text, now);
    perform save_lane(refreshed(l, s, now, latest()));
    perform refresh_lanes(s, array[l.name], array[1], null, now, null);
  end loop;
end
$$;
