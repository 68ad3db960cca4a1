-- Which messages a claim gets out of which lanes.

-- Lock so many of the first in a lane's line, besides those known. In a strict lane only the very first, and not if somebody else has it.
create or replace function heads_of_lane(s names, of_lane text, known text[], most bigint, now bigint) returns text[]
language plpgsql as $$
begin
  if s.rules & 2 > 0 then
    return array(
      select m.id
      from messages as m
      where m.ctid = (
        select f.ctid
        from messages as f
        where f.queue = s.name and f.lane = of_lane and f.state = 'ready' and f.rank is not null
          and {in_time of f}
        order by f.level desc, f.rank, f.n
        limit 1
      ) and m.position <= now and m.id <> all (known)
      for update skip locked
    );
  end if;
  return array(
    select f.id
    from messages as f
    where f.queue = s.name and f.lane = of_lane and f.state = 'ready' and f.rank is not null and f.id <> all (known)
      and {in_time of f}
    order by f.level desc, f.rank, f.n
    limit most
    for update skip locked
  );
end
$$;

-- The first open lanes that nobody else has, but for those passed; null where there are others, which are somebody else's. Who has no lane yet waits
-- for the first, if that does not take long. Who has one never waits: its holder may be waiting for ours, and one of the two would be ended.
create or replace function open_lanes(of_queue text, most bigint, passed text[]) returns lanes[]
language plpgsql as $$
declare
  found_lanes lanes[];
begin
  for attempt in 1 .. 2 loop
    found_lanes := array(
      select o
      from (
        select l.*
        from lanes as l
        where l.queue = of_queue and l.is_open and l.name <> all (passed)
        order by l.turn, l.place, l.name
        limit most
        for no key update skip locked
      ) as o
    );
    if found_lanes <> '{}' or not exists (select from lanes as l where l.queue = of_queue and l.is_open and l.name <> all (passed)) then
      return found_lanes;
    end if;
    exit when not has_no_lock() or not wait_for_lane(of_queue);
  end loop;
  return null;
end
$$;

-- Whether the transaction has locked no row. Lanes that are found open, and closed once they are locked, are passed, and stay locked.
create or replace function has_no_lock() returns boolean
language sql volatile as $$
  select pg_current_xact_id_if_assigned() is null
$$;

-- Wait until the first open lane is ours. False if it takes long: a caller's own transaction may have a lane for long.
create or replace function wait_for_lane(of_queue text) returns boolean
language plpgsql set lock_timeout = '100ms' as $$
declare
  first text := (select l.name from lanes as l where l.queue = of_queue and l.is_open order by l.turn, l.place, l.name limit 1);
begin
  perform from lanes as l where l.queue = of_queue and l.name = first for no key update;
  return true;
exception
  when lock_not_available then
    return false;
end
$$;

-- How many messages the limit and the rate of a lane let through.
create or replace function most_of(l lanes, s names, takes boolean, now bigint) returns bigint
language sql immutable as $$
  select least(
    allowed_by(lane_rate(l, s), (l).tat, now), case when not takes or (s).rules & 2 > 0 then lane_limit(l, s) - (l).live end
  )
$$;

-- Up to so many open lanes, each with at least one message, whose rows are locked. What gives nothing is brought up to date and passed; what
-- is only being put there gets a new turn, so that it does not stand before others. `ask_at` is set where there may be more soon.
create or replace function serving_lanes(
  s names, room bigint, most_passed integer, takes boolean, now bigint, number bigint,
  out served lanes[], out shares lane_share[], out ask_at bigint
)
language plpgsql as $$
declare
  l lanes;
  share lane_share;
  found_lanes lanes[];
  seen text[] := '{}';
  passed integer := 0;
begin
  served := '{}';
  shares := '{}';
  while cardinality(served) < room loop
    if passed >= most_passed then
      ask_at := now;
      return;
    end if;
    found_lanes := open_lanes(s.name, least(room - cardinality(served), most_passed - passed), seen);
    if found_lanes is null then
      ask_at := now + 100000;
      return;
    end if;
    exit when found_lanes = '{}';
    foreach l in array found_lanes loop
      seen := seen || l.name;
      share.most := least(room, most_of(l, s, takes, now));
      share.ids := case when share.most > 0 then heads_of_lane(s, l.name, '{}', least(share.most, l.credit), now) else '{}' end;
      share.given := 0;
      share.is_dry := cardinality(share.ids) < least(share.most, l.credit);
      if share.ids = '{}' then
        passed := passed + 1;
        l := refreshed(l, s, now, number);
        if l.is_open then
          l.turn := number;
          l.place := 0;
        end if;
        perform save_lane(l);
      else
        served := served || l;
        shares := shares || share;
      end if;
    end loop;
  end loop;
end
$$;

-- Hand out so many messages in rounds over the lanes, each of which gives its credit in a round: the ids in that order, and for each the
-- place of its lane.
create or replace function share_out(
  s names, served lanes[], inout shares lane_share[], room bigint, now bigint, out ids text[], out places integer[]
)
language plpgsql as $$
declare
  count integer := cardinality(served);
  credits integer[] := array(select (l).credit from unnest(served) as l);
  quota bigint;
  more text[];
  before integer := -1;
begin
  ids := '{}';
  places := '{}';
  while cardinality(ids) < room and cardinality(ids) > before loop
    before := cardinality(ids);
    for i in 1 .. count loop
      quota := least(credits[i], shares[i].most - shares[i].given, room - cardinality(ids));
      continue when quota <= 0;
      if cardinality(shares[i].ids) < shares[i].given + quota and not shares[i].is_dry then
        -- As many as it may have to give yet, if the others give as much.
        more := heads_of_lane(s, served[i].name, shares[i].ids, least(
          shares[i].most - cardinality(shares[i].ids), greatest(quota, (room - cardinality(ids)) / count + 1)
        ), now);
        shares[i].is_dry := cardinality(more) < quota;
        shares[i].ids := shares[i].ids || more;
      end if;
      quota := least(quota, cardinality(shares[i].ids) - shares[i].given);
      continue when quota <= 0;
      ids := ids || shares[i].ids[shares[i].given + 1:shares[i].given + quota];
      places := places || array_fill(i, array[quota::integer]);
      shares[i].given := shares[i].given + quota;
      credits[i] := case when credits[i] > quota then credits[i] - quota else lane_weight(served[i]) end;
    end loop;
  end loop;
end
$$;

-- The lane after it gave the messages of these numbers among all that a claim got: each time that its credit is used up, it waits for another
-- turn, behind those that used up theirs before.
create or replace function reckoned(l lanes, s names, given integer[], takes boolean, token bigint, now bigint) returns lanes
language plpgsql as $$
declare
  rate jsonb := lane_rate(l, s);
  count integer := cardinality(given);
  number integer;
begin
  foreach number in array given loop
    l.credit := l.credit - 1;
    if l.credit <= 0 then
      l.turn := token;
      l.place := number;
      l.credit := lane_weight(l);
    end if;
  end loop;
  if rate is not null then
    l.tat := greatest(l.tat, now) + count * interval_of(rate);
    l.last := token;
  end if;
  if not takes and lane_limit(l, s) is not null then
    l.live := l.live + count;
  end if;
  return l;
end
$$;
