-- Leases on names and on keys of dicts.

-- name: leases
select l.dict, l.key, l.holder, l.lease_id, l.token, l.since, l.until, l.shared
from json_each(?) as wanted
cross join holdfast_leases as l
  on l.dict = json_extract(wanted.value, '$[0]') and l.key = json_extract(wanted.value, '$[1]')

-- name: save_lease
insert into holdfast_leases (dict, key, holder, lease_id, token, since, until)
values (?, ?, ?, ?, ?, ?, ?)
on conflict (dict, key) do update set
  holder = excluded.holder, lease_id = excluded.lease_id, token = excluded.token, since = excluded.since, until = excluded.until

-- name: delete_lease
delete from holdfast_leases
where dict = ? and key = ?

-- name: leases_of
select dict, key, holder, lease_id, token, since, until, shared
from holdfast_leases
where dict = ?1 and key >= max(?2, ?3) and +key > ?2 and key <= ?4
order by key

-- name: all_leases
select dict, key, holder, lease_id, token, since, until, shared
from holdfast_leases
