-- Dicts: their entries, and the fences that stay when an entry goes.

-- name: entries
select e.dict, e.key, e.value, e.revision, e.fence, e.expires_at
from json_each(:keys) as wanted
cross join holdfast_entries as e on e.dict = :dict and e.key = wanted.value

-- name: scan
-- An index has one lower bound: of two that are given it takes the first, and goes on through everything before a prefix.
select dict, key, value, revision, fence, expires_at
from holdfast_entries
where dict = :dict and key >= max(:after, :prefix) and +key > :after and key <= :last and substr(key, 1, length(:prefix)) = :prefix
  and value is not null and (expires_at is null or expires_at > :now)
order by key
limit :limit

-- name: length
select count(*)
from holdfast_entries
where dict = ? and value is not null and (expires_at is null or expires_at > ?)

-- name: save_entry
insert into holdfast_entries (dict, key, value, revision, fence, expires_at)
values (?, ?, ?, ?, ?, ?)
on conflict (dict, key) do update set
  value = excluded.value, revision = excluded.revision, fence = excluded.fence, expires_at = excluded.expires_at

-- name: delete_entry
delete from holdfast_entries
where dict = ? and key = ?

-- name: bare_dict
-- What is known of fences stays when an entry goes.
update holdfast_entries
set value = null, expires_at = null
where dict = ? and fence > 0

-- name: clear_dict
delete from holdfast_entries
where dict = ? and fence = 0

-- name: stale_entries
select dict, key, value, revision, fence, expires_at
from holdfast_entries
where expires_at <= ?
order by expires_at
limit ?

-- name: fenced
-- Walks holdfast_entries_key.
select dict, key, fence
from holdfast_entries
where (dict, key) > (?, ?) and fence > 0
order by dict, key
