-- One share at a time, as semaphores and locks with a line use them: a few statements, each answered by an index. A line, shares that have
-- ended, another capacity and whatever else takes more goes on to the full rules.

-- Take a share, or a place in the line.
create or replace function fast_share(
  command_id text, of_key text, of_holder text, of_id text, lease_s double precision, asked bigint, of_weight bigint,
  in_line_s double precision, max_waiters bigint
) returns text
language plpgsql {fast} as $$
declare
  -- Who makes or takes the row of the name has this lock, who gives back has the row: nobody is waited for here.
  is_won boolean := pg_try_advisory_xact_lock(object_lock('lease:', of_key));
  l leases;
  is_free boolean := false;
  now bigint;
begin
  if is_won then
    select * into l from leases where dict = '' and key = of_key for update skip locked;
    now := clock_us();
    if l.key is null then
      is_free := of_weight <= asked and not exists (select from leases where dict = '' and key = of_key);
    else
      is_free := l.capacity = asked and l.waiting = 0 and l.capacity - l.used >= of_weight and not exists (
        select from shares as s where s.key = of_key and (s.place > 0) = false and s.until <= now
      ) and not exists (
        select from shares as s where s.key = of_key and s.lease_id = of_id
      );
    end if;
  end if;
  if is_free then
    return remember(command_id, now, grant_share(of_key, of_holder, of_id, lease_s, asked, of_weight, l.key is null, now));
  end if;
  perform lock_to_take('', of_key);
  now := clock_us();
  return remember(command_id, now, write_share(
    check_share(of_key, of_holder, of_id, lease_s, asked, of_weight, in_line_s, max_waiters, now, false), now
  ));
end
$$;

-- Grant a share for which there is room; the row of the name is locked, or nobody else can make it.
create or replace function grant_share(
  of_key text, of_holder text, of_id text, lease_s double precision, asked bigint, of_weight bigint, is_first boolean, now bigint
) returns text
language plpgsql as $$
declare
  own shares := row(of_key, of_id, of_holder, of_weight, now, end_of(now, lease_s), nextval('numbers'), 0);
  is_watched boolean;
begin
  if is_first then
    insert into leases (dict, key, holder, until, capacity, used, waiting, last, resized)
    values ('', of_key, '{shared_holder}', never(), asked, of_weight, 0, 0, false);
  else
    update leases set used = used + of_weight where dict = '' and key = of_key;
  end if;
  with granted as (
    insert into shares (key, lease_id, holder, weight, since, until, token)
    values (of_key, of_id, of_holder, of_weight, own.since, own.until, own.token)
  )
  insert into events (n, at, topic, event, data)
  values (own.token, now, 'lease::' || of_key, 'acquired', told_of_share(own))
  returning exists (select from listeners where topic = 'watch:lease::' || of_key and until > clock_timestamp()) into is_watched;
  now := case when is_new_moment(now) then keep_moment(now) else now end;
  if is_watched then
    perform wake('watch:lease::' || of_key, {everyone});
  end if;
  return granted_json(own, now);
end
$$;

-- Give a share back, or a place in line; null where the name has no capacity, or nothing is held under this id.
create or replace function release_share(command_id text, of_key text, of_id text) returns text
language plpgsql as $$
declare
  held record;
  now bigint;
begin
  -- The row of the name first, as all others who change shares.
  select s.weight, s.token, s.until, s.holder, l.used, l.waiting, l.resized into held
  from leases as l
  cross join lateral (select * from shares as s where s.key = l.key and s.lease_id = of_id) as s
  where l.dict = '' and l.key = of_key and l.capacity is not null
  for update of l, s;
  now := clock_us();
  if (held.until > now) is not true then
    return null;
  elsif held.token = 0 or held.waiting > 0 then
    perform end_share(of_key, of_id, 'released', null, now);
    return remember(command_id, now, '{"held":[' || (held.token > 0) || ']}');
  end if;
  if held.used > held.weight or held.resized then
    update leases set used = used - held.weight where dict = '' and key = of_key;
  else
    delete from leases where dict = '' and key = of_key;
  end if;
  with gone as (
    delete from shares where key = of_key and lease_id = of_id returning told_of_share(shares) as told
  )
  insert into events (n, at, topic, event, data)
  select nextval('numbers'), now, 'lease::' || of_key, 'released', gone.told
  from gone;
  now := case when is_new_moment(now) then keep_moment(now) else now end;
  perform hint(topic, 1)
  from listeners
  where topic in ('lease::' || of_key, 'watch:lease::' || of_key) and until > clock_timestamp();
  return remember(command_id, now, '{"held":[true]}');
end
$$;
