-- Whoever opens the file lets its numbers leap to the clock with the first event it writes, so that they are above all that was given out
-- and lost when a backup was restored. Those between `behind` and n were never given out here.
create table holdfast_gaps (
  n integer primary key,
  behind integer not null,
  skipped integer not null, -- how many numbers were skipped up to n, in all gaps together
  opener text not null unique
);
