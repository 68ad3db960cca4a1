-- What becomes of messages: how they are told, added and promoted. The commands on queues are made of these.

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

-- The rest of a message's JSON, which is its own: what is before it, all messages of one claim have in common. What few messages have is put
-- together elsewhere: this is a part of the statements that claim, and each of them prepares all of it.
create or replace function message_facts(m messages) returns text
language sql stable as $$
  select concat(
    ',"id":', to_json(m.id), ',"n":', m.n, ',"position":', m.position, ',"attempts":', m.attempts, ',"created_at":', m.created_at,
    ',"key":' || to_json(m.key),
    ',"priority":' || nullif(m.priority, 0),
    ',"max_attempts":' || m.max_attempts,
    ',"metadata":' || m.metadata,
    case when num_nonnulls(m.dead_letter, m.start_by, m.extra, m.lane, m.tied, m.ended_at, m.trace, m.dead_at, nullif(m.endings + m.failures, 0)) > 0
      then rare_facts(
        m.dead_letter, m.start_by, m.extra, m.lane, m.level, m.rank, m.tied, m.ended_at, m.trace, m.failures, m.dead_at, m.last_error, m.endings, m.history
      )
    end,
    ',"value":', m.value, '}'
  )
$$;

create or replace function rare_facts(
  dead_letter text, start_by bigint, extra jsonb, lane text, level integer, rank bigint, tied integer, ended_at bigint, trace text,
  failures integer, dead_at bigint, last_error text, endings integer, history text[]
) returns text
language plpgsql stable as $$
declare
  facts text := concat(
    ',"dead_letter":' || to_json(dead_letter), ',"start_by":' || start_by, ',' || substr(extra::text, 2, length(extra::text) - 2)
  );
begin
  if num_nonnulls(lane, tied, ended_at, trace) > 0 then
    facts := concat(
      facts, ',"lane":' || to_json(lane), ',"level":' || nullif(level, 0), ',"rank":' || rank, ',"tied":' || tied,
      ',"ended_at":' || ended_at, ',"trace":' || to_json(trace)
    );
  end if;
  if endings <> 0 or failures <> 0 or dead_at is not null then
    facts := concat(
      facts, ',"failures":' || nullif(failures, 0), ',"dead_at":' || dead_at, ',"last_error":' || to_json(last_error),
      ',"endings":' || nullif(endings, 0), ',"history":[' || array_to_string(history, ',') || ']'
    );
  end if;
  return facts;
end
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
create or replace function promote(queue text, keys text[], now bigint, number bigint default null) returns void
language plpgsql as $$
declare
  s names;
  promoted text[];
  of_lanes text[];
  ranks bigint[];
begin
  if (array_remove(keys, null) <> '{}') is not true then
    return;
  end if;
  s := settings_of(queue);
  with changed as (
    update messages as m
    set state = 'ready', lane = lane_of(s, m.extra), level = level_of(s, m.level, m.rank, m.priority, m.position, now),
      rank = rank_of(s, m.rank, m.priority, m.position, now)
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
    returning m.key, m.lane, m.rank
  )
  select array_agg(c.key), array_agg(c.lane), array_agg(c.rank) into promoted, of_lanes, ranks from changed as c;
  if promoted is not null then
    perform resize(queue, cardinality(promoted)), arrive(s, promoted, of_lanes, ranks, now, number);
  end if;
end
$$;

-- Tell those who wait of messages that became ready, now or later: by their keys, and those who wait for any, where their lanes are open.
create or replace function arrive(s names, keys text[], of_lanes text[], ranks bigint[], now bigint, number bigint default null) returns void
language plpgsql as $$
declare
  delayed bigint;
begin
  if (s.rules & 1 > 0) is not true then
    perform announce(s.name, keys, cardinality(keys));
    return;
  end if;
  perform refresh_lanes(
    s, of_lanes, array(select case when r.rank is null then 0 else 1 end from unnest(ranks) as r (rank)), null, now, number
  );
  delayed := cardinality(array_positions(ranks, null));
  perform wake('queue:' || s.name, delayed) where delayed > 0;
  perform wake('key:' || s.name || ':' || k, 1) from unnest(keys) as k where k is not null;
end
$$;

-- The same for messages that are put, or come from another queue: their lanes are locked as those of a put.
create or replace function come_in(s names, keys text[], of_lanes text[], ranks bigint[], now bigint, number bigint) returns void
language plpgsql as $$
begin
  if (s.rules & 1 > 0) is not true then
    perform announce(s.name, keys, cardinality(keys));
    return;
  end if;
  perform put_in_lanes(s, of_lanes, ranks, now, number);
  perform wake('key:' || s.name || ':' || k, 1) from unnest(keys) as k where k is not null;
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
