-- How many messages of each queue are in each state. Whatever changes it adds a row to `shifts`, so that no writer waits for another; now and then
-- those rows are added to `counts`. The two together are what there is; a queue without a row in either has nothing.
create table counts (
  queue text collate "C" primary key,
  ready bigint not null,
  leased bigint not null,
  buffered bigint not null,
  dead bigint not null,
  done bigint not null
) with (fillfactor = 50);

create table shifts (
  queue text collate "C" not null,
  ready bigint not null default 0,
  leased bigint not null default 0,
  buffered bigint not null default 0,
  dead bigint not null default 0,
  done bigint not null default 0
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Whoever may add messages may count them.
do $$
declare
  writer record;
begin
  for writer in
    select a.grantee::regrole::text as name
    from pg_class as c cross join aclexplode(c.relacl) as a
    where c.oid = 'messages'::regclass and a.privilege_type = 'INSERT' and a.grantee <> 0
  loop
    execute format('grant select, insert, update, delete on counts, shifts to %s', writer.name);
  end loop;
end
$$;

-- Count what a statement changes, also one of a release that knows no counts, or of a person, whatever its search_path. The plainest functions
-- count by themselves, and say so by a setting. A condition of the trigger would cost them three times what looking here does, and so
-- would a function with settings of its own.
do $do$
begin
  execute replace($code$
create function count_added() returns trigger
language plpgsql as $$
begin
  if current_setting('holdfast.counting', true) = 'by_hand' then
    return null;
  end if;
  insert into {schema}.shifts
  select m.queue, count(*) filter (where m.state::text = 'ready'), count(*) filter (where m.state::text = 'leased'),
    count(*) filter (where m.state::text = 'buffered'), count(*) filter (where m.state::text = 'dead'), count(m.ended_at)
  from added as m
  group by m.queue;
  return null;
end
$$;

create function count_gone() returns trigger
language plpgsql as $$
begin
  if current_setting('holdfast.counting', true) = 'by_hand' then
    return null;
  end if;
  insert into {schema}.shifts
  select m.queue, -count(*) filter (where m.state::text = 'ready'), -count(*) filter (where m.state::text = 'leased'),
    -count(*) filter (where m.state::text = 'buffered'), -count(*) filter (where m.state::text = 'dead'), -count(m.ended_at)
  from gone as m
  group by m.queue;
  return null;
end
$$;

create function count_changed() returns trigger
language plpgsql as $$
begin
  if current_setting('holdfast.counting', true) = 'by_hand' then
    return null;
  end if;
  insert into {schema}.shifts
  select c.queue, sum(c.ready), sum(c.leased), sum(c.buffered), sum(c.dead), sum(c.done)
  from (
    select m.queue, m.by * (m.state = 'ready')::integer as ready, m.by * (m.state = 'leased')::integer as leased,
      m.by * (m.state = 'buffered')::integer as buffered, m.by * (m.state = 'dead')::integer as dead, m.by * (m.ended_at is not null)::integer as done
    from (
      select a.queue, a.state::text as state, a.ended_at, 1 as by from added as a
      union all
      select g.queue, g.state::text, g.ended_at, -1 from gone as g
    ) as m
  ) as c
  group by c.queue
  having sum(c.ready) <> 0 or sum(c.leased) <> 0 or sum(c.buffered) <> 0 or sum(c.dead) <> 0 or sum(c.done) <> 0;
  return null;
end
$$;
$code$, '{schema}', quote_ident(current_schema()));
end
$do$;

create trigger count_added after insert on messages referencing new table as added
for each statement execute function count_added();

create trigger count_gone after delete on messages referencing old table as gone
for each statement execute function count_gone();

create trigger count_changed after update on messages referencing new table as added old table as gone
for each statement execute function count_changed();

-- The triggers keep writers waiting until this has been committed, so nothing is counted twice or not at all.
insert into counts
select m.queue, count(*) filter (where m.state::text = 'ready'), count(*) filter (where m.state::text = 'leased'),
  count(*) filter (where m.state::text = 'buffered'), count(*) filter (where m.state::text = 'dead'), count(m.ended_at)
from messages as m
group by m.queue;
