-- Groups, limits, rates, orders and history. In a queue without such policies all of it is as by default.

-- The policy of a queue as one JSON object, null where nothing of it was ever set and nobody is held up; what is claimed under its limit,
-- when its rate is free, the last token under it, and until when nobody gets anything.
alter table holdfast_names add column policy text;
alter table holdfast_names add column laned integer not null default 0; -- whether its messages stand in lanes
alter table holdfast_names add column live integer not null default 0;
alter table holdfast_names add column tat integer not null default 0;
alter table holdfast_names add column last integer not null default 0;
alter table holdfast_names add column throttled_until integer not null default 0;

alter table holdfast_messages add column lane text;
alter table holdfast_messages add column level integer not null default 0;
alter table holdfast_messages add column rank integer; -- null while it is out of line
alter table holdfast_messages add column tied integer not null default 0; -- what the end of its claim has to do
alter table holdfast_messages add column ended_at integer;
alter table holdfast_messages add column trace text;

-- The order of this index is the order in which messages of one lane are claimed.
create index holdfast_messages_lane on holdfast_messages (queue, lane, level desc, rank) where state = 'ready' and rank is not null;

create index holdfast_messages_tied on holdfast_messages (queue) where tied > 0;

create index holdfast_messages_done on holdfast_messages (queue, ended_at) where state = 'done';

create table holdfast_lanes (
  queue text not null,
  lane text not null,
  turn integer not null,
  place integer not null,
  open integer not null,
  live integer not null,
  credit integer not null,
  wakes integer,
  tat integer not null,
  last integer not null,
  throttled_until integer not null,
  own text, -- what was set for this group, as a JSON object; null for nothing
  primary key (queue, lane)
) without rowid;

create index holdfast_lanes_open on holdfast_lanes (queue, turn, place, lane) where open = 1;

create index holdfast_lanes_wakes on holdfast_lanes (queue, wakes, lane) where wakes is not null;
