create table holdfast_names (
  kind text not null,
  name text not null,
  paused integer not null,
  maxsize integer,
  size integer not null,
  created_at integer not null,
  primary key (kind, name)
) without rowid;

-- The value comes last: what is read and changed most often must not lie behind it.
create table holdfast_messages (
  n integer primary key,
  queue text not null,
  id text not null,
  state text not null,
  priority integer not null,
  position integer not null,
  alarm integer, -- when time overtakes it: the end of its lease, or of the time in which it must be started
  key text,
  attempts integer not null,
  failures integer not null,
  holder text not null,
  token integer not null,
  since integer not null,
  until integer not null,
  expired_to text not null,
  max_attempts integer,
  dead_letter text,
  start_by integer,
  created_at integer not null,
  dead_at integer,
  last_error text,
  endings integer not null,
  history blob,
  metadata blob,
  value blob -- null where it is large and has a row in holdfast_values
);

create unique index holdfast_messages_id on holdfast_messages (queue, id);

-- The order of this index is the order in which messages are claimed; n, which every index ends with, breaks ties.
create index holdfast_messages_ready on holdfast_messages (queue, priority desc, position) where state = 'ready';

create index holdfast_messages_alarm on holdfast_messages (queue, alarm) where alarm is not null;

-- A key has at most one living message, and one copy buffered behind it.
create unique index holdfast_messages_key on holdfast_messages (queue, key) where key is not null and state in ('ready', 'leased');

create unique index holdfast_messages_buffered on holdfast_messages (queue, key) where state = 'buffered';

create index holdfast_messages_dead on holdfast_messages (queue, dead_at) where state = 'dead';

-- Every change of a message rewrites its row, so large values lie apart.
create table holdfast_values (
  n integer primary key,
  value blob not null
);

create table holdfast_entries (
  n integer primary key,
  dict text not null,
  key text not null,
  revision integer not null,
  fence integer not null,
  expires_at integer,
  value blob -- null where the key was deleted and only the fence is remembered
);

create unique index holdfast_entries_key on holdfast_entries (dict, key);

create index holdfast_entries_expires on holdfast_entries (expires_at) where expires_at is not null;

create table holdfast_leases (
  dict text not null, -- empty for a lease of no dict
  key text not null,
  holder text not null,
  lease_id text not null,
  token integer not null,
  since integer not null,
  until integer not null,
  primary key (dict, key)
) without rowid;

-- The number of an event is also the token or the revision of what it tells, so the newest is never removed.
create table holdfast_events (
  n integer primary key,
  topic text not null,
  event text not null,
  data blob not null,
  at integer not null
);

-- How many events a topic has and the last of their numbers, as far as they are counted, and the highest of its numbers that was pruned.
create table holdfast_topics (
  topic text primary key,
  count integer not null,
  last integer not null,
  floor integer not null
) without rowid;

-- What was answered to commands that crossed a wire, for a client that did not hear it and asks again.
create table holdfast_answers (
  n integer primary key,
  id text not null unique,
  note blob not null,
  at integer not null
);
