-- Whether a queue is paused whose claims go by more than its line: `paused` says of such a queue that it is, whatever this says, so that a
-- release that knows nothing of policies claims nothing there. Null in all others.
alter table holdfast_names add column stopped integer;
