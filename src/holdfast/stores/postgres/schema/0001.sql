-- Everything lies in a schema of its own, which `search_path` names while this runs.
--
-- Texts compare by their bytes (collate "C"), as they do in Python. Moments are microseconds of clock_us(). Values are the JSON text
-- that the client sent: jsonb would reorder and renumber it.

create table meta (
  name text primary key,
  value text not null
);

-- One counter for tokens, revisions and events. Whoever draws from it has won its row before: a later holder's number is larger.
create sequence numbers;

create table names (
  kind text not null,
  name text collate "C" not null,
  paused boolean not null default false,
  maxsize bigint,
  size bigint not null default 0, -- how many messages are ready; kept only where there is a maxsize
  created_at bigint not null,
  primary key (kind, name)
) with (fillfactor = 50);

create type state as enum ('ready', 'leased', 'dead', 'buffered');

-- What every message has comes first and has a fixed width; what most leave out costs a bit each.
create table messages (
  n bigint not null generated always as identity, -- breaks ties of position
  position bigint not null,
  created_at bigint not null,
  token bigint not null default 0,
  since bigint not null default 0,
  until bigint not null default 0,
  priority integer not null default 0,
  attempts integer not null default 0,
  failures integer not null default 0,
  endings integer not null default 0,
  state state not null default 'ready',
  queue text collate "C" not null,
  id text collate "C" not null,
  holder text not null default '',
  expired_to text not null default 'place',
  key text collate "C",
  max_attempts integer,
  dead_letter text collate "C",
  start_by bigint,
  dead_at bigint,
  last_error text,
  history text[], -- each a JSON array
  metadata text,
  value text not null,
  primary key (queue, id) with (fillfactor = 60) -- a claim makes a second entry, beside the first
) with (
  fillfactor = 70, -- and a second row, which is cheapest on the same page
  -- Every message is written thrice and then gone: its dead versions are to be cleared away long before they are a fifth of the table.
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_insert_scale_factor = 0.1,
  autovacuum_analyze_scale_factor = 0.1,
  autovacuum_vacuum_cost_delay = 0
);

alter table messages alter column value set compression pglz; -- lz4 is not built in everywhere

-- The order of this index is the order in which messages are claimed.
create index messages_ready on messages (queue, priority desc, position, n) where state = 'ready';

-- What time overtakes: leases that end, and messages that had to be started by then.
create index messages_leased on messages (queue, until, n) where state = 'leased';

create index messages_late on messages (queue, start_by, n) where state = 'ready' and start_by is not null and attempts = 0;

-- A key has at most one living message, and one copy buffered behind it.
create unique index messages_key on messages (queue, key) where key is not null and state in ('ready', 'leased');

create unique index messages_buffered on messages (queue, key) where state = 'buffered';

create index messages_dead on messages (queue, dead_at, n) where state = 'dead';

create table entries (
  dict text collate "C" not null,
  key text collate "C" not null,
  value text, -- null where only the fence is known, or somebody is about to write
  revision bigint not null default 0,
  fence bigint not null default 0,
  expires_at bigint,
  primary key (dict, key)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

create index entries_expires on entries (expires_at) where expires_at is not null;

create table leases (
  dict text collate "C" not null, -- empty for a lease of no dict
  key text collate "C" not null,
  holder text not null default '',
  lease_id text not null default '', -- empty where somebody is about to be granted it
  token bigint not null default 0,
  since bigint not null default 0,
  until bigint not null default 0,
  primary key (dict, key)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- The log. A transaction draws n and may commit after a later one was read: see functions/log.sql.
create table events (
  n bigint not null,
  at bigint not null,
  xid xid8 not null default pg_current_xact_id(),
  number bigint, -- the n it was written with, where a reader gave it another
  topic text collate "C" not null,
  event text not null,
  data text not null,
  command text collate "C" -- the id of the command that wrote it, for a client that did not hear the answer and asks again
) with (
  toast_tuple_target = 8160, -- the ids of a large batch are not worth compressing: they are gone soon
  autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_scale_factor = 0.05
);

create index events_topic on events (topic, n);

create index events_xid on events (topic, xid);

create unique index events_command on events (command) where command is not null;

-- How far each log was read, with what was visible then, and how far it was pruned.
create table topics (
  topic text collate "C" primary key,
  horizon bigint not null default 0,
  seen pg_snapshot not null default '1:1:',
  floor bigint not null default 0,
  count bigint not null default 0, -- of the events up to counted
  counted bigint not null default 0
) with (fillfactor = 50);

-- Who wants to hear of what, and until when: nobody else is notified.
create table listeners (
  topic text collate "C" primary key,
  until timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- What the halves of commands hand on: see functions/.

-- What will become of a message whose claim ends.
--   back: in line again, at its position      gone: a buffered copy takes its place
--   dead: kept where it is                    moved: to the queue `place`, as fresh work
create type fate as (id text, key text, fate text, position bigint, place text);

create type placement as (
  ids text[], created boolean[],
  -- For each item that becomes a message, its own number or null; its state, its position, and the item whose value it gets in the end.
  states state[], positions bigint[], sources integer[],
  -- Messages that were there and get the value of an item.
  updated_ids text[], updated_keys text[], updated_sources integer[],
  -- Under these keys, and too late to be started: they swallow no new work.
  late_ids text[], late_keys text[]
);

-- What a change makes of the entry it meets: the entry as it will be but for its revision, or what stands in the way.
create type change as (o integer, key text, act text, because text, was_there boolean, entry entries);

