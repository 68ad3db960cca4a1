-- The log: events by topic, how many each topic keeps, and the numbers that are skipped.

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

-- name: append_at
insert into holdfast_events (n, topic, event, data, at, counted)
values (?, ?, ?, ?, ?, ?)
