-- What is known of the store itself, and the answers that are kept for repeated commands.

-- name: forget_answers
-- Looks at the first few alone: with `at < ?` inside, it would walk all of them to find that none is old enough.
delete from holdfast_answers
where n in (
  select n
  from (select n, at from holdfast_answers order by n limit ?2)
  where at < ?1
)

-- name: recall
select note
from holdfast_answers
where id = ?

-- name: recalled
select id
from holdfast_answers
where id in (select value from json_each(?))

-- name: record
insert into holdfast_answers (id, note, at)
values (?, ?, ?)

-- name: meta
select value
from holdfast_meta
where name = ?

-- name: save_meta
insert into holdfast_meta (name, value)
values (?, ?)
on conflict (name) do update set value = excluded.value

-- name: next_n
select coalesce(max(n), 0) + 1
from holdfast_messages

-- name: drop_meta
delete from holdfast_meta
where name = ?
