-- Survey, Fences, BeginImport, Import, EndImport, Seal: moving everything to another store.

create or replace function answer_survey(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
begin
  return '{"now":' || now || ',"latest":' || latest()
    || ',"next_n":' || (select last_value + is_called::integer from messages_n_seq)
    || ',"held":[' || coalesce((
      select string_agg(h.held, ',')
      from (
        (select lease_json(l) as held from leases as l where l.until > now and l.capacity is null order by l.dict, l.key limit 3)
        union all
        (select share_json(s) from shares as s where s.until > now and s.token > 0 order by s.key, s.lease_id limit 3)
        limit 3
      ) as h
    ), '') || ']}';
end
$$;

create or replace function answer_fences(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
begin
  return '[' || coalesce((
    select string_agg(json_build_array(f.dict, f.key, f.fence)::text, ',' order by f.dict, f.key)
    from (
      select dict, key, fence
      from entries
      where (dict, key) > (coalesce(c #>> '{after,0}', ''), coalesce(c #>> '{after,1}', '')) and fence > 0
      order by dict, key
      limit coalesce((c ->> 'limit')::integer, 1000)
    ) as f
  ), '') || ']';
end
$$;

-- The copy that this store is the target of.
create or replace function running_copy() returns jsonb
language plpgsql as $$
begin
  return (select value::jsonb from meta where name = 'copying' for update);
end
$$;

create or replace function save_meta(of_name text, new_value text) returns void
language plpgsql as $$
begin
  insert into meta (name, value) values (of_name, new_value) on conflict (name) do update set value = excluded.value;
end
$$;

create or replace function write_begin_import(c jsonb, now bigint) returns text
language plpgsql as $$
declare
  running jsonb := running_copy();
  is_empty boolean;
  latest_here bigint := latest();
  next_here bigint := (select last_value + is_called::integer from messages_n_seq);
  floor bigint;
begin
  if running ->> 'source' = c ->> 'source' then
    return running::text;
  elsif running is not null then
    perform refuse('other_copy', jsonb_build_array(running ->> 'source', c ->> 'source'));
  end if;
  is_empty := not exists (select from names) and not exists (select from leases where until > now and capacity is null)
    and not exists (select from shares where until > now and token > 0);
  if not is_empty and not coalesce((c ->> 'merge')::boolean, false) then
    perform refuse('not_empty');
  end if;
  running := jsonb_build_object(
    'source', c ->> 'source', 'offset', now - (c #>> '{survey,now}')::bigint,
    'base', case when is_empty then 0 else next_here end
  );
  perform setval('numbers', greatest(latest_here, (c #>> '{survey,latest}')::bigint, 1));
  perform setval('messages_n_seq', greatest(next_here, (running ->> 'base')::bigint + (c #>> '{survey,next_n}')::bigint));
  floor := append('store', 'copied', '{}', now);
  if (c ->> 'lost')::boolean then
    insert into gaps (n, behind) values (floor, latest_here);
  end if;
  perform save_meta('floor', floor::text), save_meta('copying', running::text);
  return running::text;
end
$$;

-- Below this every log was cut: the numbers before it are another store's.
create or replace function store_floor() returns bigint
language plpgsql stable as $$
begin
  return coalesce((select value::bigint from meta where name = 'floor'), 0);
end
$$;

-- Refuse what is here already; only where the copy is merged with something can anything be.
create or replace function refuse_taken(c jsonb, now bigint) returns void
language plpgsql as $$
declare
  taken text;
begin
  select format('message %s of queue ''%s''', m.id, m.queue) into taken
  from jsonb_to_recordset(coalesce(c -> 'messages', '[]')) as i (queue text, id text)
  cross join lateral (select * from messages as m where m.queue = i.queue and m.id = i.id limit 1) as m
  limit 1;
  if taken is null then
    select format('key %s of queue ''%s''', m.key, m.queue) into taken
    from jsonb_to_recordset(coalesce(c -> 'messages', '[]')) as i (queue text, key text, state text)
    cross join lateral (
      (
        select *
        from messages as m
        where m.queue = i.queue and m.key = i.key and m.key is not null and m.state in ('ready', 'leased')
          and coalesce(i.state, 'ready') in ('ready', 'leased')
        limit 1
      )
      union all
      (select * from messages as m where m.queue = i.queue and m.key = i.key and m.state = 'buffered' and i.state = 'buffered' limit 1)
    ) as m
    limit 1;
  end if;
  if taken is null then
    select format('key %s of dict ''%s''', e.key, e.dict) into taken
    from jsonb_to_recordset(coalesce(c -> 'entries', '[]')) as i (dict text, key text)
    cross join lateral (select * from entries as e where e.dict = i.dict and e.key = i.key limit 1) as e
    where is_there(e, now)
    limit 1;
  end if;
  if taken is not null then
    perform refuse('both_have', jsonb_build_array(taken));
  end if;
end
$$;

create or replace function write_import(c jsonb, now bigint) returns text
language plpgsql as $$
declare
  running jsonb := running_copy();
begin
  if running is null or running ->> 'source' <> c ->> 'source' then
    perform refuse('no_copy', jsonb_build_array(c ->> 'source'));
  elsif coalesce(running ->> 'place', '') = c ->> 'place' then
    return running::text;
  elsif coalesce(running ->> 'place', '') <> c ->> 'after' then
    perform refuse('other_place', jsonb_build_array(c ->> 'source', coalesce(running ->> 'place', ''), c ->> 'after'));
  end if;
  perform import_settings(c);
  perform refuse_taken(c, now);
  insert into messages ({message_columns}, extra)
  overriding system value
  select {message_columns}, extra_of(m.fields)
  from jsonb_array_elements(coalesce(c -> 'messages', '[]')) as m (fields)
  cross join lateral jsonb_populate_record(null::messages, m.fields) as r;
  perform import_lanes(c, now);
  perform resize(r.queue, r.count)
  from (
    select m.queue, count(*) as count
    from jsonb_to_recordset(coalesce(c -> 'messages', '[]')) as m (queue text, state text)
    where m.state = 'ready'
    group by m.queue
  ) as r;

  insert into entries (dict, key, fence)
  select f ->> 0, f ->> 1, (f ->> 2)::bigint
  from jsonb_array_elements(c -> 'fences') as f
  on conflict (dict, key) do update set fence = greatest(entries.fence, excluded.fence);
  insert into entries (dict, key, value, revision, fence, expires_at)
  select e.dict, e.key, e.value, e.revision, coalesce(e.fence, 0), e.expires_at
  from jsonb_populate_recordset(null::entries, coalesce(c -> 'entries', '[]')) as e
  on conflict (dict, key) do update set
    value = excluded.value, revision = excluded.revision, fence = greatest(entries.fence, excluded.fence), expires_at = excluded.expires_at;

  running := running || jsonb_build_object(
    'place', c ->> 'place', 'checksum', c ->> 'checksum',
    'messages', coalesce((running ->> 'messages')::bigint, 0) + jsonb_array_length(coalesce(c -> 'messages', '[]')),
    'entries', coalesce((running ->> 'entries')::bigint, 0) + jsonb_array_length(coalesce(c -> 'entries', '[]'))
  );
  perform save_meta('copying', running::text);
  return running::text;
end
$$;

create or replace function import_settings(c jsonb) returns void
language plpgsql as $$
begin
  insert into names (kind, name, paused, stopped, maxsize, size, created_at, policy, rules, tat, last, throttled_until)
  select s.kind, s.name, coalesce(s.paused, false) or r.is_ruled, case when r.is_ruled then coalesce(s.paused, false) end, s.maxsize, 0, s.created_at,
    s.policy, rules_of(s.policy), coalesce(s.tat, 0), coalesce(s.last, 0), coalesce(s.throttled_until, 0)
  from jsonb_to_recordset(coalesce(c -> 'settings', '[]')) as s (
    kind text, name text, paused boolean, maxsize bigint, created_at bigint, policy jsonb, tat bigint, last bigint, throttled_until bigint
  )
  cross join lateral (select rules_of(s.policy) is not null or coalesce(s.throttled_until, 0) > 0 as is_ruled) as r
  on conflict do nothing;
end
$$;

-- Lanes as they come; then messages take the places that the policies of their queues give them.
create or replace function import_lanes(c jsonb, now bigint) returns void
language plpgsql as $$
declare
  q record;
begin
  insert into lanes (queue, name, tat, throttled_until, own)
  select l.queue, l.name, coalesce(l.tat, 0), coalesce(l.throttled_until, 0), nullif(l.own, '{}')
  from jsonb_to_recordset(coalesce(c -> 'lanes', '[]')) as l (queue text, name text, tat bigint, throttled_until bigint, own jsonb)
  on conflict (queue, name) do update set tat = excluded.tat, throttled_until = excluded.throttled_until, own = excluded.own;
  for q in
    select m.queue, array_agg(m.id) as ids
    from jsonb_to_recordset(coalesce(c -> 'messages', '[]')) as m (queue text, id text)
    group by m.queue
    order by m.queue
  loop
    perform take_in(settings_of(q.queue), q.ids, now);
  end loop;
  perform refresh_lanes(settings_of(l.queue), array_agg(l.name), null, null, now, null)
  from jsonb_to_recordset(coalesce(c -> 'lanes', '[]')) as l (queue text, name text)
  group by l.queue
  order by l.queue;
end
$$;

create or replace function take_in(s names, ids text[], now bigint) returns void
language plpgsql as $$
declare
  slots integer := case when s.policy ->> 'limit' is not null then 2 else 0 end
    + case when s.rules & 2 > 0 or (s.rules & 1 > 0 and s.policy ->> 'group_limit' is not null) then 1 else 0 end;
  taken messages[];
begin
  update messages as m
  set lane = case when m.state in ('ready', 'leased', 'buffered') then lane_of(s, m.extra) end,
    level = case when m.state in ('ready', 'leased') then level_of(s, m.level, h.rank, m.priority, m.position, now) end,
    rank = case when m.state in ('ready', 'leased') then rank_of(s, h.rank, m.priority, m.position, now) end,
    tied = case when m.state = 'leased' then nullif(slots + case when s.rules & 16 > 0 then 4 else 0 end, 0) end
  from unnest(ids) as i (id)
  cross join lateral (
    select h.ctid, case when h.lane = lane_of(s, h.extra) then h.rank end as rank
    from messages as h
    where h.queue = s.name and h.id = i.id
    limit 1
  ) as h
  where m.ctid = h.ctid and (m.lane is not null or s.rules is not null);
  if s.rules & 9 > 0 then
    taken := messages_of(s.name, ids);
    update names
    set live = live + (select count(*) from unnest(taken) as t where t.state = 'leased')
    where kind = 'queue' and name = s.name and s.policy ->> 'limit' is not null;
    perform refresh_lanes(s, array_agg(t.lane), null, array_agg(case when t.state = 'leased' and slots & 1 > 0 then -1 else 0 end), now, null)
    from unnest(taken) as t
    where t.state in ('ready', 'leased');
  end if;
end
$$;

create or replace function write_end_import() returns text
language plpgsql as $$
declare
  running jsonb := running_copy();
begin
  delete from meta where name = 'copying';
  return coalesce(running::text, 'null');
end
$$;

create or replace function lock_tables() returns void
language plpgsql set lock_timeout = '250ms' as $$
begin
  lock table names, messages, entries, leases, events in access exclusive mode;
end
$$;

-- The tables have other names from now on: whoever uses the store notices at the next statement, and nobody else pays for that.
create or replace function write_seal(c jsonb) returns text
language plpgsql as $$
begin
  perform lock_tables();
  if latest() <> (c ->> 'at')::bigint then
    perform refuse('written_meanwhile');
  end if;
  perform save_meta('moved', c ->> 'to');
  if c ->> 'target_at' is not null then
    perform save_meta('target_at', c ->> 'target_at');
  end if;
  alter table names rename to moved_names;
  alter table messages rename to moved_messages;
  alter table entries rename to moved_entries;
  alter table leases rename to moved_leases;
  alter table events rename to moved_events;
  return 'null';
end
$$;
