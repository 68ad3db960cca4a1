-- Queues: their settings, and their messages in every state.

-- name: settings
select kind, name, coalesce(stopped, paused), maxsize, size, created_at, policy, live, tat, last, throttled_until
from holdfast_names
where kind = ? and name = ?

-- name: save_settings
insert into holdfast_names (kind, name, paused, stopped, maxsize, size, created_at, policy, laned, live, tat, last, throttled_until)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (kind, name) do update set
  paused = excluded.paused, stopped = excluded.stopped, maxsize = excluded.maxsize, size = excluded.size, policy = excluded.policy,
  laned = excluded.laned, live = excluded.live, tat = excluded.tat, last = excluded.last, throttled_until = excluded.throttled_until

-- name: drop_settings
delete from holdfast_names
where kind = ? and name = ?

-- name: names
select kind, name, coalesce(stopped, paused), maxsize, size, created_at, policy, live, tat, last, throttled_until
from holdfast_names
where kind = :kind and name >= max(:after, :prefix) and +name > :after and substr(name, 1, length(:prefix)) = :prefix
order by name
limit :limit

-- name: put_each
-- As put, for several whose options are the same but for their priorities, into a queue that is known to take them: each is an id, a priority
-- and where its value is in ?8, which has all of them. A statement a message costs half as much again, and comes back to Python for each.
insert into holdfast_messages (
  queue, id, state, priority, position, alarm, attempts, failures, holder, token, since, until, expired_to, max_attempts, dead_letter, start_by,
  created_at, endings, metadata, value
)
select
  ?1, json_extract(m.value, '$[0]'), 'ready', json_extract(m.value, '$[1]'), ?2, ?5, 0, 0, '', 0, 0, 0, 'place', ?3, ?4, ?5, ?6, 0, ?7,
  substr(?8, json_extract(m.value, '$[2]'), json_extract(m.value, '$[3]'))
from json_each(?9) as m

-- name: put
-- Adds nothing where the id or the key is taken, the queue is new, it is bounded, or it has lanes and the message none, or the other way
-- round: the rules decide then.
insert into holdfast_messages (
  queue, id, state, priority, position, alarm, key, attempts, failures, holder, token, since, until, expired_to,
  max_attempts, dead_letter, start_by, created_at, endings, metadata, value, extra, lane, level, rank
)
select ?1, ?2, 'ready', ?3, ?4, ?7, ?15, 0, 0, '', 0, 0, 0, 'place', ?5, ?6, ?7, ?8, 0, ?9, ?10, ?11, ?12, ?13, ?14
where exists (select 1 from holdfast_names where kind = 'queue' and name = ?1 and maxsize is null and laned = (?12 is not null))
on conflict do nothing

-- name: add
insert into holdfast_messages ({added})
values ({new row})

-- name: add_value
insert into holdfast_values (n, value)
values (?, ?)
on conflict (n) do update set value = excluded.value

-- name: message
select {bare}
from holdfast_messages as m
where m.queue = ? and m.id = ?

-- name: messages
select {bare}
from json_each(?) as wanted
cross join holdfast_messages as m on m.queue = ? and m.id = wanted.value

-- name: keyed
select {bare}
from json_each(:keys) as wanted
cross join holdfast_messages as m
  on m.queue = :queue and m.key = wanted.value and m.key is not null and m.state in ('ready', 'leased')
union all
select {bare}
from json_each(:keys) as wanted
cross join holdfast_messages as m
  on m.queue = :queue and m.key = wanted.value and m.state = 'buffered'

-- name: pick
select {columns}, m.value
from json_each(:ids) as wanted
cross join holdfast_messages as m on m.queue = :queue and m.id = wanted.value
order by wanted.key

-- name: heads
-- Reads the beginning of holdfast_messages_ready, of the highest priority in use. Python pays for each column more than SQLite does, so
-- what most messages leave out is not read but asked about. Of a queue with lanes it reads nothing.
select m.n, m.id, m.key, m.priority, m.position, m.attempts, m.failures, m.created_at, m.value,
  m.value is null or m.max_attempts is not null or m.dead_letter is not null or m.start_by is not null or m.endings > 0
    or m.history is not null or m.last_error is not null or m.metadata is not null or m.extra is not null,
  exists (select 1 from holdfast_messages where queue = ?1 and alarm <= ?2),
  case when s.throttled_until > 0 then '{}' else s.policy end, coalesce(s.stopped, s.paused), s.maxsize, s.size
from holdfast_names as s
cross join holdfast_messages as m
where s.kind = 'queue' and s.name = ?1 and s.laned = 0
  and m.queue = ?1 and m.state = 'ready'
  and m.priority = (select priority from holdfast_messages where queue = ?1 and state = 'ready' order by priority desc limit 1)
  and m.position <= ?2
  and {in time by ?2 of m}
order by m.position, m.n
limit ?3

-- name: heads_at
select {columns}, m.value
from holdfast_messages as m
where m.queue = :queue and m.state = 'ready' and m.priority = :priority and m.position <= :now
  and {in time by :now of m}
order by m.position, m.n
limit :limit

-- name: next_priority
select priority
from holdfast_messages
where queue = ? and state = 'ready' and priority < ?
order by priority desc
limit 1

-- name: head_position
select position
from holdfast_messages
where queue = ?1 and state = 'ready' and priority = ?2 and {in time by ?3}
order by position
limit 1

-- name: overdue
select {bare}
from holdfast_messages as m
where m.queue = ? and m.alarm <= ?
order by m.alarm, m.n
limit ?

-- name: next_alarm
select alarm
from holdfast_messages
where queue = ? and alarm > ?
order by alarm
limit 1

-- name: next_position
select position
from holdfast_messages
where queue = ?1 and state = 'ready' and priority = ?2 and position > ?3 and {in time by ?3}
order by position
limit 1

-- name: lease_one
update holdfast_messages
set state = 'leased', attempts = attempts + 1, alarm = ?, holder = ?, token = ?, since = ?, until = ?, expired_to = ?
where n = ?

-- name: lease
update holdfast_messages
set state = 'leased', attempts = attempts + 1, alarm = ?, holder = ?, token = ?, since = ?, until = ?, expired_to = ?
where n in (select value from json_each(?))

-- name: extend
update holdfast_messages
set alarm = ?, until = ?
where n in (select value from json_each(?))

-- name: extend_one
update holdfast_messages
set alarm = ?, until = ?, failures = case when ? then 0 else failures end
where queue = ? and id = ? and state = 'leased' and token = ? and until > ?

-- name: settle_plain
-- Most messages have no key and a small value, and then there is nothing to answer: `returning` costs half as much again.
delete from holdfast_messages
where queue = ? and id = ? and state = 'leased' and token = ? and until > ? and tied = 0 and key is null and value is not null

-- name: settle_one
-- Not what counts under the queue's limit, nor what is kept when it is done: that is in holdfast_messages_tied.
delete from holdfast_messages
where queue = ? and id = ? and state = 'leased' and token = ? and until > ? and tied & 6 = 0
returning n, key, value is null, tied, lane, extra

-- name: settle
-- ?1 is an object of tokens by id: to take arrays apart would cost as much as to remove the message.
delete from holdfast_messages
where n in (
  select m.n
  from json_each(?1) as wanted
  cross join holdfast_messages as m on m.queue = ?2 and m.id = wanted.key
  where m.state = 'leased' and m.token = wanted.value and m.until > ?3
)
and not exists (select 1 from holdfast_messages where queue = ?2 and tied & 6 > 0)
returning id, tied > 0 or key is not null or value is null, n, key, value is null, tied, lane, extra

-- name: remove_one
delete from holdfast_messages
where n = ?

-- name: remove
delete from holdfast_messages
where n in (select value from json_each(?))

-- name: restore
update holdfast_messages
set {changed}
where n = ?

-- name: revalue
update holdfast_messages
set metadata = ?, extra = ?, value = ?
where n = ?

-- name: drop_values
delete from holdfast_values
where n in (select value from json_each(?))

-- name: clear_values
delete from holdfast_values
where n in (select n from holdfast_messages where queue = ? and value is null)

-- name: large_value
select value
from holdfast_values
where n = ?

-- name: clear_messages
delete from holdfast_messages
where queue = ?

-- name: tally_ready
select count(*), count(*) filter (where position > :now), min(position)
from holdfast_messages
where queue = :queue and state = 'ready'

-- name: tally_buffered
select count(*)
from holdfast_messages
where queue = :queue and state = 'buffered'

-- name: tally_leased
select
  count(*) filter (where until > :now),
  count(*) filter (where until <= :now),
  min(since) filter (where until > :now),
  avg(since) filter (where until > :now)
from holdfast_messages
where queue = :queue and state = 'leased'

-- name: tally_holders
select holder, count(*)
from holdfast_messages
where queue = :queue and state = 'leased' and until > :now
group by holder

-- name: tally_dead
select count(*), min(dead_at)
from holdfast_messages
where queue = :queue and state = 'dead'

-- name: browse_ready
select {columns}, m.value
from holdfast_messages as m
where m.queue = :queue and m.state = 'ready' and (-m.priority, m.position, m.n) > (:a, :b, :c)
order by m.priority desc, m.position, m.n
limit :limit

-- name: browse_leased
-- Walks holdfast_messages_alarm, then holdfast_messages_endless: a page costs no more than its length.
select *
from (
  select {columns}, m.value
  from holdfast_messages as m
  where m.queue = :queue and m.alarm is not null and m.state = 'leased' and (m.alarm, m.n) > (:a, :b)
  order by m.alarm, m.n
  limit :limit
)
union all
select *
from (
  select {columns}, m.value
  from holdfast_messages as m
  where m.queue = :queue and m.alarm is null and m.state = 'leased' and m.n > case when :a < {never} then -1 else :b end
  order by m.n
  limit :limit
)
limit :limit

-- name: browse_dead
select {columns}, m.value
from holdfast_messages as m
where m.queue = :queue and m.state = 'dead' and (m.dead_at, m.n) > (:a, :b)
order by m.dead_at, m.n
limit :limit

-- name: tally_done
select count(*)
from holdfast_messages
where queue = :queue and state = 'done'

-- name: browse_done
select {columns}, m.value
from holdfast_messages as m
where m.queue = :queue and m.state = 'done' and (m.ended_at, m.n) > (:a, :b)
order by m.ended_at, m.n
limit :limit

-- name: browse_buffered
select {columns}, m.value
from holdfast_messages as m
where m.queue = :queue and m.state = 'buffered' and (m.key, m.n) > (:a, :b)
order by m.key, m.n
limit :limit
