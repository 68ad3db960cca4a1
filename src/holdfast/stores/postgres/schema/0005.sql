-- Leases with capacity: the row of such a name is nobody's and has no end, so that a release that knows no capacity finds it held.
alter table leases
add column capacity bigint, -- null for a plain lease, and so are the rest
add column used bigint, -- the weights of all grants, of those that have ended until somebody asks for one
add column waiting bigint,
add column last bigint, -- the place in line that was given out last
add column resized boolean;

-- Their grants, each with its token, and those who wait in line for one, each with its place.
create table shares (
  key text collate "C" not null,
  lease_id text collate "C" not null,
  holder text not null,
  weight bigint not null,
  since bigint not null,
  until bigint not null,
  token bigint not null default 0, -- 0 for a place in line
  place bigint not null default 0, -- 0 for a grant
  primary key (key, lease_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

create index shares_end on shares (key, (place > 0), until, lease_id);

create index shares_line on shares (key, place) where place > 0;
