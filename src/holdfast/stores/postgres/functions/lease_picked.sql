-- Leasing, or taking, what a claim picked.

-- The event has the id of a command on its own, from which its answer is told again; else there is a note.
create or replace function lease_picked(
  s names, ids text[], served lanes[], places integer[], of_holder text, lease_s double precision, takes boolean, expiry text,
  by_key boolean, now bigint, command_id text, out answer text, out note text
)
language plpgsql as $$
declare
  -- The rows are won by now, and may have been another's between the reading of the clock and then.
  begins_at bigint := clock_us();
  ends_at bigint := end_of(begins_at, lease_s);
  limited boolean[] := array(select lane_limit(l, s) is not null from unnest(served) as l);
  slots integer := case when not takes then 1 else 0 end;
  of_queue integer := case when s.policy ->> 'limit' is not null then 2 * slots else 0 end + case when s.rules & 16 > 0 then 4 else 0 end;
  keys text[] := keys_of(s.name, ids);
  gave lanes[] := array(select served[p] from unnest(places[:cardinality(ids)]) as p);
  number bigint;
begin
  insert into events (n, at, topic, event, data, command)
  values (
    nextval('numbers'), now, 'queue:' || s.name, 'claimed', told(ids, keys, groups_of(s.name, ids) || ',"holder":' || to_json(of_holder)),
    case when not takes then nullif(command_id, '') end
  )
  returning n into number;
  perform wake('watch:queue:' || s.name, {everyone}), keep_moment(now);
  with leased as (
    update messages as m
    set state = 'leased', attempts = m.attempts + 1, holder = of_holder, token = number, since = begins_at, until = ends_at, expired_to = expiry,
      tied = nullif(of_queue + case when limited[places[i.o]] then slots else 0 end + case when m.extra ? 'group' then 8 else 0 end, 0)
    from unnest(ids) with ordinality as i (id, o)
    cross join lateral (select h.ctid from messages as h where h.queue = s.name and h.id = i.id limit 1) as h
    where m.ctid = h.ctid
    returning i.o, message_json(m) as told
  )
  select string_agg(told, ',' order by o) into answer from leased;
  perform reckon_gate(s, cardinality(ids), takes, number, now) where s.rules & 8 > 0;
  if takes then
    perform end_held(s, ids, null, now);
  end if;
  perform reckon_lanes(s, served, places[:cardinality(ids)], takes, by_key, number, now) where served <> '{}';
  perform resize(s.name, -cardinality(ids));
  note := case when takes then '[' || answer || ']' when command_id = '' then json_build_array(to_json(ids), number)::text end;
  answer := '{"messages":[' || answer || ']' || case when is_careful(s, gave) then ',"careful":true}' else '}' end;
end
$$;

-- Whether claiming ahead of need takes something away from others.
create or replace function is_careful(s names, served lanes[]) returns boolean
language plpgsql immutable as $$
declare
  l lanes;
begin
  if s.rules & 10 > 0 or s.policy ->> 'group_limit' is not null or s.policy ->> 'group_rate' is not null then
    return true;
  end if;
  foreach l in array served loop
    if l.own ->> 'limit' is not null or l.own ->> 'rate' is not null then
      return true;
    end if;
  end loop;
  return false;
end
$$;

create or replace function keys_of(of_queue text, ids text[]) returns text[]
language plpgsql stable as $$
begin
  return array(
    select m.key
    from unnest(ids) with ordinality as i (id, o)
    cross join lateral (select m.key from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
    order by i.o
  );
end
$$;

-- What an event says about the groups of messages, as a part of a JSON object; nothing where none has one.
create or replace function groups_of(of_queue text, ids text[]) returns text
language plpgsql stable as $$
declare
  found_groups text[] := array(
    select m.of_group
    from unnest(ids) with ordinality as i (id, o)
    cross join lateral (select m.extra ->> 'group' as of_group from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
    order by i.o
  );
begin
  return told_groups(found_groups);
end
$$;

-- Stable, as what it is made of: the planner would not inline it otherwise, and it would cost every claim a tenth.
create or replace function told_groups(of_groups text[]) returns text
language sql stable as $$
  select case when array_remove(of_groups, null) = '{}' then '' else ',"groups":' || array_to_json(of_groups) end
$$;

-- Count what a claim got under the limit and the rate of the queue, whose row is locked.
create or replace function reckon_gate(s names, count integer, takes boolean, token bigint, now bigint) returns void
language plpgsql as $$
declare
  rate jsonb := nullif(s.policy -> 'rate', 'null');
begin
  update names
  set live = live + case when not takes and s.policy ->> 'limit' is not null then count else 0 end,
    tat = case when rate is null then tat else greatest(tat, now) + count * interval_of(rate) end,
    last = case when rate is null then last else token end
  where kind = 'queue' and name = s.name;
end
$$;

-- Count for each lane what it gave, and bring it up to date.
create or replace function reckon_lanes(s names, served lanes[], places integer[], takes boolean, by_key boolean, token bigint, now bigint) returns void
language plpgsql as $$
declare
  l lanes;
  fresh lanes;
begin
  for i in 1 .. cardinality(served) loop
    continue when i <> all (places);
    l := served[i];
    fresh := reckoned(l, s, array_positions(places, i), takes, token, now);
    if by_key then
      fresh.turn := l.turn;
      fresh.place := l.place;
      fresh.credit := l.credit;
    end if;
    perform save_lane(refreshed(fresh, s, now, token));
  end loop;
end
$$;
