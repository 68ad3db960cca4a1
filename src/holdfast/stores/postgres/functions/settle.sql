-- Settle and Extend: for those who still hold their claims, whose rows were locked before.

-- The receipts in the order asked, and whether each still holds its message; one that stands twice counts once.
create or replace function receipts_of(c jsonb, now bigint) returns table (o bigint, queue text, id text, token bigint, key text, held boolean)
language sql stable as $$
  select r.o, r.queue, r.id, r.token, m.key,
    m.id is not null and row_number() over (partition by r.queue, r.id, r.token order by r.o) = 1
  from (
    select e.o, e.r ->> 0 as queue, e.r ->> 1 as id, (e.r ->> 2)::bigint as token
    from jsonb_array_elements(c -> 'receipts') with ordinality as e (r, o)
  ) as r
  -- Row by row through the primary key: it is the one index that knows ids, and the rest is looked at afterwards.
  left join lateral (
    select m.id, m.key, m.state, m.token, m.until from messages as m where m.queue = r.queue and m.id = r.id limit 1
  ) as m on m.state = 'leased' and m.token = r.token and m.until > now
$$;

create or replace function refuse_lost_claims(c jsonb, held jsonb) returns void
language plpgsql as $$
declare
  lost jsonb[] := array(
    select e.r
    from jsonb_array_elements(c -> 'receipts') with ordinality as e (r, o)
    where not (held -> (e.o::integer - 1))::boolean
    order by e.o
  );
begin
  if cardinality(lost) > 0 then
    perform refuse('claims_lost', jsonb_build_array(lost, jsonb_array_length(c -> 'receipts')));
  end if;
end
$$;

create or replace function check_extend(c jsonb, now bigint, whole boolean) returns jsonb
language plpgsql as $$
declare
  held jsonb;
begin
  select coalesce(jsonb_agg(r.held order by r.o), '[]') into held from receipts_of(c, now) as r;
  if whole then
    perform refuse_lost_claims(c, held);
  end if;
  return held;
end
$$;

create or replace function write_extend(c jsonb, held jsonb, now bigint) returns text
language plpgsql as $$
declare
  ends_at bigint := end_of(now, (c ->> 'lease_s')::double precision);
  held_at boolean[] := array(select h::boolean from jsonb_array_elements(held) as h);
  claim record;
  key text;
begin
  for claim in
    select e.r ->> 0 as queue, e.r ->> 1 as id
    from jsonb_array_elements(c -> 'receipts') with ordinality as e (r, o)
    where held_at[e.o]
  loop
    update messages as m
    set until = ends_at, failures = case when (c ->> 'progress')::boolean then 0 else m.failures end
    where m.queue = claim.queue and m.id = claim.id
    returning m.key into key;
    if ends_at = now then
      perform announce(claim.queue, array[key], 1);
    end if;
  end loop;
  return '{"held":' || held::text || '}';
end
$$;

create or replace function check_settle(c jsonb, now bigint, whole boolean) returns jsonb
language plpgsql as $$
declare
  held jsonb;
  groups jsonb;
begin
  select coalesce(jsonb_agg(r.held order by r.o), '[]') into held from receipts_of(c, now) as r;
  if whole then
    perform refuse_lost_claims(c, held);
  end if;
  select coalesce(jsonb_agg(jsonb_build_object(
    'queue', g.queue, 'ids', g.ids, 'keys', g.keys,
    'fates', case when coalesce(c ->> 'to', 'done') <> 'done' then to_jsonb(fates_of(
      g.queue, g.ids, coalesce((c ->> 'counts')::boolean, false), c ->> 'to' = 'dead', (c ->> 'max_attempts')::integer, c ->> 'dead_letter',
      coalesce(c ->> 'return_to', 'back'), now, case
        when c ->> 'delay_s' is not null then moment_in((c ->> 'delay_s')::double precision)
        when not coalesce((c ->> 'counts')::boolean, false) then 0
      end, now
    )) end
  ) order by g.first), '[]')
  into groups
  from (
    select r.queue, min(r.o) as first, array_agg(r.id order by r.o) as ids, array_agg(r.key order by r.o) as keys
    from receipts_of(c, now) as r
    where r.held
    group by r.queue
  ) as g;
  return jsonb_build_object('held', held, 'groups', groups);
end
$$;

create or replace function write_settle(c jsonb, p jsonb, now bigint) returns text
language plpgsql as $$
declare
  ending text := coalesce(c ->> 'to', 'done');
  counts boolean := coalesce((c ->> 'counts')::boolean, false);
  error text := c ->> 'error';
  part jsonb;
  of_queue text;
  of_lanes text[];
  fates fate[];
begin
  perform append('queue:' || (g ->> 'queue'), 'settled', told(
    texts(g -> 'ids'), texts(g -> 'keys'), groups_of(g ->> 'queue', texts(g -> 'ids')) || ',"to":' || to_json(ending)
      || case when counts and ending <> 'done' then ',"failed":true' else '' end
  ), now)
  from jsonb_array_elements(p -> 'groups') as g;
  for part in select jsonb_array_elements(p -> 'groups') loop
    of_queue := part ->> 'queue';
    of_lanes := array(select m.lane from unnest(messages_of(of_queue, texts(part -> 'ids'))) as m where (c ->> 'unstarted')::boolean);
    perform give_rate_back(settings_of(of_queue), texts(part -> 'ids')) where (c ->> 'unstarted')::boolean;
    if ending = 'done' then
      perform end_held(settings_of(of_queue), texts(part -> 'ids'), c ->> 'trace', now);
    else
      fates := array(select jsonb_populate_recordset(null::fate, part -> 'fates'));
      perform end_claims_each(of_queue, fates, counts, error, c ->> 'trace', now);
    end if;
    perform refresh_lanes(settings_of(of_queue), of_lanes, null, null, now, null) where of_lanes <> '{}';
  end loop;
  return '{"held":' || (p -> 'held')::text || '}';
end
$$;

-- A claim that its holder ends is buried, failed or released.
create or replace function end_claims_each(of_queue text, fates fate[], counts boolean, error text, trace text, now bigint) returns void
language plpgsql as $$
declare
  dead record;
  rest record;
begin
  dead := end_claims(of_queue, array(select f from unnest(fates) as f where f.fate in ('dead', 'moved')), counts, 'buried', now, error, now, trace);
  rest := end_claims(
    of_queue, array(select f from unnest(fates) as f where f.fate in ('back', 'gone')), counts, case when counts then 'failed' else 'released' end,
    now, error, now, trace
  );
  perform bury(of_queue, fates, counts, error, now, true), pass_on(of_queue, fates, now);
  perform free_slots(settings_of(of_queue), dead.before || rest.before, rest.after, now);
end
$$;

-- Remove messages whose claims ended well, or keep them for a while; let the copies behind them take their places, and give their slots back.
create or replace function end_held(s names, ids text[], trace text, now bigint) returns void
language plpgsql as $$
declare
  before messages[] := messages_of(s.name, ids);
  kept text[] := array(select m.id from unnest(before) as m where m.tied & 4 > 0);
begin
  perform remove(s.name, array(select m.id from unnest(before) as m where (m.tied & 4 > 0) is not true));
  if kept <> '{}' then
    perform keep_done(s, kept, trace, now);
    perform forget_done_of(s, now, 2);
  end if;
  perform promote(s.name, array(select m.key from unnest(before) as m), now), free_slots(s, before, '{}', now);
end
$$;

create or replace function keep_done(s names, ids text[], trace text, now bigint) returns void
language plpgsql as $$
begin
  update messages as m
  set state = 'done', ended_at = now, lane = null, level = null, rank = null, tied = null, trace = coalesce(keep_done.trace, m.trace)
  from unnest(ids) as i (id)
  cross join lateral (select h.ctid from messages as h where h.queue = s.name and h.id = i.id limit 1) as h
  where m.ctid = h.ctid;
end
$$;

-- Give back what claims used of a rate and never started, where nothing was claimed under it since.
create or replace function give_rate_back(s names, ids text[]) returns void
language plpgsql as $$
declare
  rate jsonb := nullif(s.policy -> 'rate', 'null');
  used record;
begin
  for used in
    select m.token, count(*) as count from unnest(messages_of(s.name, ids)) as m where rate is not null group by m.token
  loop
    update names set tat = tat - used.count * interval_of(rate) where kind = 'queue' and name = s.name and last = used.token;
    perform wake('queue:' || s.name, used.count) where found;
  end loop;
  for used in
    select m.lane, m.token, count(*) as count from unnest(messages_of(s.name, ids)) as m where m.lane is not null group by m.lane, m.token order by 1, 2
  loop
    update lanes as l
    set tat = l.tat - used.count * interval_of(lane_rate(l, s))
    where l.queue = s.name and l.name = used.lane and l.last = used.token and lane_rate(l, s) is not null;
  end loop;
end
$$;
