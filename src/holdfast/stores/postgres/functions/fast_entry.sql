-- One entry at a time, as most programs use dicts: a few statements, each answered by an index. Whatever takes more goes on to execute().
--
-- An answer that tells of no change is not kept: whoever did not hear it asks anew.

-- Change an entry, if nothing stands in the way. `given` is the new value, or what to add to the old one.
create or replace function fast_write(
  command_id text, of_dict text, of_key text, act text, given text, expect text, expected text, at_revision bigint, of_lease text,
  of_fence bigint, ttl_s double precision
) returns text
language plpgsql {fast} as $$
declare
  e entries;
  lease_ends_at bigint;
  now bigint;
  was_there boolean;
  because text;
  answer text;
begin
  if of_fence is not null then
    perform refuse_foreign_fence(of_dict, of_key, of_fence);
  end if;
  perform pg_advisory_xact_lock_shared(object_lock('dict', of_dict));
  e := lock_entry(of_dict, of_key);
  if of_lease is not null then
    -- As lock_leases does.
    select until into lease_ends_at from leases where dict = of_dict and key = of_key and lease_id = of_lease for key share;
  end if;
  now := clock_us();
  was_there := is_there(e, now);
  because := what_hinders(e, was_there, of_lease is null or lease_ends_at > now, of_fence, expect, expected, at_revision);
  answer := changed_json(e, was_there, because, act, given, of_fence, ttl_s, now);
  if because <> '' or act = 'compare' then
    return '[' || answer || ']';
  end if;
  return remember(command_id, now, '[' || answer || ']');
end
$$;

-- A checkpoint of a durable job: renew a claim and change an entry, both or neither. What refuses it is what refuses the same step elsewhere.
create or replace function fast_checkpoint(
  command_id text, of_queue text, of_id text, of_token bigint, lease_s double precision, gets_on boolean, of_dict text, of_key text, act text,
  given text, expect text, expected text, at_revision bigint, of_lease text, of_fence bigint, ttl_s double precision
) returns text
language plpgsql {fast} as $$
declare
  -- In the order of execute(): dicts before queues, messages before entries before leases, and the clock behind them all.
  dict_shared text := pg_advisory_xact_lock_shared(object_lock('dict', of_dict));
  queue_shared text := pg_advisory_xact_lock_shared(object_lock('queue', of_queue));
  m record;
  e entries;
  lease_ends_at bigint;
  now bigint;
  was_there boolean;
  because text;
  answer text;
begin
  select h.ctid, h.state, h.token, h.until into m from messages as h where h.queue = of_queue and h.id = of_id for update;
  e := lock_entry(of_dict, of_key);
  if of_lease is not null then
    select until into lease_ends_at from leases where dict = of_dict and key = of_key and lease_id = of_lease for key share;
  end if;
  now := clock_us();
  if is_held(m.state, m.token, m.until, of_token, now) is not true then
    perform refuse('claims_lost', jsonb_build_array(jsonb_build_array(jsonb_build_array(of_queue, of_id, of_token)), 1));
  elsif of_fence is not null then
    perform refuse_foreign_fence(of_dict, of_key, of_fence);
  end if;
  was_there := is_there(e, now);
  because := what_hinders(e, was_there, of_lease is null or lease_ends_at > now, of_fence, expect, expected, at_revision);
  if because <> '' then
    perform refuse('not_written', jsonb_build_array(of_dict, of_key, because, of_lease));
  end if;
  answer := '[' || changed_json(e, was_there, because, act, given, of_fence, ttl_s, now) || ']';
  update messages as h
  set until = end_of(now, lease_s), failures = case when gets_on then 0 else h.failures end
  where h.ctid = m.ctid;
  perform remember(command_id, now, to_json(array['{"held":[true]}', answer])::text);
  return '[{"held":[true]},' || answer || ']';
end
$$;

-- Change an entry that is locked, unless something stands in the way; the answer.
create or replace function changed_json(
  e entries, was_there boolean, because text, act text, given text, of_fence bigint, ttl_s double precision, now bigint
) returns text
language plpgsql as $$
begin
  if because <> '' or act = 'compare' then
    if e.value is null and e.fence = 0 then
      delete from entries where dict = e.dict and key = e.key;
    end if;
    return written_json(e, was_there, because);
  elsif act = 'delete' then
    return deleted_json(e, was_there, of_fence, now);
  end if;
  if e.value is null then
    insert into names (kind, name, created_at) values ('dict', e.dict, now) on conflict do nothing;
  end if;
  e.value := case act when 'put' then given else incremented(e.dict, e.key, given, case when was_there then e.value else '0' end) end;
  e.fence := greatest(of_fence, e.fence);
  e.expires_at := now + moment_in(ttl_s);
  e.revision := nextval('numbers');
  update entries
  set value = e.value, revision = e.revision, fence = e.fence, expires_at = e.expires_at
  where dict = e.dict and key = e.key;
  insert into events (n, at, topic, event, data)
  values (e.revision, now, 'dict:' || e.dict, 'written', told_of_entry(e.key, e.value));
  perform keep_moment(now);
  perform hint(topic, {everyone}) from listeners where topic = 'watch:dict:' || e.dict and until > clock_timestamp();
  return written_json(e, true, '');
end
$$;

-- Delete an entry that is locked. Under a fence even what is absent is kept: a stale holder must not write it afterwards.
create or replace function deleted_json(e entries, was_there boolean, of_fence bigint, now bigint) returns text
language plpgsql as $$
begin
  e.fence := greatest(of_fence, e.fence);
  if was_there then
    perform append('dict:' || e.dict, 'deleted', '{"key":' || to_json(e.key) || '}', now);
  end if;
  if e.fence = 0 then
    delete from entries where dict = e.dict and key = e.key;
  else
    update entries set value = null, expires_at = null, fence = e.fence where dict = e.dict and key = e.key;
  end if;
  return written_json(e, was_there, '');
end
$$;

-- A number may be drawn only once its row is won, so there is one, if need be an empty one. What is deleted meanwhile is made again.
create or replace function lock_entry(of_dict text, of_key text) returns entries
language plpgsql as $$
declare
  e entries;
begin
  for attempt in 1 .. 100 loop
    select * into e from entries where dict = of_dict and key = of_key for update;
    if not found then
      insert into entries (dict, key) values (of_dict, of_key) on conflict do nothing returning * into e;
    end if;
    exit when found;
  end loop;
  return e;
end
$$;

-- Look entries up by key, for nobody who goes on with a watch.
create or replace function fast_read(of_dict text, keys text[]) returns text
language plpgsql {fast} as $$
declare
  now bigint := clock_us();
  page text;
begin
  if cardinality(keys) <> 1 then
    return answer_read(jsonb_build_object('dict', of_dict, 'keys', keys), now, 0);
  end if;
  select entry_json(e) into page from entries as e where e.dict = of_dict and e.key = keys[1] and is_there(e, now);
  return '{"entries":[' || coalesce(page, '') || '],"index":' || latest() || '}';
end
$$;
