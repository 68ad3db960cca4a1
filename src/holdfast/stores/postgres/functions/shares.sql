-- Leases with capacity: who is granted a share, who waits in line, and who is woken when room appears. See commands/shares.py.
--
-- Whoever grants, gives back or resizes has the row of the name in `leases`. Who renews a share has only its own row, so what has ended is
-- locked before it counts as ended.

create or replace function share_json(s shares) returns text
language sql stable as $$
  select json_build_object(
    'dict', null, 'key', s.key, 'holder', s.holder, 'lease_id', s.lease_id, 'token', s.token, 'since', s.since, 'until', s.until
  )::text
$$;

create or replace function share_ends_in_s(ends_at bigint, now bigint) returns text
language sql immutable as $$
  select case when ends_at >= never() then 'null' else seconds_in(greatest(ends_at - now, 0))::text end
$$;

create or replace function told_of_share(s shares) returns text
language sql stable as $$
  select '{"key":' || to_json(s.key) || ',"holder":' || to_json(s.holder) || ',"weight":' || s.weight || '}'
$$;

-- The shares of a name that ended first, and what stands under this id if it has ended. They are locked, until somebody deletes them.
create or replace function ended_shares(of_key text, of_id text, now bigint) returns shares[]
language plpgsql as $$
declare
  ended shares[];
  tickets shares[];
begin
  ended := array(
    select s
    from shares as s
    where s.key = of_key and (s.place > 0) = false and s.until <= now
    order by s.until, s.lease_id
    limit 100
    for update
  );
  tickets := array(
    select s
    from shares as s
    where s.key = of_key and (s.place > 0) = true and s.until <= now
    order by s.until, s.lease_id
    limit 100
    for update
  );
  ended := ended || tickets;
  return ended || array(
    select s
    from shares as s
    where s.key = of_key and s.lease_id = of_id and s.until <= now
      and not exists (select from unnest(ended) as e where e.lease_id = of_id)
    for update
  );
end
$$;

-- The row of a name without these.
create or replace function without_shares(l leases, gone shares[]) returns leases
language plpgsql as $$
begin
  l.used := l.used - (select coalesce(sum(g.weight), 0) from unnest(gone) as g where g.token > 0);
  l.waiting := l.waiting - (select count(*) from unnest(gone) as g where g.token = 0);
  return l;
end
$$;

create or replace function is_kept(l leases) returns boolean
language sql immutable as $$
  select l.used > 0 or l.waiting > 0 or l.resized
$$;

-- The weights of all who wait before a place, or with null of all, as far as there is room for them.
create or replace function weight_ahead(l leases, of_place bigint, now bigint) returns bigint
language plpgsql as $$
declare
  other shares;
  ahead bigint := 0;
begin
  if l.waiting > 0 then
    for other in select * from shares as s where s.key = l.key and s.place > 0 order by s.place limit 1000 loop
      exit when ahead > l.capacity - l.used or other.place >= of_place;
      if other.until > now then
        ahead := ahead + other.weight;
      end if;
    end loop;
  end if;
  return ahead;
end
$$;

-- Wake exactly those in line for whom, behind all before them, there is room.
create or replace function wake_line(l leases, now bigint) returns void
language plpgsql as $$
declare
  other shares;
  room bigint := l.capacity - l.used;
begin
  if l.waiting > 0 then
    for other in select * from shares as s where s.key = l.key and s.place > 0 and s.until > now order by s.place limit 1000 loop
      room := room - other.weight;
      exit when room < 0;
      perform wake('line:' || other.lease_id || ':' || l.key, 1);
    end loop;
  end if;
end
$$;

-- Save the row of a name with capacity, or delete it when nothing is left to be remembered.
create or replace function save_shared(l leases) returns void
language plpgsql as $$
begin
  if is_kept(l) then
    update leases
    set holder = '{shared_holder}', lease_id = '', token = 0, since = 0, until = never(),
      capacity = l.capacity, used = l.used, waiting = l.waiting, last = l.last, resized = l.resized
    where dict = '' and key = l.key;
  else
    delete from leases where dict = '' and key = l.key;
  end if;
end
$$;

-- Forget what has ended, and tell of it.
create or replace function forget_shares(of_key text, ended shares[], now bigint) returns void
language plpgsql as $$
declare
  one shares;
begin
  foreach one in array ended loop
    perform append('lease::' || of_key, 'expired', told_of_share(one), now) where one.token > 0;
    delete from shares where key = of_key and lease_id = one.lease_id;
  end loop;
end
$$;
