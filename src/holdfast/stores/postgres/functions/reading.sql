-- What only reads: all that one command reads, a step too, is of one moment, and a watch goes on from there.
--
-- First whoever reads takes turns at the logs that a watch would follow. Then one statement reads everything: the functions it calls are
-- stable, and see what it sees. Its snapshot is how far those logs were read.

create or replace function read(command jsonb) returns text
language plpgsql {settings} {by_index} as $$
begin
  if command ->> 'type' <> 'Together' then
    return (read_parts(array[command], false, clock_us()))[1];
  end if;
  return '[' || array_to_string(read_parts(array(select jsonb_array_elements(command -> 'commands')), true, clock_us()), ',') || ']';
end
$$;

-- For each command its answer, null for those that write.
create or replace function read_parts(parts jsonb[], is_step boolean, now bigint) returns text[]
language plpgsql as $$
declare
  turns topics[];
  snapshot pg_snapshot;
  answers text[];
  used bigint;
  indexes jsonb;
begin
  for attempt in 1 .. 100 loop
    turns := array(
      select begin_reading(t.topic)
      from (
        select distinct log.topic from unnest(parts) as p (c), unnest(logs_of(p.c, is_step)) as log (topic) order by log.topic
      ) as t
    );
    -- One after the other, for each is told how much of the answer those before it have used.
    with recursive told as (
      select 0 as o, null::text as answer, 0::bigint as used
      union all
      select t.o + 1, a.answer, t.used + coalesce(octet_length(a.answer), 0)
      from told as t
      cross join lateral (select read_one(parts[t.o + 1], now, t.used) as answer offset 0) as a
      where t.o < cardinality(parts)
    )
    select coalesce(array_agg(t.answer order by t.o) filter (where t.o > 0), '{}'), max(t.used), pg_current_snapshot()
    into answers, used, snapshot
    from told as t;
    -- A log that had no events needed no turn. Where it has its first by now, another may have been written before and commit after it.
    exit when not exists (
      select from unnest(turns) as t where t.floor is null and exists (select from events as e where e.topic = t.topic)
    );
  end loop;
  indexes := (select jsonb_object_agg(t.topic, advance_horizon(t, snapshot, 0)) from unnest(turns) as t);
  for i in 1 .. cardinality(parts) loop
    if parts[i] ->> 'type' = 'Changes' then
      answers[i] := read_events(parts[i], case when is_step then snapshot end, used);
      used := used + octet_length(answers[i]);
    elsif logs_of(parts[i], is_step) <> '{}' then
      answers[i] := left(answers[i], -1) || ',"index":'
        || (select max((indexes ->> log.topic)::bigint) from unnest(logs_of(parts[i], is_step)) as log (topic)) || '}';
    end if;
  end loop;
  return answers;
end
$$;

-- The logs that are read up to the moment of the answer. Changes alone takes its turn by itself, where there is something new.
create or replace function logs_of(c jsonb, is_step boolean) returns text[]
language plpgsql immutable as $$
begin
  return case c ->> 'type'
    when 'Browse' then array['queue:' || (c ->> 'queue')]
    when 'Read' then case when (c ->> 'anchor')::boolean then array['dict:' || (c ->> 'dict')] else '{}' end
    when 'Look' then array(select distinct log_topic(coalesce(c ->> 'dict', ''), k.key) from unnest(texts(c -> 'keys')) as k (key))
    when 'Changes' then case when is_step then array[c ->> 'topic'] else '{}' end
    else '{}'
  end;
end
$$;

-- The answer but for where a log stood.
create or replace function read_one(c jsonb, now bigint, used bigint) returns text
language plpgsql stable as $$
begin
  return case c ->> 'type' {answers} end;
end
$$;
