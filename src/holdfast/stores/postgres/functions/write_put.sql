-- Put: carrying its plan out.

-- Let the keys of new messages count as put not long ago: entries as Write makes them. For the other keys of the put it removes the rows
-- that were only there to be locked.
create or replace function write_recent(c jsonb, begun integer[], now bigint) returns void
language plpgsql as $$
declare
  step jsonb;
  ids text[];
begin
  select jsonb_build_object('dict', c ->> 'recent', 'changes', jsonb_agg(
      case when w.is_begun
        then jsonb_build_object('key', w.item ->> 'key', 'value', w.o, 'ttl_s', w.item -> 'unique_for_s')
        else jsonb_build_object('key', w.item ->> 'key', 'do', 'compare')
      end order by w.o
    ))
  into step
  from (
    select distinct on (i.item ->> 'key') i.item, i.o, i.o = any (begun) as is_begun
    from jsonb_array_elements(c -> 'items') with ordinality as i (item, o)
    where i.item ->> 'unique_for_s' is not null
    order by i.item ->> 'key', (i.o = any (begun)) desc
  ) as w;
  ids := array(select to_json(i.item ->> 'id')::text from jsonb_array_elements(c -> 'items') with ordinality as i (item, o) order by i.o);
  perform write_write(step, check_write(step, ids, now, false), now);
end
$$;

create or replace function write_put(c jsonb, vals text[], p jsonb, now bigint) returns text
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  added messages[] := p ->> 'added';
  updated messages[] := p ->> 'updated';
  late messages[] := p ->> 'late';
  ready_keys text[] := array(select m.key from unnest(added) as m where m.state = 'ready');
  postponed text[] := texts(p -> 'postponed');
  sooner text[] := texts(p -> 'sooner');
  s names;
begin
  perform create_queue(of_queue, now);
  s := settings_of(of_queue);
  if late <> '{}' then
    perform remove(of_queue, array(select m.id from unnest(late) as m));
    perform append('queue:' || of_queue, 'expired', told_of(late, ',"started":false'), now), resize(of_queue, -cardinality(late));
  end if;
  perform add_placed(s, added, vals, now);
  update messages as m
  set value = vals[u.value::integer], metadata = u.metadata, extra = u.extra,
    position = case when u.id = any (postponed) then u.position else m.position end,
    start_by = case when u.id = any (postponed) then u.start_by else m.start_by end,
    level = case when u.id = any (postponed) then level_of(s, null, null, m.priority, u.position, now) else m.level end,
    rank = case when u.id = any (postponed) then rank_of(s, null, m.priority, u.position, now) else m.rank end
  from unnest(updated) as u
  cross join lateral (select h.ctid from messages as h where h.queue = of_queue and h.id = u.id limit 1) as h
  where m.ctid = h.ctid;
  if added <> '{}' or updated <> '{}' then
    perform append('queue:' || of_queue, 'put', told_of(added, case when updated = '{}' then '' else
      ',"updated":' || array_to_json(array(select m.id from unnest(updated) as m))
      || ',"updated_keys":' || array_to_json(array(select m.key from unnest(updated) as m))
    end), now);
  end if;
  perform resize(of_queue, cardinality(ready_keys)), announce_put(s, added, array(select m.lane from unnest(updated) as m where m.id = any (postponed)), ready_keys, sooner, now);
  perform free_slots(s, late, '{}', now) where late <> '{}';
  -- The message that a copy waits behind may be settled by the same step.
  perform promote(of_queue, array(select m.key from unnest(added) as m), now);
  if c ->> 'recent' is not null then
    perform write_recent(c, array(select jsonb_array_elements(p -> 'begun')::integer), now);
  end if;
  return '{"ids":' || (p -> 'ids')::text || ',"created":' || (p -> 'created')::text || '}';
end
$$;

-- Add what the items of a put became.
create or replace function add_placed(s names, added messages[], vals text[], now bigint) returns void
language plpgsql as $$
begin
  if has_lanes(s) then
    perform pg_advisory_xact_lock_shared(l.lock)
    from (select distinct lane_lock(s.name, lane_of(s, r.extra)) as lock from unnest(added) as r order by 1) as l;
  end if;
  insert into messages (queue, id, state, position, start_by, created_at, extra, value, {kept_columns}, lane, level, rank)
  select r.queue, r.id, r.state, r.position, r.start_by, r.created_at, r.extra, vals[r.value::integer], {kept_values}, lane_of(s, r.extra),
    case when r.state = 'ready' then level_of(s, null, null, coalesce(r.priority, 0), r.position, now) end,
    case when r.state = 'ready' then rank_of(s, null, coalesce(r.priority, 0), r.position, now) end
  from unnest(added) as r;
end
$$;

-- Wake those who wait for what a put made ready, or sooner due.
create or replace function announce_put(s names, added messages[], postponed_in text[], ready_keys text[], sooner text[], now bigint) returns void
language plpgsql as $$
declare
  of_lanes text[];
  ranks bigint[];
begin
  if (s.rules & 1 > 0) is not true then
    perform announce(s.name, ready_keys || sooner, cardinality(ready_keys || sooner));
    return;
  end if;
  select array_agg(m.lane), array_agg(m.rank) into of_lanes, ranks
  from (select r.id from unnest(added) as r where r.state = 'ready') as r
  cross join lateral (select m.lane, m.rank from messages as m where m.queue = s.name and m.id = r.id limit 1) as m;
  perform put_in_lanes(s, of_lanes, ranks, now, null);
  perform refresh_lanes(s, postponed_in, null, null, now, null) where postponed_in <> '{}';
  perform wake('queue:' || s.name, cardinality(sooner)) where sooner <> '{}';
  perform wake('key:' || s.name || ':' || k, 1) from unnest(ready_keys || sooner) as k where k is not null;
end
$$;

create or replace function told_of(of_messages messages[], more text) returns text
language plpgsql stable as $$
declare
  ids text[] := array(select m.id from unnest(of_messages) as m);
  keys text[] := array(select m.key from unnest(of_messages) as m);
begin
  return told(ids, keys, told_groups(array(select m.extra ->> 'group' from unnest(of_messages) as m)) || more);
end
$$;
