-- Lanes of queues. They are written row by row: joined with a set, SQLite would walk all of them.

-- name: lane
select queue, lane, turn, place, open, live, credit, wakes, tat, last, throttled_until, own
from holdfast_lanes
where queue = ? and lane = ?

-- name: open_lanes
-- Reads the beginning of holdfast_lanes_open, and for each lane that of its line in holdfast_messages_lane. What time has overtaken is
-- asked once. The policy is left out where the queue is paused, bounded or throttled.
select {columns}, m.value,
  (
    select position
    from holdfast_messages
    where queue = ?1 and lane = l.lane and state = 'ready' and rank is not null and {in time by ?2}
    order by level desc, rank, n
    limit 1 offset 1
  ),
  exists (select 1 from holdfast_messages where queue = ?1 and alarm <= ?2)
    or exists (select 1 from holdfast_lanes where queue = ?1 and wakes <= ?2),
  case when coalesce(s.stopped, s.paused) = 0 and s.maxsize is null and s.throttled_until = 0 then s.policy end,
  l.queue, l.lane, l.turn, l.place, l.open, l.live, l.credit, l.wakes, l.tat, l.last, l.throttled_until, l.own
from holdfast_names as s
cross join holdfast_lanes as l
left join holdfast_messages as m on m.n = (
  select n
  from holdfast_messages
  where queue = ?1 and lane = l.lane and state = 'ready' and rank is not null and {in time by ?2}
  order by level desc, rank, n
  limit 1
)
where s.kind = 'queue' and s.name = ?1 and l.queue = ?1 and l.open = 1
order by l.turn, l.place, l.lane
limit ?3

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

-- name: lanes_by_turn
-- Reads the beginning of holdfast_lanes_open.
select queue, lane, turn, place, open, live, credit, wakes, tat, last, throttled_until, own
from holdfast_lanes
where queue = :queue and open = 1
order by turn, place, lane
limit :limit

-- name: lane_to_put
-- Everything that a put into a lane has to know.
select s.policy, s.maxsize, exists (select 1 from holdfast_messages where queue = ?1 and id = ?3),
  l.queue, l.lane, l.turn, l.place, l.open, l.live, l.credit, l.wakes, l.tat, l.last, l.throttled_until, l.own
from holdfast_names as s
left join holdfast_lanes as l on l.queue = ?1 and l.lane = ?2
where s.kind = 'queue' and s.name = ?1

-- name: lane_in_line
-- Everything that a lane follows from.
select s.policy,
  (
    select position
    from holdfast_messages
    where queue = ?1 and lane = ?2 and state = 'ready' and rank is not null and {in time by ?3}
    order by level desc, rank, n
    limit 1
  ),
  l.queue, l.lane, l.turn, l.place, l.open, l.live, l.credit, l.wakes, l.tat, l.last, l.throttled_until, l.own
from holdfast_names as s
cross join holdfast_lanes as l
where s.kind = 'queue' and s.name = ?1 and l.queue = ?1 and l.lane = ?2

-- name: move_lane
-- As save_lane where the lane is there, and its rate and its settings are as they were.
update holdfast_lanes
set turn = ?1, place = ?2, open = ?3, live = ?4, credit = ?5, wakes = ?8
where queue = ?6 and lane = ?7

-- name: save_live
-- As save_lane where no order changes: with columns of an index, SQLite would write that, too.
update holdfast_lanes
set live = ?, credit = ?
where queue = ? and lane = ?

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
  and {in time by :now of m}
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
