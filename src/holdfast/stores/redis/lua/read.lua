--- Read: look entries up by key, or in order of their key text by prefix, page by page.
--
-- KEYS  1 the store  2 the dict
-- ARGV  1 the command: dict and keys, or from (a bound of ZRANGEBYLEX), prefix, limit  2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers entries, the newest event's number, and whether the limit or the answer's cut them off.
-- @include dict

local read = {}

--- Add the entries under these keys that the answer takes, up to a limit; answer whether it takes them all.
local function add_entries(dict, keys, found, limit)
  local sizes = {}
  local are_all = in_portions(dict.key .. ":entries", keys, nil, sizes, function(portion)
    load_entries(dict, portion)
    for _, key in ipairs(portion) do
      local entry = dict.entries[key]
      if entry and (#found == limit or not bring(sizes[key])) then
        return false
      end
      found[#found + 1] = entry or nil
    end
  end)
  if not are_all and #found == 0 then
    refuse_answer()
  end
  return are_all
end

--- The entries from a bound on whose keys begin with the prefix, in order of their keys, and whether there are more.
local function in_order(dict, from, prefix, limit)
  local found = {}
  while true do
    local wanted = math.min(limit + 1 - #found, CHUNK)
    local keys = call("ZRANGEBYLEX", dict.key .. ":order", from, "(" .. prefix .. AFTER_ALL, "LIMIT", 0, wanted)
    if not add_entries(dict, keys, found, limit) then
      return found, true
    elseif #keys < wanted then
      return found, false
    end
    from = "(" .. keys[#keys]
  end
end

function read.check(command)
  local dict = open_dict(command.dict)
  if command.keys then
    local found = {}
    local are_all = add_entries(dict, command.keys, found)
    return { entries = found, index = numbers.latest(), more = not are_all }
  end
  local found, more = in_order(dict, command.from, command.prefix, command.limit)
  return { entries = found, index = numbers.latest(), more = more }
end

function read.write(_, plan)
  return plan
end

commands.Read = read
