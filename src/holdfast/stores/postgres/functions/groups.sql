-- Groups: their own settings, and reading them.

create or replace function lane_json(l lanes) returns text
language sql stable as $$
  select json_build_object(
    'queue', l.queue, 'name', l.name, 'turn', l.turn, 'place', l.place, 'open', l.is_open, 'live', l.live, 'credit', l.credit, 'wakes', l.wakes, 'tat', l.tat,
    'last', l.last, 'throttled_until', l.throttled_until, 'own', coalesce(l.own, '{}')
  )::text
$$;

create or replace function answer_groups(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
declare
  prefix text := coalesce(c ->> 'prefix', '');
  behind text := end_of_prefix(prefix);
  most bigint := coalesce((c ->> 'limit')::bigint, 1000);
begin
  if (c ->> 'exact')::boolean then
    return coalesce(answer_group(c ->> 'queue', prefix, now), '{"lanes":[],"now":' || now || '}');
  end if;
  return (
    with page as (
      select l, row_number() over (order by l.name) as o
      from lanes as l
      where l.queue = c ->> 'queue' and (c ->> 'after' is null or l.name > c ->> 'after') and l.name >= prefix and l.name < behind
      order by l.name
      limit most + 1
    )
    select '{"lanes":[' || coalesce(string_agg(lane_json(l), ',' order by o) filter (where o <= most), '')
      || '],"more":' || (count(*) > most)::text || ',"now":' || now || '}'
    from page
  );
end
$$;

-- One group, the first in its line, and how many are served before it; null if there is nothing to know of it.
create or replace function answer_group(of_queue text, of_lane text, now bigint) returns text
language plpgsql stable as $$
begin
  return (
    select '{"lanes":[' || lane_json(g) || '],"now":' || now || ',"head":' || coalesce((
        select to_json(m.id)::text
        from messages as m
        where m.queue = of_queue and m.lane = of_lane and m.state = 'ready' and m.rank is not null and not is_late(m, now)
        order by m.level desc, m.rank, m.n
        limit 1
      ), 'null') || ',"ahead":' || (
        select count(*)
        from (
          select
          from lanes as l
          where l.queue = of_queue and l.is_open and (l.turn, l.place, l.name) < (g.turn, g.place, g.name)
          order by l.turn, l.place, l.name
          limit {lanes_counted}
        ) as l
      ) || '}'
    from lanes as g
    where g.queue = of_queue and g.name = of_lane
  );
end
$$;

create or replace function check_group(s names, c jsonb) returns void
language plpgsql as $$
begin
  if c ->> 'limit' is null then
    return;
  elsif s.rules & 2 > 0 then
    perform refuse('policies_clash', jsonb_build_array(
      s.name, 'groups=''strict''', format('a limit of group ''%s'', which is 1 there', c ->> 'group')
    ));
  end if;
  perform refuse_many(s.name, count(*), 'claimed messages')
  from messages as m
  where m.queue = s.name and m.state = 'leased' and coalesce(m.extra ->> 'group', '') = c ->> 'group';
end
$$;

-- A group's own settings after a command; null where it has none.
create or replace function own_after(own jsonb, c jsonb) returns jsonb
language sql immutable as $$
  select nullif(case when o.kept ? 'paused' then o.kept else o.kept - 'held' end, '{}')
  from (
    select coalesce(jsonb_object_agg(p.name, p.value) filter (
      where p.value <> 'null' and (p.name, p.value #>> '{}') not in (('weight', '1'), ('paused', 'false'))
    ), '{}') as kept
    from (
      select k.name, case when c ? k.name then c -> k.name when (c ->> 'forget')::boolean then null else own -> k.name end as value
      from unnest('{limit,weight,rate,paused,held}'::text[]) as k (name)
    ) as p
  ) as o
$$;

create or replace function configure_group(s names, c jsonb, now bigint) returns text
language plpgsql as $$
declare
  before lanes := lock_lane(s.name, c ->> 'group');
  l lanes := before;
  counted bigint;
begin
  l.own := own_after(before.own, c);
  if c -> 'throttle_s' is not null then
    l.throttled_until := case when (c ->> 'throttle_s')::double precision > 0 then now + moment_in((c ->> 'throttle_s')::double precision) else 0 end;
  end if;
  if l is distinct from before then
    insert into names (kind, name, created_at) values ('queue', s.name, now) on conflict do nothing;
    perform append('queue:' || s.name, 'configured', (
      jsonb_build_object('group', l.name, 'paused', false) || coalesce(l.own - 'held', '{}')
        || case when c -> 'throttle_s' is not null then jsonb_build_object('throttle_s', c -> 'throttle_s') else '{}' end
    )::text, now);
    if s.rules & 1 > 0 and lane_limit(before, s) is null and lane_limit(l, s) is not null then
      update messages as m
      set tied = coalesce(m.tied, 0) | 1
      where m.queue = s.name and m.state = 'leased' and m.lane = l.name;
      get diagnostics counted = row_count;
      l.live := counted;
    end if;
    if s.rules & 1 > 0 then
      l := refreshed(l, s, now, latest());
    end if;
    perform wake('queue:' || s.name, {everyone});
  end if;
  perform save_lane(l);
  return settings_json(case when l is distinct from before then settings_of(s.name) else s end);
end
$$;
