-- Acquire, Renew, Release, Look: what locks and elections are made of. A lease of no dict has an empty dict here.

create or replace function lease_json(l leases) returns text
language sql stable as $$
  select json_build_object(
    'dict', nullif(l.dict, ''), 'key', l.key, 'holder', l.holder, 'lease_id', l.lease_id, 'token', l.token, 'since', l.since, 'until', l.until
  )::text
$$;

create or replace function ends_in_s(l leases, now bigint) returns text
language sql immutable as $$
  select case when l.until >= never() then 'null' else seconds_in(l.until - now)::text end
$$;

-- Where the events of a lease are written: its dict's log, or one of its own.
create or replace function log_topic(dict text, key text) returns text
language sql immutable as $$
  select case dict when '' then 'lease::' || key else 'dict:' || dict end
$$;

create or replace function told_of_lease(key text, holder text) returns text
language sql stable as $$
  select '{"key":' || to_json(key) || ',"holder":' || to_json(holder) || '}'
$$;

create or replace function check_acquire(c jsonb, now bigint, whole boolean) returns jsonb
language plpgsql as $$
declare
  of_dict text := coalesce(c ->> 'dict', '');
  current leases;
begin
  select * into current from leases where dict = of_dict and key = c ->> 'key';
  if whole and current.until > now and current.lease_id <> c ->> 'lease_id' then
    perform refuse('lease_held', jsonb_build_array(lease_json(current)::jsonb, ends_in_s(current, now)::jsonb));
  end if;
  return to_jsonb(current);
end
$$;

create or replace function write_acquire(c jsonb, vals text[], p jsonb, now bigint) returns text
language plpgsql as $$
declare
  of_dict text := coalesce(c ->> 'dict', '');
  current leases := jsonb_populate_record(null::leases, p);
  topic text := log_topic(of_dict, c ->> 'key');
begin
  if current.until > now then
    -- What was only there to be locked.
    delete from entries where dict = of_dict and key = c ->> 'key' and value is null and fence = 0;
    return acquired_json(current, now);
  end if;
  if current.lease_id <> '' then
    -- With its holder: in the log of a dict an entry expires too.
    perform append(topic, 'expired', told_of_lease(c ->> 'key', current.holder), now);
  end if;
  current.dict := of_dict;
  current.key := c ->> 'key';
  current.holder := c ->> 'holder';
  current.lease_id := c ->> 'lease_id';
  current.since := now;
  current.until := end_of(now, (c ->> 'lease_s')::double precision);
  current.token := append(topic, 'acquired', told_of_lease(current.key, current.holder), now);
  update leases
  set holder = current.holder, lease_id = current.lease_id, token = current.token, since = current.since, until = current.until
  where dict = of_dict and key = current.key;
  if of_dict <> '' and c -> 'default' is not null then
    perform write_default(of_dict, current.key, vals[(c -> 'default')::integer], now);
  end if;
  return acquired_json(current, now);
end
$$;

-- Store it where the key is absent; the row was locked before.
create or replace function write_default(of_dict text, of_key text, default_value text, now bigint) returns void
language plpgsql as $$
declare
  absent boolean := not is_there(e, now) from entries as e where e.dict = of_dict and e.key = of_key;
  number bigint;
begin
  if absent then
    number := append('dict:' || of_dict, 'written', told_of_entry(of_key, default_value), now);
    update entries
    set value = default_value, revision = number, expires_at = null
    where dict = of_dict and key = of_key;
    insert into names (kind, name, created_at) values ('dict', of_dict, now) on conflict do nothing;
  end if;
end
$$;

create or replace function acquired_json(l leases, now bigint) returns text
language plpgsql stable as $$
declare
  entry text;
begin
  if l.dict <> '' then
    select ',"entry":' || entry_json(e) into entry from entries as e where e.dict = l.dict and e.key = l.key and is_there(e, now);
  end if;
  return '{"lease":' || lease_json(l) || ',"ends_in_s":' || ends_in_s(l, now) || coalesce(entry, '') || '}';
end
$$;

-- A repetition never takes a lease: it is answered with the one in force, or, when there is none any more, as it was.
create or replace function recall_acquire(c jsonb, note text, now bigint) returns text
language plpgsql as $$
begin
  return (
    select coalesce((
      select acquired_json(l, now) from leases as l where l.dict = coalesce(c ->> 'dict', '') and l.key = c ->> 'key' and l.until > now
    ), note)
  );
end
$$;

-- The names in the order asked, each with its lease where that is still held; the rows were locked before.
create or replace function check_leases(c jsonb, now bigint, whole boolean) returns jsonb
language plpgsql as $$
declare
  answer jsonb;
  lost jsonb;
begin
  select coalesce(jsonb_agg(to_jsonb(l) order by n.o), '[]'), (array_agg(n.name order by n.o) filter (where l.lease_id is null))[1]
  into answer, lost
  from jsonb_array_elements(c -> 'names') with ordinality as n (name, o)
  left join lateral (
    select * from leases as l where l.dict = coalesce(n.name ->> 0, '') and l.key = n.name ->> 1 limit 1
  ) as l on l.lease_id = n.name ->> 2 and l.until > now;
  if whole and lost is not null then
    perform refuse('lease_lost', lost);
  end if;
  return answer;
end
$$;

create or replace function write_renew(c jsonb, p jsonb, now bigint) returns text
language plpgsql as $$
declare
  ends_at bigint := end_of(now, (c ->> 'lease_s')::double precision);
  answer text;
begin
  update leases as l
  set until = ends_at
  from jsonb_array_elements(p) as h
  cross join lateral (select r.ctid from leases as r where r.dict = h ->> 'dict' and r.key = h ->> 'key' limit 1) as r
  where l.ctid = r.ctid;
  select string_agg(case when h.l = 'null' then 'null' else lease_json(jsonb_populate_record(null::leases, h.l || jsonb_build_object('until', ends_at))) end, ',' order by h.o)
  into answer
  from jsonb_array_elements(p) with ordinality as h (l, o);
  return '{"leases":[' || coalesce(answer, '') || ']}';
end
$$;

create or replace function write_release(c jsonb, p jsonb, now bigint) returns text
language plpgsql as $$
declare
  held record;
  answer text;
begin
  for held in
    select (h.l).dict, (h.l).key, (h.l).holder
    from (select jsonb_populate_record(null::leases, h.l) as l, h.o from jsonb_array_elements(p) with ordinality as h (l, o) where h.l <> 'null') as h
    order by h.o
  loop
    perform append(log_topic(held.dict, held.key), 'released', told_of_lease(held.key, held.holder), now);
    delete from leases where dict = held.dict and key = held.key;
    perform wake('lease:' || held.dict || ':' || held.key, 1);
  end loop;
  select string_agg((h.l <> 'null')::text, ',' order by h.o) into answer from jsonb_array_elements(p) with ordinality as h (l, o);
  return '{"held":[' || coalesce(answer, '') || ']}';
end
$$;

create or replace function answer_look(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
begin
  return (
    select '{"leases":[' || coalesce(string_agg(
      case when l.until > now then '{"lease":' || lease_json(l) || ',"ends_in_s":' || ends_in_s(l, now) || '}' else 'null' end, ',' order by k.o
    ), '') || ']}'
    from unnest(texts(c -> 'keys')) with ordinality as k (key, o)
    left join lateral (select * from leases as l where l.dict = coalesce(c ->> 'dict', '') and l.key = k.key limit 1) as l on true
  );
end
$$;
