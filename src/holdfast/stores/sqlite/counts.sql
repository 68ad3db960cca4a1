-- name: counts
select ready, leased, buffered, dead, done, (
  select coalesce(sum(counted), 0)
  from holdfast_events
  where topic = 'queue:' || ?1 and n > coalesce((select cast(value as integer) from holdfast_meta where name = 'states'), 0)
)
from holdfast_counts
where queue = ?1

-- name: unfolded
select topic, sum(counted)
from holdfast_events
where n > ? and n <= ? and counted <> 0
group by topic

-- name: add_counts
update holdfast_counts
set ready = ready + ?, leased = leased + ?, buffered = buffered + ?, dead = dead + ?, done = done + ?
where queue = ?

-- name: no_counts
update holdfast_counts
set ready = 0, leased = 0, buffered = 0, dead = 0, done = 0
where queue = ?

-- name: uncounted
select name
from holdfast_names
where kind = 'queue' and name not in (select queue from holdfast_counts)
limit 1

-- name: recount
insert into holdfast_counts (queue, ready, leased, buffered, dead, done)
select
  s.name,
  (select count(*) from holdfast_messages where queue = s.name and state = 'ready'),
  (select count(*) from holdfast_messages where queue = s.name and state = 'leased'),
  (select count(*) from holdfast_messages where queue = s.name and state = 'buffered'),
  (select count(*) from holdfast_messages where queue = s.name and state = 'dead'),
  (select count(*) from holdfast_messages where queue = s.name and state = 'done')
from holdfast_names as s
where s.kind = 'queue' and s.name not in (select queue from holdfast_counts)

-- name: states_of
select queue, state, count(*)
from holdfast_messages
where n in (select value from json_each(?))
group by queue, state

-- name: due_count
select count(*)
from (
  select 1
  from holdfast_messages
  where queue = ? and state = 'ready' and priority = ? and position <= ?
  limit ?
)

-- name: delayed_count
select count(*)
from (
  select 1
  from holdfast_messages
  where queue = ? and state = 'ready' and priority = ? and position > ?
  limit ?
)

-- name: first_position
select position
from holdfast_messages
where queue = ? and state = 'ready' and priority = ?
order by position
limit 1

-- name: ended_count
select count(*)
from (
  select 1
  from holdfast_messages
  where queue = ? and alarm <= ? and state = 'leased'
  limit ?
)

-- name: held_count
select (
  select count(*) from (select 1 from holdfast_messages where queue = ?1 and alarm > ?2 and state = 'leased' limit ?3)
) + (
  select count(*) from (select 1 from holdfast_messages where queue = ?1 and alarm is null and state = 'leased' limit ?3)
)

-- name: held_first
-- Walks holdfast_messages_alarm, then holdfast_messages_endless.
select holder, since
from (
  select holder, since from holdfast_messages where queue = ?1 and alarm > ?2 and state = 'leased' order by alarm limit ?3
)
union all
select holder, since
from (
  select holder, since from holdfast_messages where queue = ?1 and alarm is null and state = 'leased' limit ?3
)
limit ?3

-- name: first_dead
select dead_at
from holdfast_messages
where queue = ? and state = 'dead'
order by dead_at
limit 1
