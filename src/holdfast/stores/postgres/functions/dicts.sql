-- Read, Length, Write, LowerFences: the entries of a dict. An entry past its time counts as absent; what is known of its fence stays.

create or replace function entry_json(e entries) returns text
language sql stable as $$
  select '{"value":' || e.value || ',' || substr(json_build_object(
    'dict', e.dict, 'key', e.key, 'revision', e.revision, 'fence', e.fence, 'expires_at', e.expires_at
  )::text, 2)
$$;

create or replace function told_of_entry(key text, value text) returns text
language sql stable as $$
  select '{"key":' || to_json(key) || ',"value":' || value || '}'
$$;

-- What became of a change: the entry in force, or the one that a delete removed.
create or replace function written_json(e entries, is_told boolean, because text, due_in bigint default null) returns text
language sql stable as $$
  select '{' || case when is_told then '"entry":' || entry_json(e) || ',' else '' end || '"because":"' || because || '"'
    || coalesce(',"due_in_s":' || due_in / 1000000::double precision, '') || '}'
$$;

create or replace function is_there(e entries, now bigint) returns boolean
language sql immutable as $$
  select e.value is not null and (e.expires_at is null or e.expires_at > now)
$$;

-- The index is exact where a watch goes on from it; anybody else is told the newest number at hand, which costs nothing.
create or replace function answer_read(c jsonb, now bigint, used bigint) returns text
language plpgsql stable {by_index} as $$
declare
  of_dict text := c ->> 'dict';
  prefix text := coalesce(c ->> 'prefix', '');
  behind text := end_of_prefix(prefix);
  most integer := coalesce((c ->> 'limit')::integer, 10000);
  keys text[];
  sizes bigint[];
  count integer;
  page text;
begin
  if c -> 'keys' is not null then
    select array_agg(k.key order by k.o), array_agg(e.size order by k.o) into keys, sizes
    from unnest(texts(c -> 'keys')) with ordinality as k (key, o)
    cross join lateral (
      select octet_length(e.value)::bigint as size
      from entries as e
      where e.dict = of_dict and e.key = k.key and e.value is not null and (e.expires_at is null or e.expires_at > now)
      limit 1
    ) as e;
    most := cardinality(keys);
  else
    select array_agg(s.key order by s.key), array_agg(s.size order by s.key) into keys, sizes
    from (
      select e.key, octet_length(e.value)::bigint as size
      from entries as e
      where e.dict = of_dict and e.key > coalesce(c ->> 'after', '') and e.key >= prefix and e.key < behind
        and e.value is not null and (e.expires_at is null or e.expires_at > now)
      order by e.key
      limit most + 1
    ) as s;
  end if;
  count := fitting(coalesce(sizes[:most], '{}'), used);
  select string_agg(entry_json(e), ',' order by k.o) into page
  from unnest(keys[:count]) with ordinality as k (key, o)
  cross join lateral (select * from entries as e where e.dict = of_dict and e.key = k.key limit 1) as e;
  return '{"entries":[' || coalesce(page, '') || ']'
    || case when (c ->> 'anchor')::boolean then '' else ',"index":' || latest() end
    || ',"more":' || (count < coalesce(cardinality(keys), 0))::text || '}';
end
$$;

create or replace function answer_length(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
begin
  return (
    select count(*)::text
    from entries as e
    where e.dict = c ->> 'dict' and is_there(e, now)
  );
end
$$;

create or replace function check_write(c jsonb, vals text[], now bigint, whole boolean) returns jsonb
language plpgsql as $$
declare
  of_dict text := c ->> 'dict';
  part record;
  changed change;
  changes change[] := '{}';
begin
  perform refuse_foreign_fence(of_dict, d.c ->> 'key', (d.c ->> 'fence')::bigint)
  from jsonb_array_elements(c -> 'changes') with ordinality as d (c, o)
  where d.c ->> 'fence' is not null
  order by d.o;
  for part in
    select d.o, d.c, h.e, (d.c ->> 'fence')::bigint as fence, coalesce(d.c ->> 'do', 'put') as act, d.c ->> 'lease' as lease,
      is_there(h.e, now) as is_there, l.lease_id is not distinct from d.c ->> 'lease' and l.until > now as is_held
    from jsonb_array_elements(c -> 'changes') with ordinality as d (c, o)
    cross join lateral (select e from entries as e where e.dict = of_dict and e.key = d.c ->> 'key' limit 1) as h (e)
    left join lateral (select * from leases as l where l.dict = of_dict and l.key = d.c ->> 'key' limit 1) as l on true
    order by d.o
  loop
    changed := row(part.o, part.c ->> 'key', part.act, '', part.is_there, part.e);
    changed.because := what_hinders(
      part.e, part.is_there, part.lease is null or part.is_held, part.fence,
      coalesce(part.c ->> 'expect', 'any'), vals[(part.c -> 'expected')::integer], (part.c ->> 'revision')::bigint
    );
    if changed.because = '' and part.act = 'pace' then
      changed.because := what_paces(of_dict, part.c, part.e, part.is_there, now);
    end if;
    if changed.because = '' and part.act in ('put', 'increment', 'pace') then
      changed.entry.value := case part.act
        when 'put' then vals[(part.c -> 'value')::integer]
        when 'pace' then 'null'
        else incremented(of_dict, part.c ->> 'key', vals[(part.c -> 'by')::integer], case when part.is_there then (part.e).value else '0' end)
      end;
      changed.entry.fence := greatest(part.fence, (part.e).fence);
      changed.entry.expires_at := ends_at(part.c, (part.e).expires_at, now);
    elsif changed.because = '' and part.act = 'delete' then
      changed.entry.fence := greatest(part.fence, (part.e).fence);
    end if;
    changes := changes || changed;
  end loop;
  -- Only now: what cannot be done at all is told before what a condition hinders.
  perform refuse_change(of_dict, x, c -> 'changes' -> (x.o - 1), now)
  from unnest(changes) as x
  where whole and x.because <> ''
  order by x.o;
  return to_jsonb(changes);
end
$$;

create or replace function refuse_change(of_dict text, o change, c jsonb, now bigint) returns void
language plpgsql as $$
begin
  perform refuse('not_written', jsonb_build_array(of_dict, o.key, o.because, c ->> 'lease', case when o.because = 'rate'
    then due_in(c, (o.entry).expires_at, now) / 1000000::double precision end));
end
$$;

-- A fence above every token given out would shut out all holders to come; one that a backup has taken back would let a stale holder in.
create or replace function refuse_foreign_fence(of_dict text, of_key text, of_fence bigint) returns void
language plpgsql as $$
declare
  newest bigint := latest();
begin
  if of_fence > newest then
    perform refuse('fence_too_high', jsonb_build_array(of_dict, of_key, of_fence, newest));
  elsif was_skipped(of_fence) then
    perform refuse('fence_lost', jsonb_build_array(of_dict, of_key, of_fence));
  end if;
end
$$;

-- When the time that all units of a rate took is over, if this change is let through.
create or replace function used_up_until(changed jsonb, until bigint, now bigint) returns bigint
language sql immutable as $$
  select greatest(until, now) + coalesce((changed ->> 'cost')::bigint, 1) * (changed ->> 'interval_us')::bigint
$$;

-- When the entry that a change writes ends, if it does.
create or replace function ends_at(changed jsonb, until bigint, now bigint) returns bigint
language sql immutable as $$
  select case changed ->> 'do'
    when 'pace' then used_up_until(changed, until, now)
    else now + moment_in((changed ->> 'ttl_s')::double precision)
  end
$$;

-- How many microseconds a change comes too early for its rate, 0 or less if it does not.
create or replace function due_in(changed jsonb, until bigint, now bigint) returns bigint
language sql immutable as $$
  select used_up_until(changed, until, now) - coalesce((changed ->> 'burst')::bigint, 1) * (changed ->> 'interval_us')::bigint - now
$$;

-- Whether its rate stands in the way of a change.
create or replace function what_paces(of_dict text, changed jsonb, e entries, is_there boolean, now bigint) returns text
language plpgsql as $$
begin
  if is_there and e.expires_at is null then
    perform refuse('no_rate', jsonb_build_array(of_dict, e.key));
  end if;
  return case when due_in(changed, e.expires_at, now) > 0 then 'rate' else '' end;
end
$$;

-- What stands in the way of a change, nothing if it may be made.
create or replace function what_hinders(
  e entries, is_there boolean, is_held boolean, of_fence bigint, expect text, expected text, at_revision bigint
) returns text
language sql immutable as $$
  select case
    when is_held is not true then 'lease'
    when of_fence < e.fence then 'fence'
    when case expect
      when 'any' then true
      when 'absent' then not is_there
      when 'present' then is_there
      when 'null' then not is_there or e.value = 'null'
      when 'value' then is_there and e.value = expected
      else case when is_there then e.revision else 0 end = coalesce(at_revision, 0)
    end then ''
    else 'compare'
  end
$$;

-- Whole numbers add up exactly and stay in 64 bits; with a fraction on either side they are floats, as in Python.
create or replace function incremented(dict text, key text, step text, value text) returns text
language plpgsql as $$
declare
  total text;
begin
  if value !~ '^-?[0-9]' then
    perform refuse('no_number', jsonb_build_array(dict, key));
  end if;
  if value ~ '[.eE]' or step ~ '[.eE]' then
    total := float_sum(value, step);
  elsif value::numeric + step::numeric between -9223372036854775808 and 18446744073709551615 then
    total := value::numeric + step::numeric;
  end if;
  if total is null then
    perform refuse('out_of_range', jsonb_build_array(dict, key));
  end if;
  return total;
end
$$;

create or replace function float_sum(one text, other text) returns text
language plpgsql immutable as $$
begin
  return float_text(one::double precision + other::double precision);
exception when numeric_value_out_of_range then
  return null;
end
$$;

create or replace function write_write(c jsonb, p jsonb, now bigint) returns text
language plpgsql as $$
declare
  of_dict text := c ->> 'dict';
  changed change;
  topic text := 'dict:' || of_dict;
  answers text[] := '{}';
begin
  for changed in select * from jsonb_populate_recordset(null::change, p) loop
    if changed.because = '' and changed.act in ('put', 'increment', 'pace') then
      changed.entry.revision := append(
        topic, 'written', told_of_entry(changed.key, (changed.entry).value), now
      );
      update entries
      set value = (changed.entry).value, revision = (changed.entry).revision, fence = (changed.entry).fence,
        expires_at = (changed.entry).expires_at
      where dict = of_dict and key = changed.key;
      changed.was_there := true;
    elsif changed.because = '' and changed.act = 'delete' then
      if changed.was_there then
        perform append(topic, 'deleted', '{"key":' || to_json(changed.key) || '}', now);
      end if;
      -- Under a fence even what is absent is kept: a stale holder must not write it afterwards.
      update entries
      set value = null, expires_at = null, fence = (changed.entry).fence
      where dict = of_dict and key = changed.key;
    end if;
    answers := answers || written_json(changed.entry, changed.was_there, changed.because, case when changed.because = 'rate'
      then due_in(c -> 'changes' -> (changed.o - 1), (changed.entry).expires_at, now) end);
  end loop;
  -- Rows that were only there to be locked.
  delete from entries as e
  using jsonb_array_elements(c -> 'changes') as x
  cross join lateral (select h.ctid from entries as h where h.dict = of_dict and h.key = x ->> 'key' limit 1) as h
  where e.ctid = h.ctid and e.value is null and e.fence = 0;
  if exists (select from jsonb_populate_recordset(null::change, p) as x where x.because = '' and (x.act in ('put', 'increment', 'pace') or (x.act = 'delete' and x.was_there))) then
    insert into names (kind, name, created_at) values ('dict', of_dict, now) on conflict do nothing;
  end if;
  return '[' || array_to_string(answers, ',') || ']';
end
$$;

-- The dict is ours alone.
create or replace function write_lower_fences(c jsonb) returns text
language plpgsql as $$
declare
  of_dict text := c ->> 'dict';
  newest bigint := greatest(latest(), 1); -- 0 would be no fence; the first token is 1 at least
  count bigint;
begin
  with lowered as (
    update entries
    set fence = newest
    where dict = of_dict and key = any (array(
      select e.key from entries as e where e.dict = of_dict and e.fence > newest limit coalesce((c ->> 'limit')::integer, 1000)
    ))
    returning 1
  )
  select count(*) into count from lowered;
  return count::text;
end
$$;
