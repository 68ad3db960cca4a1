-- What a claim makes of leases that ended and of messages that were not started in time.

create or replace function write_sweep(
  of_queue text, expired text[], late text[], fates fate[], grave text, now bigint, number bigint default null
) returns void
language plpgsql as $$
declare
  told_groups text;
  ended record;
begin
  if expired <> '{}' then
    told_groups := groups_of(of_queue, expired);
    ended := end_claims(of_queue, fates, true, 'expired', null, null, now);
    perform append('queue:' || of_queue, 'expired', told(
      expired, array(select f.key from unnest(fates) with ordinality as f order by f.ordinality), told_groups
    ), now);
    perform bury(of_queue, fates, true, null, now, true), pass_on(of_queue, fates, now, number);
    perform free_slots(settings_of(of_queue), ended.before, ended.after, now, number);
  end if;
  if late <> '{}' then
    perform end_late(settings_of(of_queue), late, grave, now, number);
  end if;
end
$$;

-- Messages that were not started in time: dropped, or buried where the queue says so.
create or replace function end_late(s names, late text[], grave text, now bigint, number bigint) returns void
language plpgsql as $$
declare
  keys text[] := keys_of(s.name, late);
  before messages[] := messages_of(s.name, late);
  fates fate[];
  ended record;
begin
  if s.policy ->> 'late_to' = 'dead' then
    fates := fates_of(s.name, late, false, true, null, grave, null, now, 0, now);
    perform append('queue:' || s.name, 'expired', told(late, keys, groups_of(s.name, late) || ',"started":false'), now);
    ended := end_claims(s.name, fates, false, 'late', now, null, now);
    perform resize(s.name, -cardinality(late)), bury(s.name, fates, false, null, now), pass_on(s.name, fates, now, number);
    perform free_slots(s, ended.before, '{}', now, number);
    return;
  end if;
  perform append('queue:' || s.name, 'expired', told(late, keys, groups_of(s.name, late) || ',"started":false'), now);
  perform remove(s.name, late), promote(s.name, keys, now, number);
  perform resize(s.name, -cardinality(late)), free_slots(s, before, '{}', now, number);
end
$$;

create or replace function messages_of(of_queue text, ids text[]) returns messages[]
language plpgsql stable as $$
begin
  return array(
    select m.message
    from unnest(ids) with ordinality as i (id, o)
    cross join lateral (select m as message from messages as m where m.queue = of_queue and m.id = i.id limit 1) as m
    order by i.o
  );
end
$$;
