-- Where a server begins to serve this store, its numbers leap to the clock: see functions/home.sql. Those between `behind` and n were never
-- given out here.
create table gaps (
  n bigint primary key,
  behind bigint not null
);
