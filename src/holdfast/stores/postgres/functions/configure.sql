-- Configure: the settings of queues, dicts and groups.

create or replace function settings_json(s names) returns text
language sql stable as $$
  select json_build_object(
    'kind', s.kind, 'name', s.name, 'paused', is_paused(s), 'maxsize', s.maxsize, 'size', s.size, 'created_at', s.created_at,
    'policy', s.policy, 'live', s.live, 'tat', s.tat, 'last', s.last, 'throttled_until', s.throttled_until
  )::text
$$;

-- The policy after a command: what it gives replaces what was there, and what is as by default is left out.
create or replace function policy_after(before jsonb, c jsonb) returns jsonb
language sql immutable as $$
  select nullif(jsonb_object_agg(p.name, p.value) filter (
    where p.value <> 'null' and (p.name, p.value #>> '{}') not in (('order', 'fifo'), ('group_dead', 'pass'), ('late_to', 'drop'))
  ), '{}')
  from (
    select k.name, case when c ? k.name then c -> k.name else before -> k.name end as value
    from unnest('{{policies}}'::text[]) as k (name)
  ) as p
$$;

create or replace function check_configure(c jsonb, now bigint) returns jsonb
language plpgsql as $$
declare
  before names;
  after names;
begin
  select * into before from names where kind = c ->> 'kind' and name = c ->> 'name';
  before.paused := is_paused(before);
  before.stopped := null;
  after := before;
  if before.name is null then
    after := row(c ->> 'kind', c ->> 'name', false, null, 0, now, null, null, 0, 0, 0, 0, null);
  end if;
  if c ->> 'group' is not null then
    perform check_group(after, c);
    return jsonb_build_object('changes', before.name is null, 'after', to_jsonb(after));
  end if;
  if c -> 'paused' is not null then
    after.paused := (c ->> 'paused')::boolean;
  end if;
  if c -> 'maxsize' is not null and (c ->> 'maxsize')::bigint is distinct from after.maxsize then
    after.maxsize := (c ->> 'maxsize')::bigint;
    after.size := 0;
    if after.maxsize is not null then
      -- Nobody else uses the queue now.
      after.size := (select count(*) from messages where queue = c ->> 'name' and state = 'ready');
    end if;
  end if;
  if c -> 'throttle_s' is not null then
    after.throttled_until := case when (c ->> 'throttle_s')::double precision > 0 then now + moment_in((c ->> 'throttle_s')::double precision) else 0 end;
  end if;
  after.policy := policy_after(before.policy, c);
  after.rules := rules_of(after.policy);
  perform check_policy(before, after);
  return jsonb_build_object('changes', before is distinct from after, 'before', to_jsonb(before), 'after', to_jsonb(after));
end
$$;

-- Whether messages stand elsewhere under other settings.
create or replace function moves_lines(before names, after names) returns boolean
language sql immutable as $$
  select coalesce((before).rules, 0) & 5 <> coalesce((after).rules, 0) & 5
    or (before).policy ->> 'order' is distinct from (after).policy ->> 'order'
    or (before).policy ->> 'aging_s' is distinct from (after).policy ->> 'aging_s'
$$;

-- Whether claims are counted under these settings that were not before.
create or replace function begins_to_count(before names, after names) returns boolean
language sql immutable as $$
  select ((after).policy ->> 'limit' is not null and (before).policy ->> 'limit' is null)
    or (coalesce((after).rules & 2 > 0, false) or ((after).rules & 1 > 0 and (after).policy ->> 'group_limit' is not null))
      and not (coalesce((before).rules & 2 > 0, false) or coalesce((before).rules & 1 > 0 and (before).policy ->> 'group_limit' is not null, false))
$$;

-- Refuse policies that exclude each other, and a change that more messages would have to follow than one step may look at.
create or replace function check_policy(before names, after names) returns void
language plpgsql as $$
declare
  mode text := 'groups=''strict''';
begin
  if before.policy is not distinct from after.policy then
    return;
  elsif after.rules & 2 > 0 then
    perform refuse('policies_clash', jsonb_build_array(after.name, mode, 'order=''lifo''')) where after.policy ->> 'order' = 'lifo';
    perform refuse('policies_clash', jsonb_build_array(after.name, mode, 'aging_s')) where after.policy ->> 'aging_s' is not null;
    perform refuse('policies_clash', jsonb_build_array(after.name, mode, 'group_limit, which is 1 there'))
    where after.policy ->> 'group_limit' is not null;
  end if;
  if moves_lines(before, after) then
    perform refuse_many(after.name, count(*), 'messages') from messages where queue = after.name and state in ('ready', 'leased', 'buffered');
  elsif begins_to_count(before, after) then
    perform refuse_many(after.name, count(*), 'claimed messages') from messages where queue = after.name and state = 'leased';
  end if;
end
$$;

create or replace function refuse_many(of_queue text, count bigint, what text) returns void
language plpgsql as $$
begin
  if count > {rebuilt} then
    perform refuse('too_many_messages', jsonb_build_array(of_queue, count, {rebuilt}, what));
  end if;
end
$$;

create or replace function write_configure(c jsonb, p jsonb, now bigint) returns text
language plpgsql as $$
declare
  before names := jsonb_populate_record(null::names, p -> 'before');
  after names := jsonb_populate_record(null::names, p -> 'after');
begin
  if (p -> 'changes')::boolean and c ->> 'group' is null then
    insert into names (kind, name, paused, stopped, maxsize, size, created_at, policy, rules, throttled_until)
    values (
      after.kind, after.name, after.paused or is_ruled(after), case when is_ruled(after) then after.paused end, after.maxsize, after.size,
      after.created_at, after.policy, after.rules, after.throttled_until
    )
    on conflict (kind, name) do update
    set paused = excluded.paused, stopped = excluded.stopped, maxsize = excluded.maxsize, size = excluded.size, policy = excluded.policy, rules = excluded.rules,
      throttled_until = excluded.throttled_until;
  end if;
  if c ->> 'group' is not null then
    return configure_group(after, c, now);
  elsif (p -> 'changes')::boolean then
    perform append(
      after.kind || ':' || after.name, 'configured',
      case after.kind
        when 'queue' then '{"paused":' || to_json(after.paused) || ',"maxsize":' || coalesce(after.maxsize::text, 'null')
          || case when after.policy is null and before.policy is null then '' else ',"policy":' || coalesce(after.policy::text, 'null') end || coalesce(',"throttle_s":' || (c ->> 'throttle_s'), '') || '}'
        else '{}'
      end, now
    );
    if after.kind = 'queue' then
      perform apply_policy(before, after, now);
      perform wake('queue:' || after.name, {everyone}), wake('room:' || after.name, {everyone});
    end if;
  end if;
  select * into after from names where kind = c ->> 'kind' and name = c ->> 'name';
  return settings_json(after);
end
$$;

-- Let the messages and lanes of a queue follow its new policy. Nobody else uses the queue now, where that takes more than a look.
create or replace function apply_policy(before names, after names, now bigint) returns void
language plpgsql as $$
begin
  if moves_lines(before, after) then
    update messages as m
    set lane = lane_of(after, m.extra),
      level = case when m.state <> 'buffered' then level_of(after, null, null, m.priority, m.position, now) end,
      rank = case when m.state <> 'buffered' then rank_of(after, null, m.priority, m.position, now) end,
      tied = nullif(m.tied & 14, 0)
    where m.queue = after.name and m.state in ('ready', 'leased', 'buffered');
    if after.rules & 1 > 0 then
      update lanes set turn = 0, place = 0, live = 0 where queue = after.name;
    else
      perform clear_lanes(after, false, now);
    end if;
  end if;
  if begins_to_count(before, after) or moves_lines(before, after) then
    perform count_claims(after);
  end if;
  if after.rules & 1 > 0 and (moves_lines(before, after) or begins_to_count(before, after)) then
    perform refresh_lanes(after, array_agg(l.name), null, null, now, null)
    from (
      select distinct m.lane as name
      from messages as m
      where m.queue = after.name and (m.state = 'leased' or (m.state = 'ready' and moves_lines(before, after))) and m.lane is not null
      union
      select l.name from lanes as l where l.queue = after.name and moves_lines(before, after)
    ) as l;
  end if;
end
$$;

-- Count what is claimed, for the queue and for its lanes, and mark the messages that hold a slot.
create or replace function count_claims(s names) returns void
language plpgsql as $$
begin
  update messages as m
  set tied = nullif(
    coalesce(m.tied, 0) | (
      case when s.rules & 1 > 0 and lane_limit((select l from lanes as l where l.queue = m.queue and l.name = m.lane), s) is not null then 1 else 0 end
      + case when s.policy ->> 'limit' is not null then 2 else 0 end
    ),
    0
  )
  where m.queue = s.name and m.state = 'leased';
  update names
  set live = case when s.policy ->> 'limit' is not null then (select count(*) from messages where queue = s.name and state = 'leased') else 0 end
  where kind = 'queue' and name = s.name;
  insert into lanes (queue, name, live)
  select m.queue, m.lane, count(*) from messages as m where m.queue = s.name and m.state = 'leased' and m.tied & 1 > 0 group by m.queue, m.lane
  on conflict (queue, name) do update set live = excluded.live;
end
$$;
