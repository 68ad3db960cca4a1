--- The keys that were put not long ago: entries of a dict, each with the id of the message and an end.
-- @include writing

recent = { open = open_dict }

--- The id under which a key was put not long ago, nil if it was not.
function recent.id_of(dict, key)
  local entry = entry_of(dict, key)
  if not entry or string.sub(entry.value, 1, 1) ~= '"' then
    return nil
  end
  return (string.gsub(string.sub(entry.value, 2, -2), "\\(.)", "%1"))
end

--- The changes that let the keys of new messages count as put not long ago, in the order of the items.
local function recent_changes(placement)
  local changes = {}
  for key, one in pairs(placement.begun) do
    local value = '"' .. string.gsub(one.id, '["\\]', "\\%0") .. '"'
    table.insert(changes, { key = key, value = value, ttl = one.ttl, place = one.place })
  end
  table.sort(changes, function(one, other)
    return one.place < other.place
  end)
  return changes
end

function recent.check(placement)
  placement.changes = recent_changes(placement)
  placement.changes_plan = plan_changes(placement.recent, placement.changes)
end

function recent.write(placement)
  write_changes(placement.recent, placement.changes, placement.changes_plan)
end
