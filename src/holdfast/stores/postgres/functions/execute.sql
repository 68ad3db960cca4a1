-- One call a command: `command` as JSON, in which every value is the place of its text in `vals`. `objects` are the queues and dicts that it
-- uses, sorted, each as its kind, its name and whether the command needs it alone.
--
-- First all that the commands of a step name is locked, in one fixed order: objects, bounded queues, recent keys, messages, lanes, entries,
-- leases, each kind in the order of its names. Then the clock is read, every command is checked, and only then does any of them write.

-- Lists meet tables as `cross join lateral (… limit 1)`: a join could be turned round, and read the list again for every row, and
-- `= any (…)` may be answered by an index that knows only the queue.
create or replace function execute(command jsonb, vals text[], objects jsonb) returns text
language plpgsql {settings} {by_index} as $$
declare
  command_id text := coalesce(command ->> 'id', '');
  is_step boolean := command ->> 'type' = 'Together';
  parts jsonb[] := case when is_step then array(select jsonb_array_elements(command -> 'commands')) else array[command] end;
  types text[] := array(select p.c ->> 'type' from unnest(parts) as p (c));
  now bigint;
  known text;
  plans jsonb[] := '{}';
  answers text[] := '{}';
  notes text[] := '{}';
  used bigint := 0;
  written record;
  made lanes[];
begin
  if command_id <> '' then
    known := noted(command, command_id);
    if known is not null then
      return recall(command, known, clock_us());
    end if;
  end if;
  select l.parts, l.made into parts, made from lock_all(parts, types, objects) as l;
  now := clock_us();
  if types && '{{readings}}' then
    answers := read_parts(parts, is_step, now);
    used := (select coalesce(sum(octet_length(a.answer)), 0) from unnest(answers) as a (answer));
  end if;
  notes := answers;
  for i in 1 .. cardinality(parts) loop
    plans[i] := plan_command(parts[i], vals, now, is_step, room_reserved(parts, plans, parts[i] ->> 'queue'), used);
    used := used + told_bytes(plans[i]);
    perform refuse_answer() where used > answer_bytes();
  end loop;
  for i in 1 .. cardinality(parts) loop
    continue when answers[i] is not null;
    written := write_command(parts[i], vals, plans[i], used, now);
    used := used + case when plans[i] ? 'ruled' then octet_length(written.answer) else 0 end;
    answers[i] := written.answer; notes[i] := written.note;
  end loop;
  perform remove_idle(made) where made <> '{}';
  if types <> '{Seal}' then
    perform remember(command_id, now, case when is_step then to_json(notes)::text else notes[1] end);
  end if;
  return case when is_step then '[' || array_to_string(answers, ',') || ']' else answers[1] end;
end
$$;

-- Lock all that the commands of a step name or find; the commands with what they find, and the lanes that were made for it.
create or replace function lock_all(inout parts jsonb[], types text[], objects jsonb, out made lanes[])
language plpgsql as $$
begin
  made := '{}';
  perform lock_objects(objects);
  perform lock_recent(parts) where types && '{Put}';
  perform lock_messages(parts) where types && '{Put,Claim,Settle,Extend,Move}';
  if types && '{Move}' then
    parts := array(select with_ids(p.c, clock_us()) from unnest(parts) with ordinality as p (c, o) order by p.o);
  end if;
  perform lock_graves_soon(graves_named(parts)) where types && '{Settle,Move}';
  if types && '{Put,Settle,Move}' or names_keys(parts) then
    made := lock_lanes(parts);
  end if;
  perform lock_entries(parts) where types && '{Write,Acquire}';
  perform lock_leases(parts) where types && '{Write,Acquire,Renew,Release,Resize,Break}';
end
$$;

-- Whether claims of a step ask for keys.
create or replace function names_keys(parts jsonb[]) returns boolean
language sql immutable as $$
  select exists (select from unnest(parts) as p (c) where p.c ->> 'type' = 'Claim' and p.c ->> 'key' is not null)
$$;

-- Everyone shares the objects they use; see lock_object. What is ready in a bounded queue, and what is claimed under a limit or a rate of one, is
-- counted in its row, so there everybody takes turns.
create or replace function lock_objects(objects jsonb) returns void
language plpgsql as $$
declare
  object jsonb;
begin
  for object in select jsonb_array_elements(objects) loop
    perform lock_object(object ->> 0, object ->> 1, (object -> 2)::boolean);
  end loop;
  perform
  from names as s
  where s.kind = 'queue' and (s.maxsize is not null or s.rules & 8 > 0 or s.throttled_until > 0) and s.name in (
    select o ->> 1 from jsonb_array_elements(objects) as o where o ->> 0 = 'queue'
  )
  order by s.name
  for update;
end
$$;

-- The objects of a command that shares only this one.
create or replace function only_object(kind text, name text) returns jsonb
language sql immutable as $$
  select jsonb_build_array(jsonb_build_array(kind, name, false))
$$;

-- The entries that remember which keys were put not long ago. Before the messages: whoever has such a row finds, or makes, the key's message.
create or replace function lock_recent(parts jsonb[]) returns void
language plpgsql as $$
declare
  wanted record;
begin
  for wanted in
    select c ->> 'recent' as dict, i ->> 'key' as key
    from unnest(parts) as p (c), jsonb_array_elements(c -> 'items') as i
    where c ->> 'recent' is not null and i ->> 'unique_for_s' is not null
    group by 1, 2
    order by 1, 2
  loop
    perform lock_entry(wanted.dict, wanted.key);
  end loop;
end
$$;

-- The messages that receipts and ids name, and the living messages of keys: whoever has that row decides about the key.
create or replace function lock_messages(parts jsonb[]) returns void
language plpgsql as $$
declare
  queues text[];
  ids text[];
  locked text[];
begin
  -- A key's living message may have been another before the lock was ours: then that one, too.
  for attempt in 1 .. 100 loop
    select array_agg(w.queue order by w.queue, w.id), array_agg(w.id order by w.queue, w.id) into queues, ids
    from (
      select r ->> 0 as queue, r ->> 1 as id
      from unnest(parts) as p (c), jsonb_array_elements(c -> 'receipts') as r
      union
      select c ->> 'queue', i
      from unnest(parts) as p (c), jsonb_array_elements_text(c -> 'ids') as i
      where c ->> 'type' = 'Move'
      union
      select m.queue, m.id
      from (
        select c ->> 'queue' as queue, i ->> 'key' as key
        from unnest(parts) as p (c), jsonb_array_elements(c -> 'items') as i
        union all
        select c ->> 'queue', c ->> 'key'
        from unnest(parts) as p (c)
        where c ->> 'type' = 'Claim'
      ) as k
      cross join lateral (
        select m.queue, m.id
        from messages as m
        where m.queue = k.queue and m.key = k.key and m.key is not null and m.state in ('ready', 'leased')
        limit 1
      ) as m
    ) as w;
    exit when ids is not distinct from locked;
    perform
    from unnest(queues, ids) as w (queue, id)
    cross join lateral (select from messages as m where m.queue = w.queue and m.id = w.id limit 1 for update) as m;
    locked := ids;
  end loop;
end
$$;

-- A number may be drawn only once its row is won, so every entry and lease that is written has a row to be locked.
create or replace function lock_entries(parts jsonb[]) returns void
language plpgsql as $$
declare
  wanted record;
begin
  for wanted in
    select w.dict, array_agg(w.key order by w.key) as keys
    from (
      select c ->> 'dict' as dict, x ->> 'key' as key
      from unnest(parts) as p (c), jsonb_array_elements(c -> 'changes') as x
      union
      select c ->> 'dict', c ->> 'key'
      from unnest(parts) as p (c)
      where c ->> 'type' = 'Acquire' and c -> 'default' is not null and c ->> 'dict' is not null
    ) as w
    group by w.dict
    order by w.dict
  loop
    perform lock_entry(wanted.dict, k.key) from unnest(wanted.keys) as k (key);
  end loop;
end
$$;

create or replace function lock_leases(parts jsonb[]) returns void
language plpgsql as $$
declare
  wanted record;
begin
  for wanted in
    select coalesce(c ->> 'dict', '') as dict, c ->> 'key' as key
    from unnest(parts) as p (c)
    where c ->> 'type' in ('Acquire', 'Resize', 'Break')
    order by 1, 2
  loop
    perform lock_to_take(wanted.dict, wanted.key);
  end loop;
  for wanted in
    select coalesce(c ->> 'dict', '') as dict, c ->> 'key' as key, null as lease_id, 'take' as act
    from unnest(parts) as p (c)
    where c ->> 'type' in ('Acquire', 'Resize', 'Break')
    union
    -- Not what is somebody else's by now: its holder must not wait for us.
    select coalesce(n ->> 0, ''), n ->> 1, n ->> 2, c ->> 'type'
    from unnest(parts) as p (c), jsonb_array_elements(c -> 'names') as n
    union
    select c ->> 'dict', x ->> 'key', x ->> 'lease', 'rely'
    from unnest(parts) as p (c), jsonb_array_elements(c -> 'changes') as x
    where x ->> 'lease' is not null
    order by 1, 2
  loop
    if wanted.act = 'rely' then
      -- Till the end of the transaction nobody else gets the lease or gives it back; its holder may renew it.
      perform from leases where dict = wanted.dict and key = wanted.key and lease_id = wanted.lease_id for key share;
    elsif wanted.act = 'Renew' then
      perform from leases where dict = wanted.dict and key = wanted.key and lease_id = wanted.lease_id for no key update;
      perform from shares where wanted.dict = '' and key = wanted.key and lease_id = wanted.lease_id for no key update;
    else
      perform
      from leases
      where dict = wanted.dict and key = wanted.key
        and (wanted.lease_id is null or lease_id = wanted.lease_id or capacity is not null)
      for update;
      perform from shares where wanted.dict = '' and key = wanted.key and lease_id = wanted.lease_id for update;
    end if;
  end loop;
end
$$;

-- Room that earlier commands of the same step will use up.
create or replace function room_reserved(parts jsonb[], plans jsonb[], queue text) returns bigint
language plpgsql immutable as $$
begin
  return (
    select coalesce(sum((l.plan ->> 'wanted')::bigint), 0)::bigint
    from unnest(parts, plans) as l (c, plan)
    where l.c ->> 'type' = 'Put' and l.c ->> 'queue' = queue and l.plan is not null
  );
end
$$;

-- The plan that only this command's write understands; null where there is nothing to check.
create or replace function plan_command(c jsonb, vals text[], now bigint, is_step boolean, reserved bigint, used bigint) returns jsonb
language plpgsql as $$
declare
  whole boolean := is_step or coalesce((c ->> 'all_or_none')::boolean, false);
begin
  return case c ->> 'type'
    when 'Put' then check_put(c, vals, now, reserved)
    when 'Claim' then plan_claim(c, now, used)
    when 'Settle' then check_settle(c, now, whole)
    when 'Extend' then check_extend(c, now, whole)
    when 'Move' then case c ->> 'to' when 'due' then check_due(c, now) else check_move(c, now) end
    when 'Write' then check_write(c, vals, now, whole)
    when 'Acquire' then check_acquire(c, now, whole)
    when 'Renew' then check_leases(c, now, whole)
    when 'Release' then check_leases(c, now, whole)
    when 'Resize' then check_resize(c, now)
    when 'Break' then check_break(c, now)
    when 'Configure' then check_configure(c, now)
  end;
end
$$;

-- How much of the answer a plan will bring: what a claim hands out, and the entries that a write tells of.
create or replace function told_bytes(plan jsonb) returns bigint
language plpgsql immutable as $$
begin
  return case jsonb_typeof(plan)
    when 'object' then coalesce((plan ->> 'bytes')::bigint, 0)
    when 'array' then (select coalesce(sum(octet_length(p.one -> 'entry' ->> 'value')), 0) from jsonb_array_elements(plan) as p (one))
    else 0
  end;
end
$$;

create or replace function write_command(c jsonb, vals text[], plan jsonb, used bigint, now bigint, out answer text, out note text)
language plpgsql as $$
begin
  if c ->> 'type' = 'Claim' and plan ? 'ruled' then
    select w.answer, w.note into answer, note from write_ruled_claim(c, used, now) as w;
    return;
  elsif c ->> 'type' = 'Claim' then
    select w.answer, w.note into answer, note from write_claim(c, plan, now) as w;
    return;
  end if;
  answer := case c ->> 'type'
    when 'Put' then write_put(c, vals, plan, now)
    when 'Settle' then write_settle(c, plan, now)
    when 'Extend' then write_extend(c, plan, now)
    when 'Move' then case c ->> 'to' when 'due' then write_due(c, plan, now) else write_move(c, plan, now) end
    when 'Write' then write_write(c, plan, now)
    when 'LowerFences' then write_lower_fences(c)
    when 'Acquire' then write_acquire(c, vals, plan, now)
    when 'Renew' then write_renew(c, plan, now)
    when 'Release' then write_release(c, plan, now)
    when 'Resize' then write_resize(c, plan, now)
    when 'Break' then write_break(c, plan, now)
    when 'Configure' then write_configure(c, plan, now)
    when 'Clear' then write_clear(c, now)
    when 'Prune' then write_prune(c, now)
    when 'BeginImport' then write_begin_import(c, now)
    when 'Import' then write_import(c, now)
    when 'EndImport' then write_end_import()
    when 'Seal' then write_seal(c)
  end;
  note := answer;
end
$$;
