--- Leases: list the leases on keys of a dict, or with no dict on names of their own, by prefix, page by page.
--
-- KEYS  1 the store  2 the dict, if one is named
-- ARGV  1 the command: dict (none: names of their own), from (a bound of ZRANGEBYLEX), prefix, limit
--       2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers held, each {key, leases, capacity, used, waiting, resized}, where to go on, and the moment. Costs by how many leases a dict has.
-- @include share_commands

local list = {}

--- Names of their own: each has a log that outlasts it.
local function names_of(command)
  local from = string.sub(command.from, 1, 1) .. "lease:" .. string.sub(command.from, 2)
  local found = call("ZRANGEBYLEX", store .. ":logs", from, "(lease:" .. command.prefix .. AFTER_ALL, "LIMIT", 0, command.limit)
  for i, member in ipairs(found) do
    found[i] = string.sub(member, #"lease:" + 1)
  end
  return found
end

--- Those of a dict lie in a hash, which has no order.
local function keys_in(command)
  local is_behind, from = string.sub(command.from, 1, 1) == "(", string.sub(command.from, 2)
  local found = {}
  for _, key in ipairs(call("HKEYS", key_of("dict", command.dict) .. ":leases")) do
    if string.sub(key, 1, #command.prefix) == command.prefix and (key > from or (key == from and not is_behind)) then
      found[#found + 1] = key
    end
  end
  table.sort(found)
  for i = #found, command.limit + 1, -1 do
    found[i] = nil
  end
  return found
end

function list.check(command)
  local keys, held, named = command.dict and keys_in(command) or names_of(command), {}, {}
  for _, key in ipairs(keys) do
    local lease = lease_of(command.dict, key)
    if lease and lease["until"] > now then
      held[#held + 1] = { key = key, leases = not lease.capacity and { shown(command.dict, key, lease) } or nil }
      if lease.capacity then
        local one = held[#held]
        one.capacity, one.used, one.waiting, one.resized = lease.capacity, lease.used, lease.waiting, lease.resized
        named[#named + 1] = one
      end
    end
  end
  for _, one in ipairs(named) do
    local seen = shares.seen(one.key, #named)
    one.leases = seen and seen.holders
  end
  return { held = held, after = #keys == command.limit and keys[#keys] or nil, now = now }
end

function list.write(_, plan)
  return plan
end

commands.Leases = list
