-- How many messages of each queue are in each state, so that looking at a queue does not walk it. A queue has a row exactly where all of it
-- is counted, up to an event whose number is in holdfast_meta; later events say what they change. Without a row a queue is walked, and
-- counted when the file is opened next.
create table holdfast_counts (
  queue text primary key,
  ready integer not null default 0,
  leased integer not null default 0,
  buffered integer not null default 0,
  dead integer not null default 0,
  done integer not null default 0
) without rowid;

create trigger holdfast_counts_begin after insert on holdfast_names when new.kind = 'queue' begin
  insert or ignore into holdfast_counts (queue)
  select new.name where not exists (select 1 from holdfast_messages where queue = new.name);
end;

create trigger holdfast_counts_end after delete on holdfast_names when old.kind = 'queue' begin
  delete from holdfast_counts where queue = old.name;
end;

-- How many messages an event makes ready, and 2^32 times how many it makes leased; 0 where the counts know it. A release that counts nothing
-- writes its events without it.
alter table holdfast_events add column counted integer;

create trigger holdfast_counts_spoilt after insert on holdfast_events when new.counted is null begin
  delete from holdfast_counts;
end;

-- Leases without an end, which stand in no order of time.
create index holdfast_messages_endless on holdfast_messages (queue) where state = 'leased' and alarm is null;

-- What counts under the limit of its queue, or is kept when it is done: no longer every claim of a group.
drop index holdfast_messages_tied;
create index holdfast_messages_tied on holdfast_messages (queue) where tied & 6 > 0;
