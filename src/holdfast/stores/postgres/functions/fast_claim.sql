-- Claim while nothing has expired: a few statements, each answered by an index. Whatever takes more goes on to execute().

-- Lease, or with `takes` remove, the first in line, while all of those are due and no lease has ended.
create or replace function fast_claim(
  command_id text, again boolean, of_queue text, of_holder text, lease_s double precision, by_policy boolean, most integer, takes boolean,
  expiry text, budget integer, grave text
) returns text
language plpgsql {fast} as $$
declare
  shared text := pg_advisory_xact_lock_shared(object_lock('queue', of_queue));
  now bigint := clock_us();
  rules integer; policy jsonb; is_free boolean; is_plain boolean; is_watched boolean;
  ids text[]; keys text[]; of_groups text[]; number bigint; answer text;
begin
  -- Who watches is looked at only now that the queue is shared: see is_settled.
  select
    s.rules, s.policy, s.maxsize is null and s.throttled_until = 0 and not again,
    s.maxsize is null and s.rules is null and not s.paused and s.throttled_until = 0 and not again
      and not exists (select from messages where queue = of_queue and state = 'leased' and until <= now)
      and not exists (select from messages where queue = of_queue and state = 'ready' and start_by is not null and attempts = 0 and start_by <= now),
    exists (select from listeners as l where l.topic = 'watch:queue:' || of_queue and l.until > clock_timestamp())
  into rules, policy, is_free, is_plain, is_watched
  from names as s
  where s.kind = 'queue' and s.name = of_queue;
  if policy is not null and (by_policy or lease_s is null) then
    lease_s := coalesce((policy ->> 'lease_s')::double precision, lease_s);
  end if;
  if rules & 8 = 0 and is_free then
    return claim_from_lanes(command_id, settings_of(of_queue), of_holder, lease_s, most, takes, expiry, budget, grave, is_watched, now);
  end if;
  -- Where one of the first in line is not due, others behind it may be: that takes a walk over the priorities. Where they are more than one
  -- answer brings, it takes a plan.
  if is_plain and most = 1 then
    -- The number is drawn and the lease begins once the row is won: what is set is worked out after what is looked for, and begins and ends
    -- by one look at the clock. Another's lease may have ended since `now`.
    update messages as m
    set
      state = 'leased', attempts = m.attempts + 1, holder = of_holder, token = nextval('numbers'), since = w.won_at,
      until = end_of(w.won_at, lease_s), expired_to = expiry, tied = case when m.extra ? 'group' then 8 end
    from (
      select h.place, clock_us() as won_at
      from (
        select f.ctid as place, f.position
        from messages as f
        where f.queue = of_queue and f.state = 'ready'
        order by f.priority desc, f.position, f.n
        limit 1 for update skip locked
      ) as h
      where h.position <= now offset 0
    ) as w
    where m.ctid = w.place
    returning m.token, m.since, array[m.id], array[m.key], array[m.extra ->> 'group'], message_json(m) into number, now, ids, keys, of_groups, answer;
  elsif is_plain then
    select l.number, l.won_at, l.ids, l.keys, l.of_groups, l.answer into number, now, ids, keys, of_groups, answer
    from lease_heads(of_queue, of_holder, lease_s, most, takes, expiry, now) as l;
  end if;
  if ids is null then
    return claim_fully(command_id, of_queue, of_holder, lease_s, most, takes, expiry, budget, grave);
  end if;
  with counted as (insert into shifts (queue, ready, leased) values (of_queue, -cardinality(ids), cardinality(ids)))
  insert into events (n, at, topic, event, data, command)
  values (
    number, now, 'queue:' || of_queue, 'claimed', case when array_remove(keys || of_groups, null) <> '{}' then told_claimed(ids, keys, of_groups, of_holder)
      else '{"ids":' || array_to_json(ids) || ',"holder":' || to_json(of_holder) || '}' end,
    case when not takes then nullif(command_id, '') end
  );
  now := case when is_new_moment(now) then keep_moment(now) else now end;
  if is_watched then
    perform wake('watch:queue:' || of_queue, {everyone});
  end if;
  if takes then
    perform count_by('triggers'), remove(of_queue, ids), promote(of_queue, keys, now), count_by('hand'), remember(command_id, now, '[' || answer || ']');
  end if;
  return '{"messages":[' || answer || ']}';
end
$$;

-- What the event of a claim tells. No part of the statement that writes it, which prepares all of itself each time.
create or replace function told_claimed(ids text[], keys text[], of_groups text[], of_holder text) returns text
language plpgsql stable as $$
begin
  return told(ids, keys, told_groups(of_groups) || ',"holder":' || to_json(of_holder));
end
$$;

-- Claim by the full rules.
create or replace function claim_fully(
  command_id text, of_queue text, of_holder text, lease_s double precision, most integer, takes boolean, expiry text, budget integer, grave text
) returns text
language plpgsql as $$
begin
  return execute(jsonb_strip_nulls(jsonb_build_object(
    'type', 'Claim', 'id', command_id, 'queue', of_queue, 'holder', of_holder, 'lease_s', lease_s, 'limit', most, 'take', takes,
    'expired_to', expiry, 'max_attempts', budget, 'dead_letter', grave
  )), '{}', only_object('queue', of_queue));
end
$$;

-- What all messages of one claim have in common, as the beginning of a JSON object.
create or replace function shared_facts(of_queue text, of_holder text, token bigint, since bigint, until bigint, expiry text) returns text
language sql stable as $$
  select concat(
    '{"queue":', to_json(of_queue), ',"state":"leased","holder":', to_json(of_holder), ',"token":', token,
    ',"since":', since, ',"until":', until, ',"expired_to":"', expiry, '"'
  )
$$;

-- Lease so many of the first in line, if all of them are due and fit into one answer.
create or replace function lease_heads(
  of_queue text, of_holder text, lease_s double precision, most integer, takes boolean, expiry text, now bigint,
  out number bigint, out won_at bigint, out ids text[], out keys text[], out of_groups text[], out answer text
)
language plpgsql as $$
begin
  with heads as materialized (
    select f.ctid as place, f.position, message_bytes(f.value, f.metadata, f.last_error, f.history) as size
    from messages as f
    where f.queue = of_queue and f.state = 'ready'
    order by f.priority desc, f.position, f.n
    limit most
    for update skip locked
  ),
  -- All rows are won: a later claim of any of them draws a larger number, and begins later.
  won as materialized (
    select w.number, w.at, shared_facts(of_queue, of_holder, w.number, w.at, end_of(w.at, lease_s), expiry) as shared
    from (select nextval('numbers') as number, clock_us() as at from heads having bool_and(position <= now) and sum(size) <= answer_bytes()) as w
  ),
  leased as (
    update messages as m
    set
      state = 'leased', attempts = m.attempts + 1, holder = of_holder, token = w.number,
      since = w.at, until = end_of(w.at, lease_s), expired_to = expiry,
      tied = case when m.extra ? 'group' then 8 end
    from won as w
    where m.ctid = any (array(select place from heads))
    returning w.number, w.at, m.priority, m.position, m.n, m.id, m.key, m.extra ->> 'group' as of_group, w.shared || message_facts(m) as told
  )
  select min(l.number), min(l.at), array_agg(l.id), array_agg(l.key), array_agg(l.of_group), string_agg(l.told, ',')
  into number, won_at, ids, keys, of_groups, answer
  from (select * from leased order by priority desc, position, n) as l;
end
$$;

-- Lease the first message of each of these lanes, if all of them fit into one answer; in a strict lane the very first, and not if somebody else has it.
create or replace function lease_one_each(
  s names, of_lanes text[], of_holder text, lease_s double precision, expiry text, slot integer,
  out number bigint, out ids text[], out keys text[], out of_groups text[], out gave text[], out told text
)
language plpgsql as $$
begin
  with heads as materialized (
    select w.o, h.place, h.size
    from unnest(of_lanes) with ordinality as w (name, o)
    cross join lateral (
      select m.ctid as place, message_bytes(m.value, m.metadata, m.last_error, m.history) as size
      from messages as m
      where m.ctid = case when s.rules & 2 = 0
        then (
          select f.ctid
          from messages as f
          where f.queue = s.name and f.lane = w.name and f.state = 'ready' and f.rank is not null
          order by f.level desc, f.rank, f.n limit 1 for update skip locked
        )
        else (
          select f.ctid
          from messages as f
          where f.queue = s.name and f.lane = w.name and f.state = 'ready' and f.rank is not null
          order by f.level desc, f.rank, f.n limit 1
        )
      end
      for update skip locked
    ) as h
  ),
  won as materialized (
    select w.number, w.at, shared_facts(s.name, of_holder, w.number, w.at, end_of(w.at, lease_s), expiry) as shared
    from (select nextval('numbers') as number, clock_us() as at from heads having sum(size) <= answer_bytes()) as w
  ),
  leased as (
    update messages as m
    set
      state = 'leased', attempts = m.attempts + 1, holder = of_holder, token = w.number, since = w.at, until = end_of(w.at, lease_s),
      expired_to = expiry, tied = nullif(slot + case when s.rules & 16 > 0 then 4 else 0 end + case when m.extra ? 'group' then 8 else 0 end, 0)
    from won as w, heads as h
    where m.ctid = h.place
    returning w.number, h.o, m.lane, m.id, m.key, m.extra ->> 'group' as of_group, w.shared || message_facts(m) as told
  )
  select min(l.number), array_agg(l.id), array_agg(l.key), array_agg(l.of_group), array_agg(l.lane), string_agg(l.told, ',')
  into number, ids, keys, of_groups, gave, told
  from (select * from leased order by o) as l;
end
$$;
