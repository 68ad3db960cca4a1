-- What becomes of messages: how they are told, promoted, ended and moved. The commands on queues are made of these.

-- A message as JSON; what is as it is in most messages is left out. A null among the parts of concat() is nothing.
create or replace function message_json(m messages) returns text
language sql stable as $$
  select concat(
    '{"queue":', to_json(m.queue), ',"state":"', m.state, '"',
    case when m.token <> 0 then concat(',"holder":', to_json(m.holder), ',"token":', m.token, ',"since":', m.since, ',"until":', m.until) end,
    case when m.expired_to <> 'place' then concat(',"expired_to":"', m.expired_to, '"') end,
    message_facts(m)
  )
$$;

-- How much of an answer a message takes. Its columns, since a row that is passed on would be read whole.
create or replace function message_bytes(value text, metadata text, last_error text, history text[]) returns bigint
language sql stable as $$
  select octet_length(value)::bigint + coalesce(octet_length(metadata), 0) + coalesce(octet_length(last_error), 0)
    + coalesce(pg_column_size(history), 0)
$$;

-- The rest of a message's JSON, which is its own: what is before it, all messages of one claim have in common.
create or replace function message_facts(m messages) returns text
language sql stable as $$
  select concat(
    ',"id":', to_json(m.id), ',"n":', m.n, ',"position":', m.position, ',"attempts":', m.attempts, ',"created_at":', m.created_at,
    ',"key":' || to_json(m.key),
    case when m.priority <> 0 then concat(',"priority":', m.priority) end,
    ',"max_attempts":' || m.max_attempts,
    ',"dead_letter":' || to_json(m.dead_letter),
    ',"start_by":' || m.start_by,
    ',"metadata":' || m.metadata,
    ',' || substr(m.extra::text, 2, length(m.extra::text) - 2),
    case when m.endings <> 0 or m.failures <> 0 or m.dead_at is not null then concat(
      case when m.failures <> 0 then concat(',"failures":', m.failures) end,
      ',"dead_at":' || m.dead_at,
      ',"last_error":' || to_json(m.last_error),
      case when m.endings <> 0 then concat(',"endings":', m.endings) end,
      ',"history":[' || array_to_string(m.history, ',') || ']'
    ) end,
    ',"value":', m.value, '}'
  )
$$;

create or replace function is_late(m messages, now bigint) returns boolean
language sql immutable as $$
  select m.start_by is not null and m.start_by <= now and m.attempts = 0
$$;

-- The first write to a queue creates it.
create or replace function create_queue(queue text, now bigint) returns void
language plpgsql as $$
begin
  if not exists (select from names where kind = 'queue' and name = queue) then
    insert into names (kind, name, created_at) values ('queue', queue, now) on conflict do nothing;
  end if;
end
$$;

-- Keep count of the ready messages of a bounded queue, whose row this transaction has locked before.
create or replace function resize(queue text, delta bigint) returns void
language plpgsql as $$
begin
  if delta = 0 then
    return;
  end if;
  update names
  set size = size + delta
  where kind = 'queue' and name = queue and maxsize is not null;
  if found and delta < 0 then
    perform wake('room:' || queue, -delta);
  end if;
end
$$;

-- Wake those who wait for what became ready, now or later.
create or replace function announce(queue text, keys text[], count bigint) returns void
language plpgsql as $$
begin
  if count > 0 then
    perform wake('queue:' || queue, count);
    perform wake('key:' || queue || ':' || k, 1) from unnest(keys) as k where k is not null;
  end if;
end
$$;

-- Remove messages that are ours.
create or replace function remove(of_queue text, ids text[]) returns void
language plpgsql as $$
begin
  if ids <> '{}' then
    delete from messages as m
    using unnest(ids) as i (id)
    cross join lateral (select h.ctid from messages as h where h.queue = of_queue and h.id = i.id limit 1) as h
    where m.ctid = h.ctid;
  end if;
end
$$;

-- Let the buffered copy under each key be claimed, where no other message of the key is alive.
create or replace function promote(queue text, keys text[]) returns void
language plpgsql as $$
declare
  promoted text[];
begin
  if array_remove(keys, null) = '{}' then
    return;
  end if;
  with changed as (
    update messages as m
    set state = 'ready'
    from (select distinct u.key from unnest(keys) as u (key)) as k
    cross join lateral (
      select c.ctid from messages as c where c.queue = promote.queue and c.key = k.key and c.state = 'buffered' limit 1
    ) as c
    where m.ctid = c.ctid
      and not exists (
        select
        from messages as first
        where first.queue = promote.queue and first.key = m.key and first.key is not null and first.state in ('ready', 'leased')
      )
    returning m.key
  )
  select array_agg(key) into promoted from changed;
  if promoted is not null then
    perform resize(queue, cardinality(promoted));
    perform announce(queue, promoted, cardinality(promoted));
  end if;
end
$$;

create or replace function head_position(of_queue text, of_priority integer, now bigint) returns bigint
language plpgsql stable as $$
begin
  return (
    select position
    from messages
    where queue = of_queue and state = 'ready' and priority = of_priority and (start_by is null or start_by > now or attempts > 0)
    order by position
    limit 1
  );
end
$$;

-- Where a message goes that is no longer held; `back` is the moment that the back of the line means, `head` where the line begins.
create or replace function position_in(return_to text, was_at bigint, head bigint, back bigint, delay bigint, now bigint) returns bigint
language sql immutable as $$
  select case return_to
    when 'back' then back + delay
    when 'place' then case when delay > 0 then greatest(was_at, now + delay) else was_at end
    else coalesce(least(head - 1, now), now) + delay
  end
$$;

-- What a message remembers of the claims on it, once another has ended.
create or replace function history_with(
  history text[], holder text, token bigint, since bigint, ended_at bigint, how text, error text
) returns text[]
language sql stable as $$
  select (history || json_build_array(holder, token, since, ended_at, how, error)::text)[greatest(1, coalesce(cardinality(history), 0) - {history} + 2):]
$$;

-- Carry fates out. `how` each claim ended and with what error becomes part of the message's history; a null `ended_at` is the lease's end.
create or replace function end_claims(
  of_queue text, fates fate[], failed boolean, how text, ended_at bigint, error text, now bigint
) returns void
language plpgsql as $$
declare
  f fate;
begin
  foreach f in array fates loop
    if f.fate = 'gone' then
      delete from messages as m where m.queue = of_queue and m.id = f.id;
    elsif f.fate in ('back', 'dead') then
      update messages as m
      set
        state = case f.fate when 'back' then 'ready' else 'dead' end::state,
        position = coalesce(f.position, m.position),
        dead_at = case f.fate when 'back' then m.dead_at else now end,
        failures = m.failures + failed::integer,
        endings = m.endings + 1,
        last_error = coalesce(error, m.last_error),
        history = history_with(m.history, m.holder, m.token, m.since, coalesce(ended_at, m.until), how, error)
      where m.queue = of_queue and m.id = f.id;
    end if;
  end loop;
end
$$;

-- Move the dead letters among the fates to their places and tell of all burials: first the dead of this queue, then place by place.
create or replace function bury(of_queue text, fates fate[], failed boolean, error text, now bigint) returns void
language plpgsql as $$
declare
  grave record;
  moved record;
  new_id text;
  new_ids text[];
begin
  perform append('queue:' || of_queue, 'buried', told(array_agg(f.id order by o), array_agg(f.key order by o)), now)
  from unnest(fates) with ordinality as f (id, key, fate, position, place, o)
  where f.fate = 'dead'
  having count(*) > 0;
  for grave in
    select f.place, array_agg(f.id order by o) as ids, array_agg(f.key order by o) as keys
    from unnest(fates) with ordinality as f (id, key, fate, position, place, o)
    where f.fate = 'moved'
    group by f.place
    order by min(o)
  loop
    perform create_queue(grave.place, now);
    new_ids := '{}';
    for moved in
      select m.*
      from unnest(grave.ids) with ordinality as g (id, o)
      cross join lateral (select * from messages as m where m.queue = of_queue and m.id = g.id limit 1) as m
      order by g.o
    loop
      -- A dead letter whose id is taken where it goes gets one of its own, so that neither is lost.
      new_id := moved.id;
      for number in 2 .. 1000000 loop
        exit when not exists (select from messages where queue = grave.place and id = new_id);
        new_id := moved.id || '~' || number;
      end loop;
      new_ids := new_ids || new_id;
      update messages
      set
        queue = grave.place, id = new_id, key = null, state = 'ready', position = now, attempts = 0, failures = 0,
        max_attempts = null, dead_letter = null, start_by = null, holder = '', token = 0, since = 0, until = 0, expired_to = 'place',
        dead_at = null, last_error = null, endings = 0, history = null,
        metadata = dead_letter_metadata(
          moved.metadata, of_queue, moved.key, moved.attempts, moved.failures + failed::integer, coalesce(error, moved.last_error),
          now + wall_offset_us()
        )
      where queue = of_queue and id = moved.id;
    end loop;
    perform append('queue:' || of_queue, 'buried', told(grave.ids, grave.keys, ',"dead_letter":' || to_json(grave.place)), now);
    perform append('queue:' || grave.place, 'put', told(new_ids, '{}'), now);
    perform resize(grave.place, cardinality(new_ids));
    perform announce(grave.place, '{}', cardinality(new_ids));
  end loop;
end
$$;

-- Let others have what the fates leave to them: the copies behind those that are gone, and what is back in line.
create or replace function pass_on(of_queue text, fates fate[]) returns void
language plpgsql as $$
begin
  perform promote(of_queue, array_agg(f.key)) from unnest(fates) as f where f.fate <> 'back' having count(*) > 0;
  perform resize(of_queue, count(*)), announce(of_queue, array_agg(f.key), count(*))
  from unnest(fates) as f
  where f.fate = 'back'
  having count(*) > 0;
end
$$;

-- The metadata as an object; what is none, or cannot be taken apart, becomes a text in one. Written before metadata was checked, it may
-- be anything, and one message must not fail a claim.
create or replace function readable_metadata(metadata text) returns json
language plpgsql immutable as $$
begin
  perform from json_each(metadata::json);
  return metadata::json;
exception when others then
  raise warning 'the metadata of a message cannot be read: it is kept as a text under "unreadable" (%)', sqlerrm;
  return json_build_object('unreadable', metadata);
end
$$;

-- The metadata with a report that says where the message came from and why; keys sorted, as the codec sorts them.
create or replace function dead_letter_metadata(
  metadata text, queue text, key text, attempts integer, failures integer, error text, wall_at bigint
) returns text
language plpgsql immutable as $$
begin
  return (
    select '{' || string_agg(to_json(k)::text || ':' || v, ',' order by k collate "C") || '}'
    from (
      -- A text cannot hold the character 0, which JSON may, and taking JSON apart makes texts of it: it is called another name meanwhile.
      select m.key as k, replace(m.value::text, '\uE000', '\u0000') as v
      from json_each(case when metadata is null then '{}' else readable_metadata(replace(metadata, '\u0000', '\uE000')) end) as m
      where m.key <> 'dead_letter'
      union all
      select 'dead_letter', '{"at":' || float_text(wall_at / 1000000::double precision) || ',"attempts":' || attempts
        || ',"error":' || json_text(error) || ',"failures":' || failures
        || coalesce(',"key":' || to_json(key), '') || ',"queue":' || to_json(queue) || '}'
    ) as facts
  );
end
$$;

-- A number as Python's JSON has it: a float shows that it is one.
create or replace function float_text(number double precision) returns text
language sql immutable as $$
  select case
    when abs(number) >= 1e16 or (number <> 0 and abs(number) < 1e-5) then replace(number::text, 'e+', 'e')
    when number = trunc(number) then number::text::numeric::text || '.0'
    else number::text::numeric::text
  end
$$;
