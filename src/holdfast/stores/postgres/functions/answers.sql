-- Answers told again to a client that did not hear them.

-- The id of a command stands in the event that it wrote, from which its answer is told again. What wrote none, or more than the event says,
-- leaves a note among the events of no topic, in order of time: the counter stays as it is. Either way a second of the same id is undone
-- (23505), and asked for again.
create or replace function remember(command_id text, now bigint, note text) returns text
language plpgsql as $$
begin
  if command_id <> '' then
    insert into events (n, at, topic, event, data, command) values (now, now, '', 'answered', note, command_id);
  end if;
  return note;
end
$$;

-- The note of a command that was applied before; null where it was not.
create or replace function noted(c jsonb, command_id text) returns text
language plpgsql as $$
declare
  wrote events;
  told_ids text[];
  ids text[];
begin
  if c ->> 'type' = 'Seal' then
    -- The events have another name since.
    return (select 'null' from meta where name = 'moved' and value = c ->> 'to');
  end if;
  select * into wrote from events where command = command_id;
  if wrote.topic is null or wrote.topic = '' then
    return wrote.data;
  end if;
  told_ids := texts(wrote.data::jsonb -> 'ids');
  case wrote.event
    when 'put' then
      ids := array(select i ->> 'id' from jsonb_array_elements(c -> 'items') as i);
      return put_answer(ids, firsts_among(ids, told_ids));
    when 'claimed' then
      return json_build_array(to_json(told_ids), coalesce(wrote.number, wrote.n))::text;
    else
      ids := array(select r ->> 1 from jsonb_array_elements(c -> 'receipts') as r);
      return '{"held":' || array_to_json(firsts_among(ids, told_ids)) || '}';
  end case;
end
$$;

-- The answer again, from its note.
create or replace function recall(c jsonb, note text, now bigint) returns text
language plpgsql as $$
begin
  return case c ->> 'type'
    when 'Claim' then recall_claim(c, note, now)
    when 'Acquire' then recall_acquire(c, note, now)
    when 'Together' then (
      select '[' || string_agg(recall(p.c, n.note, now), ',' order by p.o) || ']'
      from jsonb_array_elements(c -> 'commands') with ordinality as p (c, o)
      join json_array_elements_text(note::json) with ordinality as n (note, o) on n.o = p.o
    )
    else note
  end;
end
$$;

-- What a repeated claim is answered: the messages it still holds, or, as it got nothing, when to ask.
create or replace function recall_claim(c jsonb, note text, now bigint) returns text
language plpgsql as $$
declare
  of_queue text := c ->> 'queue';
  plan jsonb;
  answer text;
  claimed jsonb;
  ids text[];
  number bigint;
begin
  if coalesce((c ->> 'take')::boolean, false) then
    return '{"messages":' || note || '}';
  end if;
  if note = '[]' and is_ruled(settings_of(of_queue)) then
    return '{"messages":[],"due_in_s":' || case when is_paused(settings_of(of_queue)) then 'null' else '0' end || '}';
  elsif note = '[]' then
    plan := plan_claim(jsonb_build_object('queue', of_queue, 'key', c ->> 'key'), now, 0);
    return '{"messages":[],"due_in_s":'
      || case when plan -> 'chosen' <> '[]' or plan -> 'expired' <> '[]' or plan -> 'late' <> '[]' then '0'
        else coalesce(due_in_s(c, now)::text, 'null') end
      || '}';
  end if;
  -- Once, and not for each message.
  claimed := note;
  ids := texts(claimed -> 0);
  number := claimed -> 1;
  select coalesce(string_agg(message_json(m), ',' order by r.o), '') into answer
  from unnest(ids) with ordinality as r (id, o)
  cross join lateral (select * from messages as m where m.queue = of_queue and m.id = r.id limit 1) as m
  where m.state = 'leased' and m.token = number and m.until > now;
  return '{"messages":[' || answer || ']}';
end
$$;
