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
      coalesce(c ->> 'return_to', 'back'), now, moment_in(coalesce((c ->> 'delay_s')::double precision, 0)), now
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
  fates fate[];
begin
  perform append('queue:' || (g ->> 'queue'), 'settled', told(texts(g -> 'ids'), texts(g -> 'keys'), ',"to":' || to_json(ending)), now)
  from jsonb_array_elements(p -> 'groups') as g;
  for part in select jsonb_array_elements(p -> 'groups') loop
    of_queue := part ->> 'queue';
    if ending = 'done' then
      perform remove(of_queue, texts(part -> 'ids')), promote(of_queue, texts(part -> 'keys'));
    else
      fates := array(select jsonb_populate_recordset(null::fate, part -> 'fates'));
      perform end_claims_each(of_queue, fates, counts, error, now);
      perform bury(of_queue, fates, counts, error, now);
      perform pass_on(of_queue, fates);
    end if;
  end loop;
  return '{"held":' || (p -> 'held')::text || '}';
end
$$;

-- A claim that its holder ends is buried, failed or released.
create or replace function end_claims_each(of_queue text, fates fate[], counts boolean, error text, now bigint) returns void
language plpgsql as $$
declare
  buried fate[] := array(select f from unnest(fates) as f where f.fate in ('dead', 'moved'));
  others fate[] := array(select f from unnest(fates) as f where f.fate in ('back', 'gone'));
begin
  perform end_claims(of_queue, buried, counts, 'buried', now, error, now) where cardinality(buried) > 0;
  perform end_claims(of_queue, others, counts, case when counts then 'failed' else 'released' end, now, error, now) where cardinality(others) > 0;
end
$$;
