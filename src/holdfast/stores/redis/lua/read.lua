--- Read: look entries up by key, or in order of their key text by prefix, page by page.
--
-- KEYS  1 the store  2 the dict
-- ARGV  1 the command: dict and keys, or from (a bound of ZRANGEBYLEX), prefix, limit  2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers entries, the newest event's number, and whether the limit cut them off.
-- @include dict

local read = {}

local function by_key(dict, keys)
  local found = {}
  load_entries(dict, keys)
  for _, key in ipairs(keys) do
    found[#found + 1] = dict.entries[key] or nil
  end
  return found
end

--- The entries from a bound on whose keys begin with the prefix, in order of their keys.
local function in_order(dict, from, prefix, limit)
  local found = {}
  while #found < limit do
    local wanted = math.min(limit - #found, CHUNK)
    local keys = call("ZRANGEBYLEX", dict.key .. ":order", from, "(" .. prefix .. AFTER_ALL, "LIMIT", 0, wanted)
    for _, entry in ipairs(by_key(dict, keys)) do
      found[#found + 1] = entry
    end
    if #keys < wanted then
      break
    end
    from = "(" .. keys[#keys]
  end
  return found
end

function read.check(command)
  local dict = open_dict(command.dict)
  if command.keys then
    return { entries = by_key(dict, command.keys), index = numbers.latest() }
  end
  local found = in_order(dict, command.from, command.prefix, command.limit + 1)
  local more = #found > command.limit
  if more then
    found[#found] = nil
  end
  return { entries = found, index = numbers.latest(), more = more }
end

function read.write(_, plan)
  return plan
end

commands.Read = read
