-- Browse: looking at messages without touching them.

-- A filter with the moments that its ages stand for.
create or replace function with_moments(which jsonb, now bigint) returns jsonb
language sql immutable as $$
  select which
    || jsonb_build_object('older', now - moment_in((which ->> 'older_than_s')::double precision))
    || jsonb_build_object('newer', now - moment_in((which ->> 'newer_than_s')::double precision))
$$;

-- Whether a filter lets a message through, whose age counts from this moment.
create or replace function is_meant(which jsonb, moment bigint, m messages) returns boolean
language sql immutable as $$
  select (which ->> 'older' is null or moment < (which ->> 'older')::bigint)
    and (which ->> 'newer' is null or moment >= (which ->> 'newer')::bigint)
    and (which ->> 'error_class' is null or split_part(m.last_error, ':', 1) = which ->> 'error_class')
    and (which ->> 'value_contains' is null or strpos(m.value, which ->> 'value_contains') > 0)
    and (which ->> 'error_contains' is null or strpos(m.last_error, which ->> 'error_contains') > 0)
    and (which ->> 'key_prefix' is null or starts_with(m.key, which ->> 'key_prefix'))
    and (which ->> 'label' is null or m.extra -> 'labels' ? (which ->> 'label'))
    and (which ->> 'group' is null or coalesce(m.extra ->> 'group', '') = which ->> 'group')
$$;

-- The ids of one state in its own order, behind a cursor, so many of them, and whether a filter lets them through.
create or replace function browse_state(
  of_queue text, of_state text, which jsonb, after jsonb, most integer, now bigint, out id text, out fits boolean
) returns setof record
language plpgsql stable as $$
declare
  a bigint := case when of_state <> 'buffered' then after ->> 0 end;
  b bigint := after ->> 1;
  k bigint := after ->> 2;
  count integer;
begin
  which := with_moments(which, now);
  case of_state
    when 'ready' then
      -- The cursor's first part is the priority negated, as it sorts; the line goes on in its priority, then in the lower ones.
      return query
        select m.id, is_meant(which, m.created_at, m)
        from messages as m
        where m.queue = of_queue and m.state = 'ready' and m.priority = -a and (m.position, m.n) > (b, k)
        order by m.position, m.n
        limit most;
      get diagnostics count = row_count;
      return query
        select m.id, is_meant(which, m.created_at, m)
        from messages as m
        where m.queue = of_queue and m.state = 'ready' and m.priority < coalesce(-a, 2147483648)
        order by m.priority desc, m.position, m.n
        limit most - count;
    when 'leased' then
      return query
        select m.id, is_meant(which, m.created_at, m)
        from messages as m
        where m.queue = of_queue and m.state = 'leased' and (m.until, m.n) > (coalesce(a, 0), coalesce(b, 0))
        order by m.until, m.n
        limit most;
    when 'dead' then
      return query
        select m.id, is_meant(which, m.dead_at, m)
        from messages as m
        where m.queue = of_queue and m.state = 'dead' and (m.dead_at, m.n) > (coalesce(a, 0), coalesce(b, 0))
        order by m.dead_at, m.n
        limit most;
    when 'done' then
      return query
        select m.id, is_meant(which, m.created_at, m)
        from messages as m
        where m.queue = of_queue and m.ended_at is not null and (m.ended_at, m.n) > (coalesce(a, 0), coalesce(b, 0))
        order by m.ended_at, m.n
        limit most;
    else
      return query
        select m.id, is_meant(which, m.created_at, m)
        from messages as m
        where m.queue = of_queue and m.state = 'buffered' and m.key > coalesce(after ->> 0, '')
        order by m.key
        limit most;
  end case;
end
$$;

-- The first ids that a filter lets through, up to a limit, of those that one command looks at; and behind which of them to go on, if there may be more.
create or replace function browse_page(c jsonb, of_state text, most integer, now bigint, out ids text[], out last text)
language plpgsql stable as $$
declare
  which jsonb := coalesce(c -> 'which', '{}');
  looks integer := case when which = '{}' then most else {looked_at} end;
  looked integer;
begin
  select coalesce(array_agg(b.id order by b.o) filter (where b.fits), '{}'), count(*), (array_agg(b.id order by b.o desc))[1] into ids, looked, last
  from browse_state(c ->> 'queue', of_state, which, c -> 'after', looks, now) with ordinality as b (id, fits, o);
  if cardinality(ids) >= most then
    ids := ids[:most];
    last := ids[most];
  elsif looked < looks then
    last := null;
  end if;
end
$$;

-- Where a message stands in the order of its state.
create or replace function cursor_of(m messages) returns text
language sql stable as $$
  select case m.state
    when 'ready' then json_build_array(-m.priority::bigint, m.position, m.n)
    when 'leased' then json_build_array(m.until, m.n)
    when 'dead' then json_build_array(m.dead_at, m.n)
    when 'buffered' then json_build_array(m.key, m.n)
    else json_build_array(m.ended_at, m.n)
  end::text
$$;

create or replace function place_of(of_queue text, of_id text) returns text
language plpgsql stable as $$
begin
  return (select cursor_of(m) from messages as m where m.queue = of_queue and m.id = of_id limit 1);
end
$$;

create or replace function answer_browse(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
declare
  of_queue text := c ->> 'queue';
  is_page boolean := false;
  last text;
  ids text[];
  sizes bigint[];
  count integer;
  page text;
begin
  if c -> 'ids' is not null then
    ids := texts(c -> 'ids');
  elsif c -> 'keys' is not null then
    select array_agg(m.id order by k.o, m.state = 'buffered') into ids
    from (select u.key, min(u.o) as o from unnest(texts(c -> 'keys')) with ordinality as u (key, o) group by u.key) as k
    cross join lateral (
      (select m.id, m.state from messages as m where m.queue = of_queue and m.key = k.key and m.key is not null and m.state in ('ready', 'leased') limit 1)
      union all
      (select m.id, m.state from messages as m where m.queue = of_queue and m.key = k.key and m.state = 'buffered' limit 1)
    ) as m;
  else
    is_page := true;
    select p.ids, p.last into ids, last from browse_page(c, coalesce(c ->> 'state', 'ready'), coalesce((c ->> 'limit')::integer, 100), now) as p;
  end if;
  select coalesce(array_agg(i.id order by i.o), '{}'), coalesce(array_agg(m.size order by i.o), '{}') into ids, sizes
  from unnest(ids) with ordinality as i (id, o)
  cross join lateral (
    select message_bytes(m.value, m.metadata, m.last_error, m.history) as size from messages as m where m.queue = of_queue and m.id = i.id limit 1
  ) as m;
  count := fitting(sizes, used);
  if is_page and count < cardinality(ids) then
    last := ids[count];
  end if;
  select string_agg(message_json(m), ',' order by i.o) into page
  from unnest(ids[:count]) with ordinality as i (id, o)
  cross join lateral (select * from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m;
  return '{"messages":[' || coalesce(page, '') || ']'
    || ',"after":' || coalesce(place_of(of_queue, last), 'null')
    || ',"more":' || (not is_page and count < cardinality(ids))::text || ',"now":' || now || '}';
end
$$;
