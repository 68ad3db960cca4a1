-- name: save_shared
insert into holdfast_leases (dict, key, holder, lease_id, token, since, until, shared)
values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (dict, key) do update set
  holder = excluded.holder, lease_id = excluded.lease_id, token = excluded.token, since = excluded.since, until = excluded.until,
  shared = excluded.shared

-- name: shares
select key, lease_id, holder, weight, since, until, token, place
from holdfast_shares
where key = ?1 and lease_id in (select value from json_each(?2))

-- name: shares_by_end
-- Walks holdfast_shares_end.
select key, lease_id, holder, weight, since, until, token, place
from holdfast_shares
where key = ?1 and (place > 0) = ?2 and until > ?3
order by until, lease_id
limit ?4

-- name: shares_in_line
-- Walks holdfast_shares_line.
select key, lease_id, holder, weight, since, until, token, place
from holdfast_shares
where key = ?1 and place > 0 and place > ?3
order by place
limit ?4

-- name: save_share
insert or replace into holdfast_shares (key, lease_id, holder, weight, since, until, token, place)
values (?, ?, ?, ?, ?, ?, ?, ?)

-- name: delete_share
delete from holdfast_shares
where key = ? and lease_id = ?
