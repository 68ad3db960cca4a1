--- Clear: empty a queue or a dict in one step, or with `drop` remove it with all its leases.
--
-- KEYS  1 the store  2 the queue or dict
-- ARGV  1 the command: kind, name, drop, prefix  2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers how much was in it. Dropping a dict costs by how many leases it has.
-- @include queue
-- @include dict
-- @include lease_table

local clear = {}

--- The keys of a dict's leases, ended or not, by their text.
local function leased_keys(name)
  local keys = call("HKEYS", key_of("dict", name) .. ":leases")
  table.sort(keys)
  return keys
end

--- Remove the entries of a dict whose keys begin with a text; answer how many.
local function clear_prefix(dict, prefix)
  local keys = call("ZRANGEBYLEX", dict.key .. ":order", "[" .. prefix, "(" .. prefix .. AFTER_ALL)
  load_entries(dict, keys)
  local count = 0
  for _, key in ipairs(keys) do
    count = count + (dict.entries[key] and 1 or 0)
  end
  tell(dict, "cleared", { count = count, dropped = false, prefix = prefix })
  for _, key in ipairs(keys) do
    save_entry(dict, key, false)
  end
  return count
end

function clear.check(command)
  return { keys = command.kind == "dict" and command.drop and leased_keys(command.name) or {} }
end

function clear.write(command, plan)
  local object = command.kind == "queue" and open_queue(command.name) or open_dict(command.name)
  if not settings_of(object) and #plan.keys == 0 then
    return 0
  end
  if command.prefix then
    return clear_prefix(object, command.prefix)
  end
  for _, key in ipairs(plan.keys) do
    end_lease(command.name, key)
  end
  local count = command.kind == "queue" and clear_queue(object, command.drop) or clear_dict(object)
  tell(object, "cleared", { count = count, dropped = command.drop or false })
  if command.drop then
    drop(object)
  end
  if command.kind == "queue" then
    wake("room:" .. object.name, ALL)
  end
  return count
end

commands.Clear = clear
