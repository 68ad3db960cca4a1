-- What is done to leases with capacity: Acquire, Release and Resize. See commands/shares.py.

-- Whether there is room for the caller, behind all who came before; the row of the name is locked. The plan has
--   answer   of whoever has its share already, or is not granted one
--   row      the row of the name as it will be
--   ended    what is forgotten
--   share    the place in line that is kept, or the share that is granted, but for its token
--   before   who had a plain lease that has ended
create or replace function check_share(
  of_key text, of_holder text, of_id text, lease_s double precision, asked bigint, of_weight bigint, in_line_s double precision,
  max_waiters bigint, now bigint, whole boolean
) returns jsonb
language plpgsql as $$
declare
  l leases;
  own shares;
  ended shares[] := '{}';
  before text;
begin
  select * into l from leases where dict = '' and key = of_key;
  if l.capacity is null then
    if l.until > now then
      perform refuse('plain_lease', jsonb_build_array(lease_json(l)::jsonb));
    end if;
    before := nullif(l.holder, '');
    l := (select r from jsonb_populate_record(l, jsonb_build_object(
      'dict', '', 'key', of_key, 'capacity', asked, 'used', 0, 'waiting', 0, 'last', 0, 'resized', false
    )) as r);
  else
    select * into own from shares where key = of_key and lease_id = of_id;
    if own.until > now and own.token > 0 then
      return jsonb_build_object('answer', granted_json(own, now));
    end if;
    ended := ended_shares(of_key, of_id, now);
    l := without_shares(l, ended);
    if not l.resized and l.capacity <> asked then
      if is_kept(l) then
        perform refuse('other_capacity', jsonb_build_array(of_key, l.capacity, asked));
      end if;
      l.capacity := asked;
    end if;
    if of_weight > l.capacity then
      perform refuse('too_heavy', jsonb_build_array(of_key, of_weight, l.capacity));
    end if;
    if own.lease_id is not null and own.until <= now then
      own := null;
    end if;
  end if;
  if l.capacity - l.used - weight_ahead(l, own.place, now) < of_weight then
    return refused_share(l, own, ended, of_holder, of_id, of_weight, in_line_s, max_waiters, now, whole);
  end if;
  l.used := l.used + of_weight;
  l.waiting := l.waiting - (own.place is not null)::integer;
  own := row(of_key, of_id, of_holder, of_weight, now, end_of(now, lease_s), 0, 0);
  return jsonb_build_object('row', to_jsonb(l), 'ended', to_jsonb(ended), 'share', to_jsonb(own), 'before', before);
end
$$;

-- Say who is in the way, and keep the caller's place in the line if it wants one.
create or replace function refused_share(
  l leases, own shares, ended shares[], of_holder text, of_id text, of_weight bigint, in_line_s double precision, max_waiters bigint,
  now bigint, whole boolean
) returns jsonb
language plpgsql as $$
declare
  holders text;
  in_the_way shares[];
  lease text;
  ends text;
  first bigint;
  answer text;
begin
  in_the_way := array(
    select s from shares as s where s.key = l.key and (s.place > 0) = false and s.until > now order by s.until, s.lease_id limit 100
  );
  holders := '[' || array_to_string(array(
    select share_json(in_the_way[i]) from generate_subscripts(in_the_way, 1) as i order by i
  ), ',') || ']';
  in_the_way := in_the_way[:1] || array(
    select s
    from shares as s
    where s.key = l.key and (s.place > 0) = true and s.until > now and s.lease_id <> of_id
    order by s.until, s.lease_id
    limit 1
  );
  first := (select s.place from shares as s where s.key = l.key and s.place > 0 and s.until > now order by s.place limit 1);
  -- Where only what has ended is in the way, more than is forgotten at once, the next one to ask goes on.
  lease := share_json(coalesce(in_the_way[1], row(l.key, '', '', 0, now, now, 0, 0)::shares));
  ends := share_ends_in_s(coalesce((select min(w.until) from unnest(in_the_way) as w), now), now);
  perform refuse('shares_held', jsonb_build_array(l.key, lease::jsonb, ends::jsonb, holders::jsonb)) where whole;
  answer := '{"lease":' || lease || ',"ends_in_s":' || ends || ',"holders":' || holders;
  if in_line_s is null then
    return jsonb_build_object('row', to_jsonb(l), 'ended', to_jsonb(ended), 'answer', answer || '}');
  end if;
  if own.place is null then
    perform refuse('line_full', jsonb_build_array(l.key, l.waiting, lease::jsonb, ends::jsonb, holders::jsonb))
    where l.waiting >= max_waiters;
    l.waiting := l.waiting + 1;
    l.last := l.last + 1;
    own.place := l.last;
    own.since := now;
  end if;
  own := row(l.key, of_id, of_holder, of_weight, own.since, end_of(now, in_line_s), 0, own.place);
  answer := answer || ',"place":' || own.place - coalesce(first, own.place) + 1 || '}';
  return jsonb_build_object('row', to_jsonb(l), 'ended', to_jsonb(ended), 'share', to_jsonb(own), 'answer', answer);
end
$$;

create or replace function granted_json(s shares, now bigint) returns text
language sql stable as $$
  select '{"lease":' || share_json(s) || ',"ends_in_s":' || share_ends_in_s(s.until, now) || '}'
$$;

create or replace function write_share(p jsonb, now bigint) returns text
language plpgsql as $$
declare
  l leases := jsonb_populate_record(null::leases, p -> 'row');
  own shares := jsonb_populate_record(null::shares, p -> 'share');
  ended shares[] := array(select e from jsonb_populate_recordset(null::shares, coalesce(p -> 'ended', '[]')) as e);
  topic text := 'lease::' || own.key;
begin
  if p -> 'row' is null then
    return p ->> 'answer';
  end if;
  if p ->> 'before' is not null then
    perform append(topic, 'expired', told_of_lease(own.key, p ->> 'before'), now);
  end if;
  perform forget_shares(l.key, ended, now);
  perform save_shared(l);
  if p ->> 'answer' is null then
    own.token := append(topic, 'acquired', told_of_share(own), now);
  end if;
  if own.key is not null then
    insert into shares (key, lease_id, holder, weight, since, until, token, place)
    values (own.key, own.lease_id, own.holder, own.weight, own.since, own.until, own.token, own.place)
    on conflict (key, lease_id) do update set
      holder = excluded.holder, weight = excluded.weight, since = excluded.since, until = excluded.until, token = excluded.token,
      place = excluded.place;
  end if;
  perform wake_line(l, now) where cardinality(ended) > 0;
  return coalesce(p ->> 'answer', granted_json(own, now));
end
$$;

-- Give a share back, or a place in the line, and wake those who fit now; the row of the name is locked.
create or replace function end_share(of_key text, of_id text, event text, reason text, now bigint) returns void
language plpgsql as $$
declare
  gone shares;
  l leases;
begin
  delete from shares where key = of_key and lease_id = of_id returning * into gone;
  if gone.key is null then
    return;
  end if;
  select * into l from leases where dict = '' and key = of_key;
  l := without_shares(l, array[gone]);
  if gone.token > 0 then
    perform append('lease::' || of_key, event, with_reason(told_of_share(gone), reason), now);
    perform wake('lease::' || of_key, 1);
  end if;
  perform save_shared(l);
  perform wake_line(l, now);
end
$$;

create or replace function check_resize(c jsonb, now bigint) returns jsonb
language plpgsql as $$
declare
  l leases;
  ended shares[] := '{}';
begin
  select * into l from leases where dict = '' and key = c ->> 'key';
  if l.capacity is not null then
    ended := ended_shares(l.key, null, now);
    l := without_shares(l, ended);
  elsif l.until > now then
    perform refuse('plain_lease', jsonb_build_array(lease_json(l)::jsonb));
  elsif c ->> 'capacity' is null then
    return null;
  else
    l.used := 0;
    l.waiting := 0;
    l.last := 0;
  end if;
  l.capacity := coalesce((c ->> 'capacity')::bigint, l.capacity);
  l.resized := c ->> 'capacity' is not null;
  return jsonb_build_object('row', to_jsonb(l), 'ended', to_jsonb(ended));
end
$$;

create or replace function write_resize(c jsonb, p jsonb, now bigint) returns text
language plpgsql as $$
declare
  l leases := jsonb_populate_record(null::leases, p -> 'row');
begin
  if p is null then
    -- What was only there to be locked.
    delete from leases where dict = '' and key = c ->> 'key' and lease_id = '';
    return '{}';
  end if;
  perform forget_shares(l.key, array(select e from jsonb_populate_recordset(null::shares, p -> 'ended') as e), now);
  perform save_shared(l);
  perform append('lease::' || l.key, 'resized', '{"key":' || to_json(l.key) || ',"capacity":' || coalesce(c ->> 'capacity', 'null') || '}', now);
  perform wake_line(l, now);
  return '{"capacity":' || case when is_kept(l) then l.capacity::text else 'null' end || ',"used":' || l.used || '}';
end
$$;
