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

-- Let nobody else take the lease, and make its row if there is none.
create or replace function lock_to_take(of_dict text, of_key text) returns void
language plpgsql as $$
begin
  -- A caller's own transaction may have acquired, renewed or released it and stay open for long: whoever else wants it is told so soon,
  -- and does not wait.
  if not pg_try_advisory_xact_lock(object_lock('lease:' || of_dict, of_key)) or is_used(of_dict, of_key) then
    perform lock_lease_soon(of_dict, of_key);
  end if;
  insert into leases (dict, key) values (of_dict, of_key) on conflict do nothing;
  perform from leases where dict = of_dict and key = of_key for update;
end
$$;

-- Whether somebody else is in the middle of something with the lease; if not, its row is locked.
create or replace function is_used(of_dict text, of_key text) returns boolean
language plpgsql as $$
begin
  perform from leases where dict = of_dict and key = of_key;
  if not found then
    return false;
  end if;
  perform from leases where dict = of_dict and key = of_key for update skip locked;
  return not found;
end
$$;

create or replace function lock_lease_soon(of_dict text, of_key text) returns void
language plpgsql set lock_timeout = '300ms' as $$
declare
  l leases;
begin
  perform pg_advisory_xact_lock(object_lock('lease:' || of_dict, of_key));
  perform from leases where dict = of_dict and key = of_key for update;
exception when lock_not_available then
  -- Many who ask at once wait for each other, and one of them may have been granted it since. An answer on a key of a dict shows its entry, too.
  select * into l from leases where dict = '' and of_dict = '' and key = of_key and until > clock_us() and capacity is null;
  perform refuse('lease_in_transaction', jsonb_build_array(
    nullif(of_dict, ''), of_key, case when l.key is not null then lease_json(l)::jsonb end, ends_in_s(l, clock_us())::jsonb
  ));
end
$$;

create or replace function check_acquire(c jsonb, now bigint, whole boolean) returns jsonb
language plpgsql as $$
declare
  of_dict text := coalesce(c ->> 'dict', '');
  current leases;
  ended shares[];
begin
  if c -> 'capacity' is not null then
    return check_share(
      c ->> 'key', c ->> 'holder', c ->> 'lease_id', (c ->> 'lease_s')::double precision, (c ->> 'capacity')::bigint,
      coalesce((c ->> 'weight')::bigint, 1), (c ->> 'in_line_s')::double precision, (c ->> 'max_waiters')::bigint, now, whole
    );
  end if;
  select * into current from leases where dict = of_dict and key = c ->> 'key';
  if current.capacity is not null then
    ended := ended_shares(current.key, null, now);
    if is_kept(without_shares(current, ended)) then
      perform refuse('other_capacity', jsonb_build_array(current.key, current.capacity, null));
    end if;
    return jsonb_build_object('ended', to_jsonb(ended));
  end if;
  if whole and current.until > now and current.lease_id <> c ->> 'lease_id' then
    perform refuse('lease_held', jsonb_build_array(lease_json(current)::jsonb, ends_in_s(current, now)::jsonb));
  end if;
  -- The entry as it was before the step: another command of it may write it.
  return to_jsonb(current) || jsonb_build_object('entry', told_entry(current, now));
end
$$;

create or replace function write_acquire(c jsonb, vals text[], p jsonb, now bigint) returns text
language plpgsql as $$
declare
  of_dict text := coalesce(c ->> 'dict', '');
  current leases := jsonb_populate_record(null::leases, p);
  topic text := log_topic(of_dict, c ->> 'key');
  entry text := p ->> 'entry';
begin
  if c -> 'capacity' is not null then
    return write_share(p, now);
  end if;
  if p -> 'ended' is not null then
    -- What is left of a name with capacity that nobody uses any more.
    perform forget_shares(c ->> 'key', array(select e from jsonb_populate_recordset(null::shares, p -> 'ended') as e), now);
  end if;
  if current.until > now then
    -- What was only there to be locked.
    delete from entries where dict = of_dict and key = c ->> 'key' and value is null and fence = 0;
    return acquired_json(current, entry, now);
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
  set holder = current.holder, lease_id = current.lease_id, token = current.token, since = current.since, until = current.until,
    capacity = null, used = null, waiting = null, last = null, resized = null
  where dict = of_dict and key = current.key;
  if of_dict <> '' and c -> 'default' is not null then
    perform write_default(of_dict, current.key, vals[(c -> 'default')::integer], now);
    entry := coalesce(entry, told_entry(current, now));
  end if;
  return acquired_json(current, entry, now);
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

-- The entry that a lease is on, as an answer shows it; null where there is none.
create or replace function told_entry(l leases, now bigint) returns text
language plpgsql stable as $$
begin
  if l.dict = '' then
    return null;
  end if;
  return (select entry_json(e) from entries as e where e.dict = l.dict and e.key = l.key and is_there(e, now));
end
$$;

create or replace function acquired_json(l leases, entry text, now bigint) returns text
language sql stable as $$
  select '{"lease":' || lease_json(l) || ',"ends_in_s":' || ends_in_s(l, now) || coalesce(',"entry":' || entry, '') || '}'
$$;

-- A repetition never takes a lease: it is answered with the one in force, or, when there is none any more, as it was.
create or replace function recall_acquire(c jsonb, note text, now bigint) returns text
language plpgsql as $$
begin
  return (
    select coalesce((
      select acquired_json(l, told_entry(l, now), now)
      from leases as l
      where l.dict = coalesce(c ->> 'dict', '') and l.key = c ->> 'key' and l.until > now and l.capacity is null
        and c -> 'capacity' is null
    ), (
      select granted_json(s, now)
      from shares as s
      where c -> 'capacity' is not null and s.key = c ->> 'key' and s.lease_id = c ->> 'lease_id' and s.token > 0 and s.until > now
    ), note)
  );
end
$$;

-- The names in the order asked, each with its lease where that is still held, its share, or its place in line for one; the rows were locked before.
create or replace function check_leases(c jsonb, now bigint, whole boolean) returns jsonb
language plpgsql as $$
declare
  answer jsonb;
  lost jsonb;
begin
  select coalesce(jsonb_agg(coalesce(to_jsonb(l), to_jsonb(s)) order by n.o), '[]'),
    (array_agg(n.name order by n.o) filter (where l.lease_id is null and coalesce(s.token, 0) = 0))[1]
  into answer, lost
  from jsonb_array_elements(c -> 'names') with ordinality as n (name, o)
  left join lateral (
    select * from leases as l where l.dict = coalesce(n.name ->> 0, '') and l.key = n.name ->> 1 limit 1
  ) as l on l.lease_id = n.name ->> 2 and l.until > now
  left join lateral (
    select * from shares as s where n.name ->> 0 is null and s.key = n.name ->> 1 and s.lease_id = n.name ->> 2 limit 1
  ) as s on s.until > now;
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
  update shares as s
  set until = ends_at
  from jsonb_array_elements(p) as h
  cross join lateral (
    select r.ctid from shares as r where r.key = h ->> 'key' and r.lease_id = h ->> 'lease_id' and r.token > 0 limit 1
  ) as r
  where h ? 'weight' and s.ctid = r.ctid;
  select string_agg(case when h.l = 'null' or h.l -> 'token' = '0' then 'null' else lease_json(jsonb_populate_record(null::leases, h.l || jsonb_build_object('until', ends_at))) end, ',' order by h.o)
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
    select (h.l).dict, (h.l).key, (h.l).holder, (h.l).lease_id
    from (select jsonb_populate_record(null::leases, h.l) as l, h.o from jsonb_array_elements(p) with ordinality as h (l, o) where h.l <> 'null') as h
    order by h.o
  loop
    if held.dict is null then
      perform end_share(held.key, held.lease_id, 'released', null, now);
      continue;
    end if;
    perform append(log_topic(held.dict, held.key), 'released', told_of_lease(held.key, held.holder), now);
    delete from leases where dict = held.dict and key = held.key;
    perform wake('lease:' || held.dict || ':' || held.key, 1);
  end loop;
  select string_agg((h.l <> 'null' and h.l -> 'token' <> '0')::text, ',' order by h.o) into answer from jsonb_array_elements(p) with ordinality as h (l, o);
  return '{"held":[' || coalesce(answer, '') || ']}';
end
$$;

create or replace function answer_look(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
begin
  return (
    select '{"leases":[' || coalesce(string_agg(
      case
        when l.capacity is not null then seen_shares(l.key, now, greatest(100 / jsonb_array_length(c -> 'keys'), 1))
        when l.until > now then '{"lease":' || lease_json(l) || ',"ends_in_s":' || ends_in_s(l, now) || '}'
        else 'null'
      end, ',' order by k.o
    ), '') || ']}'
    from unnest(texts(c -> 'keys')) with ordinality as k (key, o)
    left join lateral (select * from leases as l where l.dict = coalesce(c ->> 'dict', '') and l.key = k.key limit 1) as l on true
  );
end
$$;

-- Who holds a name with capacity, so many at most.
create or replace function seen_shares(of_key text, now bigint, most integer) returns text
language plpgsql stable as $$
begin
  return (
    select coalesce(
      '{"lease":' || (array_agg(share_json(h) order by h.until, h.lease_id))[1] || ',"ends_in_s":' || share_ends_in_s(min(h.until), now)
        || ',"holders":[' || string_agg(share_json(h), ',' order by h.until, h.lease_id) || ']}',
      'null'
    )
    from (
      select * from shares as s where s.key = of_key and (s.place > 0) = false and s.until > now order by s.until, s.lease_id limit most
    ) as h
  );
end
$$;
