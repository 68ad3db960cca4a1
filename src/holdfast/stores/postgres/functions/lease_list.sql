-- Leases, Break: who holds what, and taking it from them.

create or replace function answer_leases(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
declare
  of_dict text := coalesce(c ->> 'dict', '');
  prefix text := coalesce(c ->> 'prefix', '');
  behind text := end_of_prefix(prefix);
  most bigint := coalesce((c ->> 'limit')::bigint, 100);
begin
  return (
    with page as (
      select l
      from leases as l
      where l.dict = of_dict and l.key > coalesce(c ->> 'after', '') and l.key >= prefix and l.key < behind
      order by l.key
      limit most
    ), counted as (
      select count(*) as names, max((l).key) as last, greatest(100 / greatest(count((l).capacity), 1), 1) as shown
      from page
    )
    select '{"held":[' || coalesce(string_agg(holding_json(l, s.shown::integer, now), ',' order by (l).key) filter (where (l).until > now), '')
      || '],"dict":' || coalesce(to_json(nullif(of_dict, ''))::text, 'null')
      || ',"after":' || case when max(s.names) = most then to_json(max(s.last))::text else 'null' end || ',"now":' || now || '}'
    from counted as s
    left join page on true
  );
end
$$;

create or replace function holding_json(l leases, most integer, now bigint) returns text
language plpgsql stable as $$
begin
  return '{"key":' || to_json(l.key) || ',"leases":[' || case
    when l.capacity is null then lease_json(l)
    else (
      select coalesce(string_agg(share_json(s), ',' order by s.until, s.lease_id), '')
      from (
        select * from shares as h where h.key = l.key and (h.place > 0) = false and h.until > now order by h.until, h.lease_id limit most
      ) as s
    )
  end || ']' || coalesce(',"capacity":' || l.capacity || ',"used":' || l.used || ',"waiting":' || l.waiting, '')
    || case when l.resized then ',"resized":true}' else '}' end;
end
$$;

-- The leases, or shares, that are to end; the row of the name is locked.
create or replace function check_break(c jsonb, now bigint) returns jsonb
language plpgsql as $$
declare
  l leases;
begin
  select * into l from leases where dict = coalesce(c ->> 'dict', '') and key = c ->> 'key';
  if l.capacity is null then
    return case
      when l.until > now and l.token = coalesce((c ->> 'token')::bigint, l.token) then jsonb_build_array(to_jsonb(l))
      else '[]'
    end;
  end if;
  return (
    select coalesce(jsonb_agg(to_jsonb(s) order by s.until, s.lease_id), '[]')
    from (
      select * from shares as h where h.key = l.key and (h.place > 0) = false and h.until > now order by h.until, h.lease_id limit {broken}
    ) as s
    where s.token = coalesce((c ->> 'token')::bigint, s.token)
  );
end
$$;

create or replace function write_break(c jsonb, p jsonb, now bigint) returns text
language plpgsql as $$
declare
  of_dict text := coalesce(c ->> 'dict', '');
  held leases;
  taken text[] := '{}';
begin
  for held in select * from jsonb_populate_recordset(null::leases, p) loop
    if held.dict is null then
      perform end_share(held.key, held.lease_id, 'broken', c ->> 'reason', now);
    else
      perform append(log_topic(of_dict, held.key), 'broken', with_reason(told_of_lease(held.key, held.holder), c ->> 'reason'), now);
      delete from leases where dict = of_dict and key = held.key;
      perform wake('lease:' || of_dict || ':' || held.key, 1);
    end if;
    taken := taken || lease_json(held);
  end loop;
  -- What was only there to be locked.
  delete from leases where dict = of_dict and key = c ->> 'key' and lease_id = '' and capacity is null;
  return '{"leases":[' || array_to_string(taken, ',') || ']}';
end
$$;

create or replace function with_reason(told text, reason text) returns text
language sql stable as $$
  select case when reason is null then told else left(told, -1) || ',"reason":' || to_json(reason) || '}' end
$$;
