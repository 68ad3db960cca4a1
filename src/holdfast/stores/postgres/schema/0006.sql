-- Groups, orders, limits, rates and policies of queues. All of it is null or 0 in a queue that has none.
alter type state add value if not exists 'done';

alter table names
add column policy jsonb,
add column rules integer, -- what of the policy put and claim go by, in bits: see rules_of(); null where that is nothing
add column live bigint not null default 0, -- how many are claimed, of those that were claimed under a limit of the queue
add column tat bigint not null default 0, -- when the queue's rate is wholly free
add column last bigint not null default 0, -- the token of the last claim under that rate
add column throttled_until bigint not null default 0;

alter table messages
add column lane text collate "C", -- its group, empty without one; null in a queue without lanes
add column level integer,
add column rank bigint, -- its place in the lane; null while it is not due
add column tied integer, -- what the end of its claim has to do besides removing it, in bits
add column ended_at bigint, -- only of those that are kept when done
add column trace text;

-- The line of each lane: the order of this index is the order in which its messages are claimed.
create index messages_lane on messages (queue, lane, level desc, rank, n) where rank is not null and state = 'ready';

-- Those of queues with lanes that are not due yet.
create index messages_delayed on messages (queue, position, n) where lane is not null and rank is null and state = 'ready';

create index messages_done on messages (queue, ended_at, n) where ended_at is not null;

-- One row for each group that has something in line or claimed, settings of its own, or a rate that is not free yet.
create table lanes (
  turn bigint not null default 0, -- lanes are served in the order of turn and place; 0 while nothing is in line or claimed
  tat bigint not null default 0,
  last bigint not null default 0,
  throttled_until bigint not null default 0,
  wakes bigint, -- when time alone changes whether it is open, or needed
  live integer not null default 0,
  place integer not null default 0, -- orders lanes of one turn
  credit integer not null default 0, -- how many messages it still gives in this turn
  is_open boolean not null default false, -- whether a claim may take the first in line now
  queue text collate "C" not null,
  name text collate "C" not null,
  own jsonb, -- its own settings
  primary key (queue, name)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Full, empty and paused lanes stand in neither, so no claim passes them.
create index lanes_open on lanes (queue, turn, place, name) where is_open;

create index lanes_asleep on lanes (queue, wakes, name) where wakes is not null;

-- What a claim has from one lane: the first in its line, how many of them it gives, how many it may give yet, and whether no more can be found.
create type lane_share as (ids text[], given integer, most bigint, is_dry boolean);
