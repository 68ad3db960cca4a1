-- Lanes of queues. They are written row by row: joined with a set, SQLite would walk all of them.

-- name: lane
select queue, lane, turn, place, open, live, credit, wakes, tat, last, throttled_until, own
from holdfast_lanes
where queue = ? and lane = ?

-- name: lanes_by_turn
-- Reads the beginning of holdfast_lanes_open.
select queue, lane, turn, place, open, live, credit, wakes, tat, last, throttled_until, own
from holdfast_lanes
where queue = :queue and open = 1
order by turn, place, lane
limit :limit

-- name: lanes_by_wakes
-- Reads the beginning of holdfast_lanes_wakes.
select queue, lane, turn, place, open, live, credit, wakes, tat, last, throttled_until, own
from holdfast_lanes
where queue = :queue and wakes <= :now
order by wakes, lane
limit :limit

-- name: lanes_by_name
select queue, lane, turn, place, open, live, credit, wakes, tat, last, throttled_until, own
from holdfast_lanes
where queue = :queue and lane >= :prefix and substr(lane, 1, length(:prefix)) = :prefix and (:after is null or lane > :after)
order by lane
limit :limit

-- name: next_wake
select wakes
from holdfast_lanes
where queue = ? and wakes is not null
order by wakes
limit 1

-- name: save_lane
insert into holdfast_lanes (queue, lane, turn, place, open, live, credit, wakes, tat, last, throttled_until, own)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (queue, lane) do update set
  turn = excluded.turn, place = excluded.place, open = excluded.open, live = excluded.live, credit = excluded.credit,
  wakes = excluded.wakes, tat = excluded.tat, last = excluded.last, throttled_until = excluded.throttled_until, own = excluded.own

-- name: delete_lane
delete from holdfast_lanes
where queue = ? and lane = ?

-- name: lane_heads
-- Reads the beginning of a lane in holdfast_messages_lane.
select {bare}
from holdfast_messages as m
where m.queue = :queue and m.lane = :lane and m.state = 'ready' and m.rank is not null
  and (m.start_by is null or m.start_by > :now or m.attempts > 0)
order by m.level desc, m.rank, m.n
limit :limit

-- name: lease_tied
update holdfast_messages
set state = 'leased', attempts = attempts + 1, alarm = ?, holder = ?, token = ?, since = ?, until = ?, expired_to = ?, tied = ?
where n = ?

-- name: histories
-- Leaps from queue to queue in holdfast_messages_done.
with recursive found (queue) as (
  select (select queue from holdfast_messages where state = 'done' order by queue limit 1)
  union all
  select (select queue from holdfast_messages where state = 'done' and queue > found.queue order by queue limit 1)
  from found
  where found.queue is not null
)
select queue
from found
where queue is not null
limit ?
