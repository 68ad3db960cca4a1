-- Clear, Names: queues and dicts as a whole.

-- The object is ours alone.
create or replace function write_clear(c jsonb, now bigint) returns text
language plpgsql as $$
declare
  of_kind text := c ->> 'kind';
  of_name text := c ->> 'name';
  drops boolean := coalesce((c ->> 'drop')::boolean, false);
  is_known boolean := exists (select from names where kind = of_kind and name = of_name);
  ended record;
  has_leases boolean := false;
  count bigint;
begin
  if of_kind = 'dict' and drops then
    for ended in select key, holder from leases where dict = of_name order by key loop
      has_leases := true;
      perform append('dict:' || of_name, 'released', told_of_lease(ended.key, ended.holder), now);
      perform wake('lease:' || of_name || ':' || ended.key, 1);
    end loop;
  end if;
  if not is_known and not has_leases then
    return '0';
  end if;
  if has_leases then
    delete from leases where dict = of_name;
  end if;
  if c ->> 'prefix' is not null then
    return clear_prefix(of_name, c ->> 'prefix', now);
  elsif of_kind = 'queue' then
    perform clear_lanes(settings_of(of_name), drops, now);
    with gone as (delete from messages where queue = of_name returning 1) select count(*) into count from gone;
  else
    count := (select count(*) from entries where dict = of_name and value is not null and (expires_at is null or expires_at > now));
    update entries set value = null, expires_at = null where dict = of_name and fence > 0;
    delete from entries where dict = of_name and fence = 0;
  end if;
  if drops then
    delete from names where kind = of_kind and name = of_name;
  else
    update names set size = 0, live = 0 where kind = of_kind and name = of_name and (maxsize is not null or policy is not null);
  end if;
  perform append(of_kind || ':' || of_name, 'cleared', '{"count":' || count || ',"dropped":' || drops::text || '}', now);
  perform wake('room:' || of_name, {everyone}) where of_kind = 'queue';
  return count::text;
end
$$;

-- Only settings of groups outlast their messages, and in a queue that has groups rates that are not free yet.
create or replace function clear_lanes(s names, drops boolean, now bigint) returns void
language plpgsql as $$
begin
  delete from lanes where queue = s.name and (drops or (own is null and ((s.rules & 1 > 0) is not true or greatest(tat, throttled_until) <= now)));
  update lanes
  set turn = 0, place = 0, live = 0, credit = 0, is_open = false,
    wakes = case when s.rules & 1 > 0 and greatest(tat, throttled_until) > now then greatest(tat, throttled_until) end
  where queue = s.name;
end
$$;

-- Remove the entries of a dict whose keys begin with a prefix; fences stay.
create or replace function clear_prefix(of_dict text, prefix text, now bigint) returns text
language plpgsql as $$
declare
  behind text := end_of_prefix(prefix);
  count bigint := (
    select count(*)
    from entries
    where dict = of_dict and key >= prefix and key < behind and value is not null and (expires_at is null or expires_at > now)
  );
begin
  update entries set value = null, expires_at = null where dict = of_dict and key >= prefix and key < behind and fence > 0;
  delete from entries where dict = of_dict and key >= prefix and key < behind and fence = 0;
  perform append('dict:' || of_dict, 'cleared', '{"count":' || count || ',"dropped":false,"prefix":' || to_json(prefix) || '}', now);
  return count::text;
end
$$;

create or replace function answer_names(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
declare
  prefix text := coalesce(c ->> 'prefix', '');
  behind text := end_of_prefix(prefix);
begin
  return (
    with page as (
      select s, row_number() over (order by s.name) as o
      from names as s
      where s.kind = c ->> 'kind' and s.name > coalesce(c ->> 'after', '') and s.name >= prefix and s.name < behind
        and (s.name = prefix or c ->> 'exact' is distinct from 'true')
      order by s.name
      limit coalesce((c ->> 'limit')::bigint, 1000) + 1
    )
    select '{"settings":[' || coalesce(string_agg(settings_json(s), ',' order by o) filter (where o <= coalesce((c ->> 'limit')::bigint, 1000)), '')
      || '],"more":' || (count(*) > coalesce((c ->> 'limit')::bigint, 1000))::text || '}'
    from page
  );
end
$$;
