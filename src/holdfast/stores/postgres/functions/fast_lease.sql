-- One lease at a time, as locks and elections use them: a few statements, each answered by an index. Whatever takes more goes on to execute().
--
-- An answer that tells of no change is not kept: whoever did not hear it asks anew.

-- Take a lease that nobody has, or say who holds it.
create or replace function fast_acquire(
  command_id text, of_dict text, of_key text, of_holder text, of_id text, lease_s double precision
) returns text
language plpgsql {fast} as $$
declare
  is_won boolean;
  current leases;
  now bigint;
begin
  if of_dict <> '' then
    perform pg_advisory_xact_lock_shared(object_lock('dict', of_dict));
  end if;
  -- Whoever makes a lease's row has this lock till the end of the transaction: with the lock and without a row, the lease is won.
  is_won := pg_try_advisory_xact_lock(object_lock('lease:' || of_dict, of_key));
  select * into current from leases where dict = of_dict and key = of_key;
  now := clock_us();
  if current.until > now and current.capacity is null then
    -- Nobody is waited for: whoever is about to end it wakes others with his commit.
    return acquired_json(current, told_entry(current, now), now);
  end if;
  if current.key is not null or not is_won then
    return execute(jsonb_build_object(
      'type', 'Acquire', 'id', command_id, 'dict', nullif(of_dict, ''), 'key', of_key, 'holder', of_holder, 'lease_id', of_id,
      'lease_s', lease_s
    ), '{}', case when of_dict = '' then '[]' else only_object('dict', of_dict) end);
  end if;
  current := row(of_dict, of_key, of_holder, of_id, nextval('numbers'), now, end_of(now, lease_s));
  insert into leases (dict, key, holder, lease_id, token, since, until)
  values (of_dict, of_key, of_holder, of_id, current.token, now, current.until);
  insert into events (n, at, topic, event, data)
  values (current.token, now, log_topic(of_dict, of_key), 'acquired', told_of_lease(of_key, of_holder));
  perform keep_moment(now);
  perform hint(topic, {everyone}) from listeners where topic = 'watch:' || log_topic(of_dict, of_key) and until > clock_timestamp();
  return remember(command_id, now, acquired_json(current, told_entry(current, now), now));
end
$$;

-- Keep a lease that is still held. Twice does no harm, so this answer is never kept.
create or replace function fast_renew(of_dict text, of_key text, of_id text, lease_s double precision) returns text
language plpgsql {fast} as $$
declare
  renewed text;
begin
  update leases as l
  set until = end_of(clock_us(), lease_s)
  where l.dict = of_dict and l.key = of_key and l.lease_id = of_id and l.until > clock_us()
  returning lease_json(l) into renewed;
  if renewed is null and of_dict = '' then
    update shares as s
    set until = end_of(clock_us(), lease_s)
    where s.key = of_key and s.lease_id = of_id and s.token > 0 and s.until > clock_us()
    returning share_json(s) into renewed;
  end if;
  return '{"leases":[' || coalesce(renewed, 'null') || ']}';
end
$$;

-- Give a lease back that is still held.
create or replace function fast_release(command_id text, of_dict text, of_key text, of_id text) returns text
language plpgsql {fast} as $$
declare
  now bigint;
begin
  if of_dict <> '' then
    perform pg_advisory_xact_lock_shared(object_lock('dict', of_dict));
  end if;
  with gone as (
    delete from leases as l
    where l.dict = of_dict and l.key = of_key and l.lease_id = of_id and l.until > clock_us()
    returning l.holder
  )
  insert into events (n, at, topic, event, data)
  select nextval('numbers'), clock_us(), log_topic(of_dict, of_key), 'released', told_of_lease(of_key, gone.holder)
  from gone
  returning at into now;
  if now is null then
    return coalesce(case of_dict when '' then release_share(command_id, of_key, of_id) end, '{"held":[false]}');
  end if;
  -- Those who wait and those who watch, with one look at who does.
  perform hint(topic, 1)
  from listeners
  where topic in ('lease:' || of_dict || ':' || of_key, 'watch:' || log_topic(of_dict, of_key)) and until > clock_timestamp();
  return remember(command_id, now, '{"held":[true]}');
end
$$;
