-- One statement a section. Sets are passed as JSON arrays. What stands in braces is in statements.py: {columns} are a message's columns
-- without its value, {bare} the same and whether the value lies apart.

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

-- name: entries
select e.dict, e.key, e.value, e.revision, e.fence, e.expires_at
from json_each(:keys) as wanted
cross join holdfast_entries as e on e.dict = :dict and e.key = wanted.value

-- name: scan
-- An index has one lower bound: of two that are given it takes the first, and goes on through everything before a prefix.
select dict, key, value, revision, fence, expires_at
from holdfast_entries
where dict = :dict and key >= max(:after, :prefix) and +key > :after and key <= :last and substr(key, 1, length(:prefix)) = :prefix
  and value is not null and (expires_at is null or expires_at > :now)
order by key
limit :limit

-- name: length
select count(*)
from holdfast_entries
where dict = ? and value is not null and (expires_at is null or expires_at > ?)

-- name: save_entry
insert into holdfast_entries (dict, key, value, revision, fence, expires_at)
values (?, ?, ?, ?, ?, ?)
on conflict (dict, key) do update set
  value = excluded.value, revision = excluded.revision, fence = excluded.fence, expires_at = excluded.expires_at

-- name: delete_entry
delete from holdfast_entries
where dict = ? and key = ?

-- name: bare_dict
-- What is known of fences stays when an entry goes.
update holdfast_entries
set value = null, expires_at = null
where dict = ? and fence > 0

-- name: clear_dict
delete from holdfast_entries
where dict = ? and fence = 0

-- name: leases
select l.dict, l.key, l.holder, l.lease_id, l.token, l.since, l.until, l.shared
from json_each(?) as wanted
cross join holdfast_leases as l
  on l.dict = json_extract(wanted.value, '$[0]') and l.key = json_extract(wanted.value, '$[1]')

-- name: save_lease
insert into holdfast_leases (dict, key, holder, lease_id, token, since, until)
values (?, ?, ?, ?, ?, ?, ?)
on conflict (dict, key) do update set
  holder = excluded.holder, lease_id = excluded.lease_id, token = excluded.token, since = excluded.since, until = excluded.until

-- name: delete_lease
delete from holdfast_leases
where dict = ? and key = ?

-- name: leases_of
select dict, key, holder, lease_id, token, since, until, shared
from holdfast_leases
where dict = ?1 and key >= max(?2, ?3) and +key > ?2 and key <= ?4
order by key

-- name: append
insert into holdfast_events (topic, event, data, at, counted)
values (?, ?, ?, ?, ?)

-- name: latest
select n, at
from holdfast_events
order by n desc
limit 1

-- name: oldest
select n, at
from holdfast_events
order by n
limit 1

-- name: floor
-- Of the topic, or of the whole store where it took another's data over.
select max(
  coalesce((select floor from holdfast_topics where topic = ?), 0),
  coalesce((select cast(value as integer) from holdfast_meta where name = 'floor'), 0)
)

-- name: has_leapt
select 1
from holdfast_gaps
where opener = ?

-- name: add_gap
insert into holdfast_gaps (n, behind, skipped, opener)
select ?1, ?2, ?1 - ?2 - 1 + coalesce((select skipped from holdfast_gaps order by n desc limit 1), 0), ?3

-- name: gap_above
select behind
from holdfast_gaps
where n > ?
order by n
limit 1

-- name: skipped_up_to
select skipped
from holdfast_gaps
where n <= ?
order by n desc
limit 1

-- name: gap_too_many
select n
from holdfast_gaps
order by n desc
limit 1 offset ?

-- name: forget_gaps
delete from holdfast_gaps
where n <= ?

-- name: stretch_end
select n
from holdfast_events
where n > ?
order by n
limit 1 offset ?

-- name: changes
-- Walks the log by number; a bounded stretch at a time, since most of it may be of other topics.
select n, topic, event, data, at
from holdfast_events
where n > :after and n <= :upto and topic = :topic
order by n
limit :limit

-- name: quiet_until
-- Up to where the topic is known to have nothing after a number, if it is.
select cast(value as integer)
from holdfast_meta
where name = 'counted' and not exists (select 1 from holdfast_topics where topic = ? and last > ?)

-- name: count_topics
select topic, count(*), max(n)
from holdfast_events
where n > ? and n <= ?
group by topic

-- name: add_topic_count
insert into holdfast_topics (topic, count, last, floor)
values (?, ?, ?, 0)
on conflict (topic) do update set count = count + excluded.count, last = excluded.last

-- name: drop_events
update holdfast_topics
set count = count - ?, floor = max(floor, ?)
where topic = ?

-- name: old_events
select n, topic, at
from holdfast_events
where n < ?
order by n
limit ?

-- name: last_topic
-- The last of the next so many.
select topic
from (select topic from holdfast_topics where topic > ? order by topic limit ?)
order by topic desc
limit 1

-- name: topics_over
select topic, count - :keep, floor
from holdfast_topics
where topic > :begin and topic <= :end and count > :keep

-- name: event_from
select n, at
from holdfast_events
where n >= ?
order by n
limit 1

-- name: old_events_of
select n
from holdfast_events
where topic = :topic and n > :floor and n < :young
order by n
limit :limit

-- name: delete_events
delete from holdfast_events
where n in (select value from json_each(?))

-- name: stale_entries
select dict, key, value, revision, fence, expires_at
from holdfast_entries
where expires_at <= ?
order by expires_at
limit ?

-- name: forget_answers
-- Looks at the first few alone: with `at < ?` inside, it would walk all of them to find that none is old enough.
delete from holdfast_answers
where n in (
  select n
  from (select n, at from holdfast_answers order by n limit ?2)
  where at < ?1
)

-- name: recall
select note
from holdfast_answers
where id = ?

-- name: recalled
select id
from holdfast_answers
where id in (select value from json_each(?))

-- name: record
insert into holdfast_answers (id, note, at)
values (?, ?, ?)

-- name: meta
select value
from holdfast_meta
where name = ?

-- name: save_meta
insert into holdfast_meta (name, value)
values (?, ?)
on conflict (name) do update set value = excluded.value

-- name: next_n
select coalesce(max(n), 0) + 1
from holdfast_messages

-- name: all_leases
select dict, key, holder, lease_id, token, since, until, shared
from holdfast_leases

-- name: fenced
-- Walks holdfast_entries_key.
select dict, key, fence
from holdfast_entries
where (dict, key) > (?, ?) and fence > 0
order by dict, key

-- name: append_at
insert into holdfast_events (n, topic, event, data, at, counted)
values (?, ?, ?, ?, ?, ?)

-- name: drop_meta
delete from holdfast_meta
where name = ?
