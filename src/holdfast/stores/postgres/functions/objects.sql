-- Configure, Clear, Names: queues and dicts as a whole.

create or replace function settings_json(s names) returns text
language sql stable as $$
  select json_build_object(
    'kind', s.kind, 'name', s.name, 'paused', s.paused, 'maxsize', s.maxsize, 'size', s.size, 'created_at', s.created_at
  )::text
$$;

create or replace function check_configure(c jsonb, now bigint) returns jsonb
language plpgsql as $$
declare
  before names;
  after names;
begin
  select * into before from names where kind = c ->> 'kind' and name = c ->> 'name';
  after := before;
  if before.name is null then
    after := row(c ->> 'kind', c ->> 'name', false, null, 0, now);
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
  return jsonb_build_object('changes', before is distinct from after, 'after', to_jsonb(after));
end
$$;

create or replace function write_configure(c jsonb, p jsonb, now bigint) returns text
language plpgsql as $$
declare
  after names := jsonb_populate_record(null::names, p -> 'after');
begin
  if (p -> 'changes')::boolean then
    insert into names (kind, name, paused, maxsize, size, created_at)
    values (after.kind, after.name, after.paused, after.maxsize, after.size, after.created_at)
    on conflict (kind, name) do update set paused = excluded.paused, maxsize = excluded.maxsize, size = excluded.size;
    perform append(
      after.kind || ':' || after.name, 'configured',
      case after.kind
        when 'queue' then '{"paused":' || to_json(after.paused) || ',"maxsize":' || coalesce(after.maxsize::text, 'null') || '}'
        else '{}'
      end, now
    );
    if after.kind = 'queue' then
      perform wake('queue:' || after.name, {everyone}), wake('room:' || after.name, {everyone});
    end if;
  end if;
  return settings_json(after);
end
$$;

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
  if of_kind = 'queue' then
    with gone as (delete from messages where queue = of_name returning 1) select count(*) into count from gone;
  else
    count := (select count(*) from entries where dict = of_name and value is not null and (expires_at is null or expires_at > now));
    update entries set value = null, expires_at = null where dict = of_name and fence > 0;
    delete from entries where dict = of_name and fence = 0;
  end if;
  if drops then
    delete from names where kind = of_kind and name = of_name;
  else
    update names set size = 0 where kind = of_kind and name = of_name and maxsize is not null;
  end if;
  perform append(of_kind || ':' || of_name, 'cleared', '{"count":' || count || ',"dropped":' || drops::text || '}', now);
  perform wake('room:' || of_name, {everyone}) where of_kind = 'queue';
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

-- The groups of a queue; none as long as no queue here has any.
create or replace function answer_groups(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
begin
  return '{"lanes":[],"now":' || now || '}';
end
$$;
