-- Leases with capacity: what stands for such a name among the leases, as a JSON array; null for a plain lease.
alter table holdfast_leases add column shared text;

-- Their grants, each with its token, and those who wait in line for one, each with its place.
create table holdfast_shares (
  key text not null,
  lease_id text not null,
  holder text not null,
  weight integer not null,
  since integer not null,
  until integer not null,
  token integer not null, -- 0 for a place in line
  place integer not null, -- 0 for a grant
  primary key (key, lease_id)
) without rowid;

create index holdfast_shares_end on holdfast_shares (key, place > 0, until, lease_id);

create index holdfast_shares_line on holdfast_shares (key, place) where place > 0;
